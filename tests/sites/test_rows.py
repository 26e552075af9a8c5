"""Splits: every row is trained on or held out, drawn from the seed and the site's name only."""

import numpy as np
import pytest

from fedlasso import FedLassoError
from fedlasso.sites import folds, halves, holdout
from fedlasso.sites.rows import divide


@pytest.mark.parametrize("n", [1, 2, 3, 7, 50])
def test_splits_divide_every_row(n: int) -> None:
    everything = np.arange(n)
    parts = divide(holdout(0.3, 1), "a", n)
    union = np.unique(np.concatenate(list(parts.values())))
    assert np.array_equal(union, everything)
    assert len(parts["training"]) >= 1
    assert not set(parts["training"]) & {*parts["penalty"], *parts["candidate"]}
    held = [divide(split, "a", n)["penalty"] for split in folds(5, 1)]
    assert np.array_equal(np.sort(np.concatenate(held)), everything)
    assert max(map(len, held)) - min(map(len, held)) <= 1
    half = [divide(split, "a", n)["training"] for split in halves(2, 1)]
    assert {len(h) for h in half} == {(n + 1) // 2}


@pytest.mark.parametrize("n", [40, 61])
def test_strata_are_divided_in_proportion_and_parts_keep_their_sizes(n: int) -> None:
    rare = np.arange(n) % 8 == 3
    for count in (2, 5):
        parts = [divide(split, "a", n, rare)["penalty"] for split in folds(count, 1)]
        plain = [divide(split, "a", n)["penalty"] for split in folds(count, 1)]
        assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
        assert list(map(len, parts)) == list(map(len, plain))
        of_rare = [int(rare[part].sum()) for part in parts]
        assert max(of_rare) - min(of_rare) <= 1
    for split in (holdout(0.4, 1), *halves(3, 1)):
        trained = divide(split, "a", n, rare)["training"]
        assert len(trained) == len(divide(split, "a", n)["training"])
        assert abs(rare[trained].sum() - rare.mean() * len(trained)) <= 1
    # A single kind of response changes nothing.
    for split in (folds(5, 1)[0], holdout(0.4, 1)):
        alike = divide(split, "a", n, np.ones(n, bool))
        assert np.array_equal(alike["training"], divide(split, "a", n)["training"])


def test_many_tiny_sites_hold_out_their_share_together() -> None:
    held = [len(divide(holdout(0.2, 0), f"site {j}", 2)["penalty"]) for j in range(500)]
    assert 150 < sum(held) < 250


def test_splits_depend_on_seed_and_site_only() -> None:
    one, same = divide(holdout(0.2, 3), "a", 40), divide(holdout(0.2, 3), "a", 40)
    assert np.array_equal(one["penalty"], same["penalty"])
    assert not np.array_equal(one["penalty"], divide(holdout(0.2, 4), "a", 40)["penalty"])
    assert not np.array_equal(one["penalty"], divide(holdout(0.2, 3), "b", 40)["penalty"])
    with pytest.raises(FedLassoError, match="no split is called 'thirds 1': update fedlasso"):
        divide("thirds 1", "a", 3)
