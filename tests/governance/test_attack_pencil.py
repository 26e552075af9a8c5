"""Two curvatures are a pencil: with more columns than rows they share their eigenvectors, the rows.

The measure of chance is what the same attack has in common with records of another draw.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.governance.rows_of import count_matches, diagonalise, scale_to_ones

from fedlasso import FedLassoError, Site
from fedlasso.errors import Refused
from fedlasso.federation import decode, encode
from fedlasso.governance import Audit, Lifetime, Policy
from fedlasso.governance.guard import GuardedSite
from fedlasso.numerics import Array
from fedlasso.numerics.response import Places
from fedlasso.numerics.triangles import unpack
from fedlasso.sites import CurvatureAt, PartAt
from fedlasso.sites.inference import SlopesAlong
from fedlasso.sites.questions import LossSums

N, P = 60, 90
# Directions of one question.
WIDEST = 256


def draw(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P))
    return X, (X[:, 0] + rng.standard_normal(N) > 0).astype(float)


def guarded(folder: Path, secret: bytes) -> GuardedSite:
    X, y = draw(0)
    site = Site("a", X, y, loss="binomial", intercept=True, raw=True, secret=secret)
    policy = Policy(max_numbers=1e6, max_active_per_row=1e6)
    return GuardedSite(site, policy, Audit(folder / "audit.jsonl"), "ab" * 16)


def curvature(door: GuardedSite, columns: Places, seed: int) -> Array:
    b = 0.1 * np.random.default_rng(seed).standard_normal(P + 1)
    reply: Any = decode(door.answer_bytes(encode(CurvatureAt(b, columns, 0))))
    return unpack(reply.block, columns.size, lower=True)


def along(door: GuardedSite, columns: Places, seed: int) -> Array:
    """The same from second derivatives along sums of two columns."""
    b = 0.1 * np.random.default_rng(seed).standard_normal(P + 1)
    first, second = np.tril_indices(columns.size)
    directions = np.zeros((P + 1, first.size))
    for own in (first, second):
        directions[columns[own], np.arange(first.size)] = 1.0
    parts = np.array_split(directions, -(-first.size // WIDEST), axis=1)
    replies: list[Any] = [
        decode(door.answer_bytes(encode(SlopesAlong(b, part.copy())))) for part in parts
    ]
    H = np.zeros((columns.size, columns.size))
    H[first, second] = np.hstack([reply.curvatures for reply in replies])
    own = np.diag(H)
    off = (H - own[:, None] - own[None, :]) / 2
    return np.asarray(np.tril(off, -1) + np.tril(off, -1).T + np.diag(own))


def test_curvatures_along_directions_told_every_record(tmp_path: Path) -> None:
    order = np.append(P, np.arange(P))
    door = guarded(tmp_path, b"")
    found = scale_to_ones(diagonalise([along(door, order, seed) for seed in (1, 2)]))
    assert count_matches(found, draw(0)[0]) == N
    door = guarded(tmp_path / "on", b"secret")
    with pytest.raises(Refused, match="second moments are sent only over at least twice"):
        along(door, order, 1)
    # Half as many columns as rows count together with those of `CurvatureAt`.
    along(door, np.arange(30), 1)
    with pytest.raises(FedLassoError, match="second moments are sent only over at least twice"):
        curvature(door, np.arange(1, 31), 2)


def test_two_curvatures_told_every_record(tmp_path: Path) -> None:
    door = guarded(tmp_path, b"")
    # The intercept first: rows are known up to a factor.
    order = np.append(P, np.arange(P))
    found = scale_to_ones(diagonalise([curvature(door, order, seed) for seed in (1, 2)]))
    assert count_matches(found, draw(0)[0]) == N
    assert count_matches(found, draw(1)[0]) == 0


def test_curvatures_of_more_columns_than_half_the_rows_are_refused(tmp_path: Path) -> None:
    door = guarded(tmp_path, b"secret")
    with pytest.raises(Refused, match="second moments are sent only over at least twice"):
        curvature(door, np.arange(P), 1)
    # Parts of them count together, over all fits.
    curvature(door, np.arange(20), 1)
    again = guarded(tmp_path, b"secret")
    again.fit = "cd" * 16
    curvature(again, np.arange(30), 2)
    with pytest.raises(FedLassoError, match="second moments are sent only over at least twice"):
        curvature(again, np.append(np.arange(29), 30), 2)
    assert Lifetime.of(door.audit, "").busiest("moments") == pytest.approx(1)


def test_a_site_refuses_by_itself_what_its_ledger_would(tmp_path: Path) -> None:
    """Fits of files with a site's secret must take the way that they take over a network."""
    site = guarded(tmp_path, b"secret").site
    with pytest.raises(Refused, match="second moments are sent only over at least twice"):
        site.answer(CurvatureAt(np.zeros(P + 1), np.arange(P), 0))


