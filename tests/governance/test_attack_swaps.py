"""Where a model ranks two rows alike: the answer changes there, however coarse it is.

The place of one such change, along as many directions as there are columns, is the direction of
the difference of two records. The measure of chance is how near random directions come to one.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedlasso import FedLassoError, Site
from fedlasso.federation import decode, encode
from fedlasso.governance import Audit, Policy
from fedlasso.governance.guard import RANKED, GuardedSite
from fedlasso.numerics import Array
from fedlasso.sites.assessing import PairsAt, ScoreRanges

N, P = 100, 5
HALVINGS = 45
# How far models are moved to follow a change.
MOVED = 1e-5


def guarded(folder: Path, most: int) -> tuple[GuardedSite, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = (X[:, 0] + rng.standard_normal(N) > 0).astype(float)
    site = Site("a", X, y, loss="binomial", intercept=True, raw=True, secret=b"secret")
    policy = Policy(max_candidates=most, max_numbers=1e6)
    return GuardedSite(site, policy, Audit(folder / "audit.jsonl"), "ab" * 16), X


def ask(door: GuardedSite, question: Any, b: Array, split: str = "", folds: int = 1) -> Any:
    models = np.append(b, 0.0)[:, None] * np.arange(1.0, folds + 1)
    return decode(door.answer_bytes(encode(question(models, np.zeros(folds), split=split))))


def find_change(
    door: GuardedSite, question: Any, b: Array, along: Array, low: float, high: float
) -> float:
    def ranks(at: float) -> list[float]:
        reply = ask(door, question, b + at * along)
        return [reply.concordant] if question is PairsAt else reply.observed.tolist()

    first = ranks(low)
    assert ranks(high) != first
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if ranks(middle) == first else (low, middle)
    return (low + high) / 2


@pytest.mark.parametrize(("question", "furthest"), [(PairsAt, 0.002), (ScoreRanges, 0.05)])
def test_a_change_of_ranks_tells_a_direction(
    tmp_path: Path, question: Any, furthest: float
) -> None:
    door, X = guarded(tmp_path, 5000)
    rng = np.random.default_rng(0)
    b, along = np.linalg.qr(rng.standard_normal((P, 2)))[0].T
    place = find_change(door, question, b, along, 0.0, furthest)
    b = b + place * along
    rest = np.linalg.svd(b[None])[2][1:]
    moved = [find_change(door, question, b + MOVED * v, along, -2e-4, 2e-4) for v in rest]
    equations = np.vstack([b, along, rest])
    found = np.linalg.lstsq(equations, np.append([0.0, 1.0], np.array(moved) / -MOVED))[0]
    differences = (X[:, None] - X)[np.triu_indices(N, 1)]
    differences /= np.linalg.norm(differences, axis=1)[:, None]
    guesses = rng.standard_normal((P, 500))
    guesses /= np.linalg.norm(guesses, axis=0)
    chance = np.median(1 - np.abs(differences @ guesses).max(axis=0))
    off = 1 - np.abs(differences @ (found / np.linalg.norm(found))).max()
    assert off < 1e-6 < chance
    # Twice as many as a site answers in the life of a file: two changes of `P`.
    assert door._ledger.used("candidates", "ranks") > 2 * Policy().max_candidates


def test_ranks_of_all_rows_count_together(tmp_path: Path) -> None:
    door, _ = guarded(tmp_path, 8 * RANKED)
    b = np.ones(P)
    ask(door, PairsAt, b)
    ask(door, ScoreRanges, b, "folds 3 0", 3)
    ask(door, PairsAt, 2 * b, "folds 4 7", 4)
    assert door._ledger.used("candidates", "ranks") == 8 * RANKED
    with pytest.raises(FedLassoError, match="40 models have been evaluated"):
        ask(door, PairsAt, 3 * b)


def test_one_direction_takes_more_ranks_than_a_file_has(tmp_path: Path) -> None:
    """By default a search finds two places, and a direction in five columns needs five."""
    door, _ = guarded(tmp_path, Policy().max_candidates)
    b, along = np.linalg.qr(np.random.default_rng(0).standard_normal((P, 2)))[0].T
    for at in (0.0, 1.0):
        find_change(door, PairsAt, b, along, at, at + 0.5)
    with pytest.raises(FedLassoError, match="500 models have been evaluated"):
        find_change(door, PairsAt, b, along, 2.0, 2.5)
