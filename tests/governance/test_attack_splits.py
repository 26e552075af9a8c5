"""Attack 4: sums over many splits of the rows are solved for single records."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.victims import Victim, distance, draw_records

from fedlasso import Site
from fedlasso.errors import Refused
from fedlasso.governance import Policy
from fedlasso.governance.door_messages import Refusal
from fedlasso.numerics import Array
from fedlasso.sites import BatchSlopes
from fedlasso.sites.repeats import find_repeated
from fedlasso.sites.rows import divide
from fedlasso.sites.views import ColumnSums

N, P = 134, 5


@pytest.fixture
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets that never end."""
    monkeypatch.setattr(Policy, "limits", lambda self: {})


def sums(victim: Victim, splits: list[str]) -> dict[str, Array]:
    """Column sums over the training rows of the splits that the site answers about."""
    found = {}
    for split in splits:
        reply: Any = victim.ask(ColumnSums(split))
        if not isinstance(reply, Refusal):
            found[split] = np.append(reply.sums, reply.y_sum)
    return found


def nested(victim: Victim) -> Array:
    """Differences between splits that hold out one row more each."""
    splits = [f"holdout {k / N!r} 0" for k in range(20, 50)]
    sent = sums(victim, splits)
    pairs = [(sent[a], sent[b]) for a, b in pairwise(splits) if a in sent and b in sent]
    return np.array([a - b for a, b in pairs])


def test_nested_holdouts_tell_rows_only_where_draws_are_public(
    tmp_path: Path, no_limits: None
) -> None:
    X, y = draw_records(N, P, 1)
    open_ = Victim(tmp_path / "before", X, y, key=b"").opened()
    found = nested(open_)
    assert len(found) == 29
    assert distance(found, open_.rows).max() < 1e-9
    secret = Victim(tmp_path / "after", X, y).opened()
    found = nested(secret)
    assert len(found) == 29
    # Sums over unrelated atoms differ by far more than a record is away from another.
    assert distance(found, secret.rows).min() > 1.0


def solve_halves(sent: dict[str, Array], total: Array, n: int, rows: Any) -> Array:
    """The records that sums over random halves give whoever knows, or believes, who is in which."""
    members = np.ones((len(sent) + 1, n))
    for at, split in enumerate(sent):
        members[at] = 0.0
        members[at, rows(split)] = 1.0
    return np.asarray(np.linalg.lstsq(members, np.vstack([*sent.values(), total]), rcond=None)[0])


@pytest.mark.standard
def test_random_halves_tell_rows_only_where_draws_are_public_and_many(
    tmp_path: Path, no_limits: None
) -> None:
    X, y = draw_records(N, P, 2)
    halves = [f"half {k} {seed}" for seed in range(10) for k in range(1, 21)]
    total = np.append(X.sum(axis=0), y.sum())
    secret = Victim(tmp_path / "after", X, y).opened()
    sent = sums(secret, halves)
    assert len(sent) == 200
    # All of them are sums over a few atoms, also for somebody who has stolen the secret.
    atoms = np.linalg.matrix_rank(np.vstack([*sent.values(), total]))
    draw = secret.door._site.site.draw  # type: ignore[union-attr]
    assert atoms <= draw.atoms.max() + 1
    public = solve_halves(sent, total, N, lambda s: divide(s, "a", N)["training"])
    stolen = solve_halves(sent, total, N, lambda s: draw.divide(s, N)["training"])
    for found in (public, stolen):
        error = np.abs(found - secret.rows) / secret.rows.std(axis=0)
        assert np.median(error) > 0.4
    open_ = Victim(tmp_path / "before", X, y, key=b"").opened()
    sent = sums(open_, halves)
    known = open_.door._site.site.draw  # type: ignore[union-attr]
    found = solve_halves(sent, total, N, lambda s: known.divide(s, N)["training"])
    assert np.abs(found - open_.rows).max() < 1e-8


def test_every_part_is_a_union_of_atoms_cut_once(tmp_path: Path) -> None:
    X, y = draw_records(N, P, 3)
    names = [f"fold {k} of {n} {seed}" for n in (2, 3, 5, 10) for k in (1, 2) for seed in (0, 1)]
    names += [f"holdout {f} {seed}" for f in (0.1, 0.2, 0.5) for seed in (0, 1)]
    names += [f"half {k} 0" for k in range(1, 9)]
    victim = Victim(tmp_path, X, y).opened()
    site = victim.door._site.site  # type: ignore[union-attr]
    atoms = site.draw.finest
    assert np.bincount(atoms).min() >= Policy().min_rows
    for name in names:
        for rows in site.draw.divide(name, N).values():
            inside = np.isin(np.arange(N), rows)
            assert all(len(set(inside[atoms == atom])) == 1 for atom in set(atoms))
    for folds in (2, 3, 5):
        parts = site.draw.fold_rows(f"folds {folds} 7", N)
        assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(N))
        same = site.draw.fold_rows(f"folds {folds} 8", N)
        assert all(np.array_equal(a, b) for a, b in zip(parts, same, strict=True))
    # The cut is kept: other columns and another policy change nothing.
    victim.opened("x0", "x1", fit="cd" * 8)
    again = Victim(tmp_path, X, y, Policy(min_rows=10)).opened()
    for other in (victim, again):
        found = other.door._site.site.draw.finest  # type: ignore[union-attr]
        assert np.array_equal(found, atoms)


def test_a_cut_that_was_deleted_is_missed(tmp_path: Path) -> None:
    X, y = draw_records(N, P, 4)
    victim = Victim(tmp_path, X, y).opened()
    (path,) = victim.door.lifetime.path.parent.glob("*.atoms")
    assert path.stat().st_mode & 0o077 == 0
    victim.ask(ColumnSums("half 1 0"))
    kept = path.read_bytes()
    path.unlink()
    assert "the cut of this data file is missing" in victim.open().text
    path.write_bytes(kept[:-1])
    assert "the cut of this data file is damaged" in victim.open().text


def test_whether_rows_look_repeated_is_disclosed_once(tmp_path: Path) -> None:
    """Otherwise choices of columns would disclose which rows agree in which columns."""
    X, y = draw_records(N, P, 5)
    X[1::2, :3] = X[::2, :3]
    victim = Victim(tmp_path, X, y).opened()
    question = BatchSlopes(np.zeros(P), np.eye(P, 1))
    assert victim.ask(question).repeated == 1
    # Without the kept byte the other columns would give another answer.
    others = tuple(f"x{k}" for k in range(3, P))
    victim.opened(*others, fit="cd" * 8)
    own = victim.door._site.site  # type: ignore[union-attr]
    assert find_repeated(own.table.columns.T) == 0
    assert victim.ask(BatchSlopes(np.zeros(P - 3), np.eye(P - 3, 1))).repeated == 1


def test_small_sites_have_rows_in_some_folds() -> None:
    for rows, folds, parts in ((60, 10, 3), (60, 2, 3), (40, 5, 2), (39, 5, 1), (1000, 10, 20)):
        X, y = draw_records(rows, P, 5)
        site = Site("a", X, y, raw=True, secret=b"secret")
        assert site.draw.finest.max() + 1 == parts
        if parts == 1:
            with pytest.raises(Refused, match="the rows here cannot be split"):
                site.draw.fold_rows(f"folds {folds} 0", rows)
            continue
        sizes = [len(part) for part in site.draw.fold_rows(f"folds {folds} 0", rows)]
        assert sum(sizes) == rows
        assert sum(size > 0 for size in sizes) == min(parts, folds)
        assert min(filter(None, sizes)) >= 20
