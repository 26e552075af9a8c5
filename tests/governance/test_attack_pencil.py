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
from fedlasso.sites import CurvatureAt

N, P = 60, 90


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
