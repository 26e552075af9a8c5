"""The objective, the duality gap and the stationarity map."""

from collections.abc import Callable

import numpy as np
import pytest
from helpers.draws import objective
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso.numerics import (
    L1,
    Array,
    LeastSquares,
    duality_gap,
    lasso_path,
    soft_threshold,
    stationarity,
)
from fedlasso.numerics.path import GAP

Draw = Callable[..., LeastSquares]


def gap_at(f: LeastSquares, b: Array, lam: float) -> float:
    r = f.y - f.X @ b
    return duality_gap(
        float(r @ r), float(r @ f.y), float(f.y @ f.y), -f.X.T @ r / f.m, b, L1(lam), f.m
    )


def test_soft_threshold_by_hand() -> None:
    v = np.array([3.0, -3.0, 0.5, -0.5, 0.0])
    assert soft_threshold(v, 1.0).tolist() == [2.0, -2.0, 0.0, 0.0, 0.0]
    assert soft_threshold(v, 0.0).tolist() == v.tolist()


@settings(max_examples=30)
@given(
    m=st.integers(1, 12),
    p=st.integers(1, 12),
    seed=st.integers(0, 1000),
    share=st.floats(0.01, 1.5),
    scale=st.floats(0.0, 2.0),
)
def test_gap_bounds_the_distance_to_the_minimum(
    draw: Draw, m: int, p: int, seed: int, share: float, scale: float
) -> None:
    f = draw(m, p, seed=seed)
    lam = share * float(np.abs(f.score).max())
    best = lasso_path(f, np.array([lam])).coefficients[:, 0]
    b = best + scale * np.random.default_rng(seed).standard_normal(p)
    distance = objective(f.X, f.y, b, lam) - objective(f.X, f.y, best, lam)
    # What is called the minimum is one but for the gap that the path promises.
    slack = GAP * f.value(np.zeros(p)) + 1e-12
    assert distance >= -slack
    assert gap_at(f, b, lam) >= distance - slack


def test_gap_closes_at_the_minimum_and_uses_the_best_scaling(draw: Draw) -> None:
    f = draw(40, 15)
    lam = 0.2 * float(np.abs(f.score).max())
    best = lasso_path(f, np.array([lam])).coefficients[:, 0]
    assert gap_at(f, best, lam) <= GAP * f.value(np.zeros(15))
    # any other feasible multiple of the residual gives a larger gap
    b = 1.1 * best
    r = f.y - f.X @ b
    edge = lam / np.abs(f.X.T @ r / f.m).max()
    for s in np.linspace(-edge, edge, 21):
        dual = (f.y @ f.y - (f.y - s * r) @ (f.y - s * r)) / (2 * f.m)
        assert gap_at(f, b, lam) <= objective(f.X, f.y, b, lam) - dual + 1e-12


def test_gap_without_penalty_or_residual(draw: Draw) -> None:
    f = draw(10, 3)
    assert gap_at(f, np.zeros(3), 0.0) == pytest.approx(f.value(np.zeros(3)))
    assert gap_at(LeastSquares(f.X, 0 * f.y), np.zeros(3), 0.0) == 0.0
    exact = LeastSquares(np.eye(2), np.ones(2))
    assert gap_at(exact, np.ones(2), 0.5) == pytest.approx(1.0)


def test_stationarity_vanishes_only_at_the_minimum(draw: Draw) -> None:
    f = draw(40, 15)
    lam = 0.2 * float(np.abs(f.score).max())
    best = lasso_path(f, np.array([lam])).coefficients[:, 0]
    assert stationarity(best, f.gradient(best), L1(lam)) < 1e-12
    assert stationarity(0.9 * best, f.gradient(0.9 * best), L1(lam)) > 1e-3
