"""Choices from moments: the columns that fits to halves of the folds select."""

from dataclasses import replace

import numpy as np
import pytest
from fitting.folded import Records, draw_records
from numpy.typing import NDArray
from swept import swept_lasso

from fedlasso.fitting import Goal, Rule
from fedlasso.fitting.choosing import (
    PAIRS,
    SPARE,
    VOTES,
    choose,
    count_votes,
    cut_halves,
)

by_seed = pytest.mark.parametrize("seed", range(4))


def halves_of(records: Records, seed: int) -> list[NDArray[np.bool_]]:
    """Rows of every half, with the generator that cuts the moments."""
    rng = np.random.default_rng(seed)
    folds = np.unique(records.fold)
    found = []
    for _ in range(PAIRS):
        own = np.isin(records.fold, folds[rng.permutation(len(folds))[: len(folds) // 2]])
        found += [own, ~own]
    return found


@by_seed
def test_votes_are_those_of_fits_to_the_records_of_every_half(seed: int) -> None:
    records = draw_records(seed, m=80, p=6, folds=10)
    folded = replace(records.folded, seed=seed)
    votes = np.zeros(6)
    for rows in halves_of(records, seed):
        half = records.take(rows).standard
        votes += swept_lasso(half.X, half.y, 0.3).coef_ != 0
    assert np.allclose(count_votes(folded, 0.3), votes / (2 * PAIRS))


@pytest.mark.parametrize("folds", [1, 2, 3, 5, 20])
def test_two_halves_are_all_rows_and_each_has_half_of_the_folds(folds: int) -> None:
    folded = draw_records(1, m=60, p=4, folds=folds).folded
    halves = list(cut_halves(folded))
    assert len(halves) == 2 * PAIRS
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        assert np.allclose(one.products + other.products, folded.whole.products)
        assert one.rows == pytest.approx(60 * (folds // 2) / folds, abs=1)


def test_the_seed_decides_the_halves() -> None:
    folded = draw_records(1, m=60, p=4, folds=20).folded
    first = [half.products for half in cut_halves(folded)]
    again = [half.products for half in cut_halves(folded)]
    other = [half.products for half in cut_halves(replace(folded, seed=1))]
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@by_seed
@pytest.mark.parametrize(
    ("goal", "rule"), [("selection", "1se"), ("prediction", "1se")], ids=["selection", "prediction"]
)
def test_selected_are_the_columns_with_votes_or_those_of_one_standard_error(
    goal: Goal, rule: Rule, seed: int
) -> None:
    for noise in (1.0, 5.0, 20.0):
        folded = draw_records(seed, m=80, p=10, folds=10, noise=noise).folded
        choice = choose(folded, goal, rule).choice
        lasso = choice.judged
        at = lasso.largest_within(SPARE * np.sqrt(2 / 80))
        voted = count_votes(folded, float(lasso.penalties[at])) >= VOTES
        if choice.support is None:
            assert choice.at == lasso.sparsest
        else:
            assert choice.at == at
            assert np.array_equal(choice.support, voted)
            assert choice.error <= lasso.limit


@by_seed
def test_strong_columns_are_selected_and_hardly_another(seed: int) -> None:
    records = draw_records(seed, m=400, p=12, folds=20, noise=0.3)
    choice = choose(records.folded, "selection", "1se").choice
    assert choice.support is not None
    assert choice.support[:3].all()
    assert choice.support[3:].sum() <= 1