def differ(door: GuardedSite, columns: Places, seed: int) -> Array:
    """Second derivatives from gradients at neighbouring models, one triangle."""
    b = np.zeros(len(door.columns))
    b[columns] = 0.3 * np.random.default_rng(seed).standard_normal(columns.size)
    H = np.zeros((columns.size, columns.size))
    for k in range(columns.size):
        step = np.zeros(b.size)
        step[columns[k]] = 1e-3
        above, below = (
            decode(door.answer_bytes(encode(PartAt(b + way, columns[k:])))) for way in (step, -step)
        )
        assert isinstance(above, LossSums)
        assert isinstance(below, LossSums)
        H[k, k:] = H[k:, k] = (above.gradient - below.gradient) / 2e-3
    return H


def test_differences_of_gradients_tell_every_record_of_a_wide_file(tmp_path: Path) -> None:
    """No default rule prevents it: exact sums at chosen models cannot keep records (A6)."""
    rows, columns = 40, 100
    X, other = np.random.default_rng(0).standard_normal((2, rows, columns))
    y = (X[:, 0] > 0).astype(float)
    site = Site("a", X, y, loss="binomial", intercept=True, raw=True, secret=b"secret")
    door = GuardedSite(site, Policy(), Audit(tmp_path / "audit.jsonl"), "ab" * 16)
    order = np.append(columns, np.arange(rows))
    found = scale_to_ones(diagonalise([differ(door, order, seed) for seed in (1, 2)]))
    assert count_matches(found, X[:, :rows]) == rows
    assert count_matches(found, other[:, :rows]) == 0
    used = Lifetime.of(door.audit, "").used("numbers")
    assert 0.85 < used < Policy().max_numbers


def test_two_weight_columns_tell_every_record_of_a_wide_file(tmp_path: Path) -> None:
    """For linear models too: gradients at unit vectors, with one weight column and another."""
    rows, columns = 40, 100
    rng = np.random.default_rng(0)
    X, other = rng.standard_normal((2, rows, columns))
    X[:, 0] = 1.0
    y = X[:, 1] + rng.standard_normal(rows)
    parts = []
    for name, weights in (("none", np.ones(rows)), ("weight", 1 + rng.random(rows))):
        site = Site("a", X, y, weights=weights, raw=True, secret=b"secret")
        audit = Audit(tmp_path / "audit.jsonl")
        door = GuardedSite(site, Policy(), audit, "ab" * 16, scope=name)
        H = np.zeros((rows, rows))
        for k in range(rows):
            at = np.eye(columns)[k]
            sums: Any = [
                decode(door.answer_bytes(encode(PartAt(b, np.arange(k, rows)))))
                for b in (at, 0 * at)
            ]
            H[k, k:] = H[k:, k] = sums[0].gradient - sums[1].gradient
        parts.append(H)
    found = scale_to_ones(diagonalise(parts))
    assert count_matches(found, X[:, 1:rows]) == rows
    assert count_matches(found, other[:, 1:rows]) == 0
