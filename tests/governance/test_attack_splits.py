"""Attack 4: sums over many splits of the rows are solved for single records."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.victims import Victim, distance, draw_records

from fedlasso.governance import Policy
from fedlasso.governance.door_messages import Refusal
from fedlasso.numerics import Array
from fedlasso.sites.rows import divide
from fedlasso.sites.views import ColumnSums

N, P = 134, 5


@pytest.fixture
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets that never end."""
    monkeypatch.setattr(Policy, "limits", lambda self, rows: {})


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
    # Sums over unrelated rows differ by far more than a record is away from another.
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
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    X, y = draw_records(N, P, 2)
    halves = [f"half {k} {seed}" for seed in range(10) for k in range(1, 21)]
    total = np.append(X.sum(axis=0), y.sum())
    secret = Victim(tmp_path / "after", X, y).opened()
    sent = sums(secret, halves)
    # With the default policy there are so many ways of splitting, whatever the fits.
    assert len(sent) == Policy().max_splits
    public = solve_halves(sent, total, N, lambda s: divide(s, "a", N)["training"])
    draw = secret.door._site.site.draw  # type: ignore[union-attr]
    # Somebody who had stolen the secret as well would still lack equations.
    stolen = solve_halves(sent, total, N, lambda s: draw.divide(s, N)["training"])
    for found in (public, stolen):
        error = np.abs(found - secret.rows) / secret.rows.std(axis=0)
        assert np.median(error) > 0.4
    request.getfixturevalue("no_limits")
    open_ = Victim(tmp_path / "before", X, y, key=b"").opened()
    sent = sums(open_, halves)
    known = open_.door._site.site.draw  # type: ignore[union-attr]
    found = solve_halves(sent, total, N, lambda s: known.divide(s, N)["training"])
    assert np.abs(found - open_.rows).max() < 1e-8


def test_no_more_parts_are_told_than_half_of_the_rows(tmp_path: Path) -> None:
    X, y = draw_records(40, 3, 3)
    policy = Policy(max_splits=1000, min_rows=5, min_validation_rows=2)
    victim = Victim(tmp_path, X, y, policy).opened()
    sent = sums(victim, [f"half {k} 0" for k in range(1, 30)])
    assert len(sent) == 20
    refused = victim.ask(ColumnSums("half 30 0"))
    assert "sums over 20 parts of the rows have been sent" in refused.text
    # What was told before is told again, to any fit.
    assert len(sums(victim.opened(fit="cd" * 8), ["half 1 0", "half 2 0"])) == 2


def test_shares_and_seeds_draw_unrelated_rows() -> None:
    n = 1000
    names = ("holdout 0.2 0", "holdout 0.21 0", "holdout 0.2 1", "fold 1 of 5 0", "half 1 0")
    parts = {name: set(divide(name, "a", n, b"secret")["training"].tolist()) for name in names}
    for one in names:
        for other in names:
            if one < other:
                both = len(parts[one] & parts[other]) / n
                expected = len(parts[one]) * len(parts[other]) / n**2
                # Five standard deviations of what chance alone would give.
                assert abs(both - expected) < 5 * np.sqrt(expected * (1 - expected) / n)
    again = divide("holdout 0.2 0", "a", n, b"secret")
    assert set(again["training"].tolist()) == parts["holdout 0.2 0"]
    elsewhere = divide("holdout 0.2 0", "a", n, b"another")
    assert set(elsewhere["training"].tolist()) != parts["holdout 0.2 0"]
