"""Directions in which one column alone changes, against what they must be by definition."""

import numpy as np
import pytest
from helpers.loops import loop

from fedlasso.numerics.debiasing import find_directions, sweep_others


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
