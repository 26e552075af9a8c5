"""Discoveries by splitting rows: halves, mirror statistics, and how splits are combined."""

import numpy as np
import pytest
from helpers.fitting.folded import Records, draw_records
from sklearn.linear_model import Lasso, LinearRegression

from fedlasso.numerics import Array
from fedlasso.study.data_splitting import (
    choose_columns,
    combine_splits,
    cut_in_two,
    fit_columns,
    mirror,
    select_above,
    split_rows,
)


@pytest.mark.parametrize(
    ("rate", "found"),
    [
        # The shares are 3/5 above 0, 2/5 above 0.5, 2/4 above 1, 2/3 above 2, 1/3 above 2.5, 1/2
        # above 3 and 0/2 above 4.
        (0.7, [9.0, 7.0, 3.0, 2.0, 1.0]),
        (0.41, [9.0, 7.0, 3.0, 2.0, 1.0]),
        (0.39, [9.0, 7.0, 3.0]),
        (0.3, [9.0, 7.0]),
    ],
)
def test_the_bar_is_the_lowest_whose_mirror_image_has_few_below(
    rate: float, found: list[float]
) -> None:
    mirrors = np.array([1.0, -2.5, 9.0, 0.0, 3.0, -4.0, 7.0, -0.5, 2.0])
    above = select_above(mirrors, rate)
    assert sorted(mirrors[above], reverse=True) == found


def test_nothing_is_found_where_both_sides_are_alike() -> None:
    assert not select_above(np.array([3.0, -3.0, 2.0, -2.0, 1.0, -1.0]), 0.2).any()
    assert not select_above(np.zeros(4), 0.2).any()
    assert select_above(np.array([2.0, 3.0]), 0.1).tolist() == [True, True]


def test_splits_are_combined_by_how_often_they_find_a_column() -> None:
    found = np.array(
        [
            [True, True, False, False],
            [True, True, True, False],
            [True, False, False, False],
            [False, False, False, False],
        ]
    )
    # Shares: (1/2 + 1/3 + 1)/4, (1/2 + 1/3)/4, (1/3)/4 and 0.
    shares = np.array([11 / 24, 5 / 24, 2 / 24, 0.0])
    for rate, kept in ((0.05, 3), (0.1, 2), (7 / 24 - 1e-9, 2), (7 / 24 + 1e-9, 1)):
        combined = combine_splits(found, rate)
        np.testing.assert_array_equal(np.flatnonzero(combined), np.argsort(-shares)[:kept])


def test_columns_that_are_found_as_often_stay_or_go_together() -> None:
    found = np.array([[True, False, True], [False, True, True]])
    # Shares are 1/4, 1/4 and 1/2; only one of the first two would fit below the rate.
    assert combine_splits(found, 0.3).tolist() == [False, False, True]


def test_one_split_uses_two_halves_that_share_no_fold_and_the_next_split_others() -> None:
    folded = draw_records(1, m=80, p=4, folds=8).folded
    places = {fold.products.tobytes(): k for k, fold in enumerate(folded.folds)}
    seen = set()
    for first, second in cut_in_two(folded, 6):
        own = sorted(places[fold.products.tobytes()] for fold in first.folds)
        rest = [fold for k, fold in enumerate(folded.folds) if k not in own]
        assert len(own) == len(set(own)) == 4
        assert len(rest) == 4
        expected = np.sum([fold.products for fold in rest], axis=0)
        np.testing.assert_allclose(second.products, expected, rtol=1e-10, atol=1e-9)
        seen.add(tuple(own))
    assert len(seen) > 1


def test_the_second_half_has_no_part_in_choosing_nor_the_first_in_judging() -> None:
    records = draw_records(2, m=120, p=6, folds=6)
    folded = records.folded
    first, second = next(cut_in_two(folded, 1))
    chosen = choose_columns(first)
    other = draw_records(3, m=60, p=6).folded.whole
    judged = fit_columns(first, second, chosen)
    assert not np.allclose(fit_columns(first, other, chosen), judged)
    elsewhere = draw_records(4, m=60, p=6, folds=3).folded
    np.testing.assert_allclose(fit_columns(elsewhere, second, chosen), judged)
    np.testing.assert_array_equal(split_rows(folded, 1), [mirror(first, second)])


def test_the_halves_are_fitted_as_independent_solvers_fit_their_rows() -> None:
    records = draw_records(5, m=200, p=10, folds=10)
    folded = records.folded
    first, second = next(cut_in_two(folded, 1))
    own = [fold.products.tobytes() for fold in first.folds]
    mine = [k for k, fold in enumerate(folded.folds) if fold.products.tobytes() in own]
    in_first = np.isin(records.fold, mine)
    half = records.take(in_first)
    chosen = choose_columns(first)

    standard = half.standard
    largest = np.abs(standard.X.T @ standard.y).max() / len(standard.y)
    penalties = largest * np.geomspace(1, 0.01, 50)
    errors = [sum(_squared_error(*parts, lam) for parts in half.splits()) for lam in penalties]
    best = float(penalties[int(np.argmin(errors))])
    np.testing.assert_allclose(chosen, _lasso(half, best)[0], atol=1e-6)

    rest = records.take(~in_first)
    support = np.flatnonzero(chosen)
    exact = LinearRegression().fit(rest.X[:, support], rest.y).coef_
    judged = fit_columns(first, second, chosen)
    np.testing.assert_allclose(judged[support], exact, rtol=1e-6)
    assert not judged[chosen == 0].any()
    expected = np.sign(chosen * judged) * (np.abs(chosen) + np.abs(judged))
    np.testing.assert_array_equal(mirror(first, second), expected)


def _lasso(records: Records, lam: float) -> tuple[Array, float]:
    """The Lasso of standardised columns, for columns as they were."""
    standard = records.standard
    solver = Lasso(lam, fit_intercept=False, tol=1e-12, max_iter=100_000)
    b = solver.fit(standard.X, standard.y).coef_ / records.X.std(axis=0)
    return b, float(records.y.mean() - records.X.mean(axis=0) @ b)


def _squared_error(train: Records, fold: Records, lam: float) -> float:
    b, intercept = _lasso(train, lam)
    return float(((fold.y - fold.X @ b - intercept) ** 2).sum())


def test_no_more_columns_are_judged_than_half_of_the_rows_can_tell() -> None:
    folded = draw_records(6, m=24, p=20, folds=4).folded
    first, second = next(cut_in_two(folded, 1))
    chosen = np.arange(1.0, 21.0)
    judged = fit_columns(first, second, chosen)
    np.testing.assert_array_equal(np.flatnonzero(judged), np.arange(14, 20))
