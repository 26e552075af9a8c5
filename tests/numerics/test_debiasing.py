"""Directions in which one column alone changes, against what they must be by definition."""

import warnings

import numpy as np
import pytest
from helpers.loops import loop

from fedlasso.numerics.debiasing import MOST_LEFTOVER, find_directions, sweep_others


def draw_gram(p: int, seed: int, rows: int = 400) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, p))
    X[:, 1:] += 0.7 * X[:, :-1]
    return X.T @ X / rows


@loop("seed", range(5))
def test_without_a_penalty_directions_are_those_of_the_inverse(seed: int) -> None:
    H = draw_gram(8, seed)
    found = find_directions(H, np.arange(8), np.zeros(8, bool), 10**12, 1e-3).directions
    np.testing.assert_allclose(found, np.linalg.inv(H), atol=1e-4)


@loop("seed", range(5))
@pytest.mark.parametrize("strength", [0.5, 1.25])
def test_no_other_column_changes_more_than_the_penalty_allows(seed: int, strength: float) -> None:
    """The optimality conditions of the Lasso of a column on the others, in its own units."""
    H = draw_gram(12, seed)
    free = np.zeros(12, bool)
    free[3] = True
    columns = np.array([0, 3, 5])
    M = find_directions(H, columns, free, 400, strength).directions
    for i, j in enumerate(columns):
        moved = H @ M[:, i]
        assert moved[j] == pytest.approx(1.0)
        scale = M[j, i]
        noise = np.sqrt(M[:, i] @ H @ M[:, i]) / scale
        allowed = strength * np.sqrt(2 * np.log(12) / 400) * noise * scale
        others = np.delete(np.arange(12), j)
        paying = others[~free[others]]
        assert np.abs(moved[paying]).max() <= 1.02 * allowed
        # Along columns that pay nothing, nothing changes at all.
        assert np.abs(moved[others[free[others]]]).max(initial=0.0) < 1e-9
        # Those that take part are at the limit.
        part = paying[M[paying, i] != 0]
        np.testing.assert_allclose(np.abs(moved[part]), allowed, rtol=0.02)


def test_a_column_that_never_varies_takes_no_part() -> None:
    H = draw_gram(5, 0)
    H[2] = 0.0
    H[:, 2] = 0.0
    b = np.zeros(5)
    sweep_others(H, 0, 0.01, 1e-9, b)
    assert b[2] == 0.0
    assert b[0] == 0.0
    assert b[1] != 0.0


def gram_of(X: np.ndarray) -> np.ndarray:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.asarray(Z.T @ Z / len(Z))


@pytest.mark.parametrize("others", [10, 120])
def test_each_level_of_a_full_set_of_dummies_is_a_combination_of_the_rest(others: int) -> None:
    """Other columns keep their directions, with fewer columns than rows and with more."""
    rng = np.random.default_rng(2)
    levels = np.eye(6)[rng.choice(6, 100, p=[0.3, 0.25, 0.2, 0.15, 0.06, 0.04])]
    H = gram_of(np.column_stack([levels, rng.standard_normal((100, others))]))
    p = len(H)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = find_directions(H, np.arange(12), np.zeros(p, bool), 100, 0.4, np.ones(p))
    assert found.combinations == {j: tuple(k for k in range(6) if k != j) for j in range(6)}
    assert not found.directions[:, :6].any()
    np.testing.assert_allclose(np.diagonal((H @ found.directions)[6:12, 6:]), 1.0)
    assert (found.leftover[6:] > 0).all()


@pytest.mark.parametrize("p", [20, 150])
def test_equal_columns_and_those_equal_to_unpenalised_ones_are_not_identified(p: int) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((100, p))
    X[:, 4] = -X[:, 1]
    X[:, 7] = X[:, 2]
    # Nearly equal ones are identified, poorly.
    X[:, 9] = X[:, 8] + 0.03 * rng.standard_normal(100)
    free = np.arange(p) == 7
    found = find_directions(gram_of(X), np.arange(10), free, 100, 0.4)
    assert found.combinations == {1: (4,), 4: (1,), 2: (7,), 7: (2,)}


def test_leftover_bias_is_that_of_uncertain_columns_and_small_beside_the_noise() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 30))
    for k in range(1, 30):
        X[:, k] = 0.98 * X[:, k - 1] + 0.2 * X[:, k]
    H = gram_of(X)
    columns = np.arange(30)
    unknown = 200 * rng.uniform(0.0, 0.15, 30)
    free = columns == 5
    plain = find_directions(H, columns, free, 200, 0.4)
    found = find_directions(H, columns, free, 200, 0.4, unknown)

    def ratios(M: np.ndarray) -> np.ndarray:
        rest = (H @ M - np.eye(30)) ** 2 * unknown[:, None]
        return np.asarray(rest.sum(axis=0) / np.diagonal(M.T @ H @ M))

    curvatures = np.diagonal(found.directions.T @ H @ found.directions)
    np.testing.assert_allclose(found.leftover, ratios(found.directions) * curvatures)
    assert not plain.leftover.any()
    assert ratios(plain.directions).max() > 1.0
    assert ratios(found.directions).max() <= MOST_LEFTOVER


def test_directions_of_smooth_curves_are_exact() -> None:
    """Many columns take part, so no theory bounds the bias that a penalised direction leaves."""
    rng = np.random.default_rng(1)
    curves = np.cumsum(rng.standard_normal((600, 8)) @ rng.standard_normal((8, 80)), axis=1)
    X = curves / curves.std(axis=0) + 0.05 * rng.standard_normal((600, 80))
    H = X.T @ X / 600
    unknown = np.full(80, 100.0)
    found = find_directions(H, np.arange(10), np.zeros(80, bool), 600, 0.4, unknown)
    assert not found.combinations
    np.testing.assert_allclose(H @ found.directions, np.eye(80, 10), atol=1e-6)
    assert not found.leftover.any()
    # With few rows per column, exact directions would only be noise.
    few = find_directions(H, np.arange(10), np.zeros(80, bool), 100, 0.4, unknown)
    assert few.leftover.all()
