"""The exact path and the reference solution."""

from collections.abc import Callable

import numpy as np
import pytest
from helpers.draws import objective
from helpers.loops import loop
from helpers.swept import swept_lasso
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import lars_path

import fedlasso.numerics.path as path_module
from fedlasso.numerics import (
    L1,
    Array,
    LeastSquares,
    lasso_path,
    local_sweeps,
    penalty_grid,
    solve_reference,
    stationarity,
)
from fedlasso.numerics.homotopy import (
    ActiveColumns,
    HomotopyState,
    advance,
    enter,
    homotopy_at,
    leave,
)
from fedlasso.numerics.path import relative_gap
from fedlasso.numerics.repair import feature_sign_search

Draw = Callable[..., LeastSquares]


def assert_solved(f: LeastSquares, alone: bool = True) -> None:
    """Assert that the default grid is solved, by a gap computed here and not by the path.

    With `alone`, the homotopy must do it without the fallback.
    """
    path = lasso_path(f, penalty_grid(f))
    assert path.met.all()
    if alone:
        assert path.fallbacks == 0
    assert np.isfinite(path.coefficients).all()
    for b, lam in zip(path.coefficients.T, path.penalties, strict=True):
        r = f.y - f.X @ b
        # a dual feasible point: the residual scaled into |X'theta|/m <= lam
        theta = r * min(1.0, lam / max(np.abs(f.X.T @ r).max() / f.m, 1e-300))
        dual = (f.y @ f.y - (f.y - theta) @ (f.y - theta)) / (2 * f.m)
        gap = objective(f.X, f.y, b, lam) - dual
        assert gap <= 1e-10 * (f.y @ f.y) / (2 * f.m)


@pytest.mark.parametrize(
    ("m", "p", "rho"),
    [
        (268, 600, 0.5),
        (80, 600, 0.5),
        (268, 600, 0.8),
        (264, 1000, 0.5),
        (40, 600, 0.5),
        (400, 300, 0.5),
        (50, 50, 0.9),
        (3, 100, 0.0),
        (1, 20, 0.5),
        (20, 1, 0.5),
        (1, 1, 0.0),
    ],
)
def test_designs_of_the_study_and_extreme_shapes(draw: Draw, m: int, p: int, rho: float) -> None:
    assert_solved(draw(m, p, rho))


@loop("seed", range(3))
def test_dependent_columns(draw: Draw, seed: int) -> None:
    f = draw(60, 30, seed=seed)
    rng = np.random.default_rng(seed)
    twins = np.hstack([f.X, f.X, -f.X[:, :5]])
    near = np.hstack([f.X, f.X + 1e-6 * rng.standard_normal(f.X.shape)])
    nearer = np.hstack([f.X, f.X + 1e-9 * rng.standard_normal(f.X.shape)])
    sums = np.hstack([f.X, f.X[:, :10] + f.X[:, 10:20]])
    zero = np.hstack([f.X, np.zeros((60, 1))])
    assert_solved(LeastSquares(zero, f.y))
    # Rounding decides whether the homotopy gets through dependent columns by itself.
    for X in (twins, sums, near, nearer):
        assert_solved(LeastSquares(X, f.y), alone=False)


@loop("seed", range(5))
@pytest.mark.parametrize(("m", "p"), [(60, 100), (60, 30), (8, 30), (16, 16)])
def test_integer_designs_with_ties(m: int, p: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (m, p)).astype(float)
    y = X[:, :5].sum(axis=1) + rng.integers(-1, 2, m)
    # Rounding decides which of several columns that tie comes first.
    assert_solved(LeastSquares(X, y), alone=False)
    assert_solved(LeastSquares(np.eye(m), np.ones(m)), alone=False)


def test_no_response_and_no_score(draw: Draw) -> None:
    f = draw(20, 6)
    silent = LeastSquares(f.X, np.zeros(20))
    path = lasso_path(silent, penalty_grid(silent))
    assert not path.penalties.any()
    assert not path.coefficients.any()
    assert path.met.all()


def test_grid(draw: Draw) -> None:
    f = draw(20, 6)
    grid = penalty_grid(f)
    assert grid[0] == np.abs(f.score).max()
    assert grid.size == 30
    assert grid[-1] == pytest.approx(1e-3 * grid[0], rel=1e-12)
    assert_allclose(grid[1:] / grid[:-1], (1e-3) ** (1 / 29), rtol=1e-12)


def test_zeros_down_to_lambda_max_and_not_below(draw: Draw) -> None:
    f = draw(50, 20)
    top = float(np.abs(f.score).max())
    path = lasso_path(f, top * np.array([5.0, 1.0, 1 - 1e-9]))
    assert np.count_nonzero(path.coefficients, axis=0).tolist() == [0, 0, 1]
    assert path.knots == 1


@pytest.mark.parametrize("gram", [True, False])
def test_agrees_with_lars_and_its_knots(draw: Draw, gram: bool) -> None:
    f = draw(100, 150, gram=gram)
    path = lasso_path(f, penalty_grid(f))
    assert ("gram" in f.design.__dict__) == gram
    alphas, _, coefficients = lars_path(f.X, f.y, method="lasso", alpha_min=path.penalties[-1])
    for row, ours in zip(coefficients, path.coefficients, strict=True):
        theirs = np.interp(path.penalties[::-1], alphas[::-1], row[::-1])[::-1]
        assert_allclose(ours, theirs, atol=1e-9, rtol=0)
    assert path.knots == alphas.size - 1
    assert path.fallbacks == 0


@pytest.mark.parametrize("gram", [True, False])
def test_inverse_by_bordering_and_deflation(draw: Draw, gram: bool) -> None:
    f = draw(30, 10)
    D = ActiveColumns.of(f.columns, f.gram if gram else np.empty((0, 0)), f.design.norms)
    S = homotopy_at(D, float(np.abs(f.score).max()), np.zeros(f.p), f.score, f.m)
    for k in (7, 2, 5, 0, 9):
        assert enter(D, S, k, 1.0)
    for place in (1, 3):
        assert not leave(D, S, place)
    A = S.active[: S.a]
    assert A.tolist() == [7, 9, 5]
    assert S.place[A].tolist() == [0, 1, 2]
    assert_allclose(S.inverse[:3, :3], np.linalg.inv(f.gram[np.ix_(A, A)]), rtol=1e-12)


def test_agrees_with_coordinate_descent(draw: Draw) -> None:
    f = draw(120, 40)
    lam = 0.1 * float(np.abs(f.score).max())
    ours = lasso_path(f, np.array([lam])).coefficients[:, 0]
    assert_allclose(ours, swept_lasso(f.X, f.y, lam).coef_, atol=1e-9)
    assert_allclose(ours, local_sweeps(f, np.zeros((40, 1)), lam, 10_000)[:, 0], atol=1e-11)


@settings(max_examples=30)
@given(
    m=st.integers(1, 10), p=st.integers(1, 15), seed=st.integers(0, 10**6), levels=st.integers(1, 3)
)
def test_small_integer_problems(m: int, p: int, seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-levels, levels + 1, (m, p)).astype(float)
    y = rng.integers(-levels, levels + 1, m).astype(float)
    f = LeastSquares(X, y)
    path = lasso_path(f, penalty_grid(f, count=8))
    assert path.met.all()
    assert np.isfinite(path.coefficients).all()


def test_the_fallback_repairs_a_lost_homotopy(draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    f = draw(40, 60)
    grid = penalty_grid(f, count=10)
    good = lasso_path(f, grid)

    def lost(D: ActiveColumns, S: HomotopyState, targets: Array) -> int:
        if not failing:
            return advance(D, S, targets)
        failing.pop()
        S.lam[0] = targets[0]
        S.b[:] += 1.0
        S.inverse[:] = np.nan
        return 0

    monkeypatch.setattr(path_module, "advance", lost)
    failing = [1, 2]
    path = lasso_path(f, grid)
    # after each repair the homotopy goes on from the repaired solution
    assert path.fallbacks == 2
    assert path.met.all()
    assert_allclose(path.coefficients, good.coefficients, atol=1e-9)


@loop("seed", range(3))
def test_feature_sign_search_from_anywhere(draw: Draw, seed: int) -> None:
    f = draw(30, 20, seed=seed)
    twins = LeastSquares(np.hstack([f.X, f.X]), f.y)
    lam = 0.05 * float(np.abs(f.score).max())
    for start in (np.zeros(40), np.random.default_rng(seed).standard_normal(40)):
        b = feature_sign_search(twins, lam, start)
        assert relative_gap(twins, b, lam) <= 1e-12


@pytest.mark.parametrize(
    "penalties", [[1.0, 2.0], [1.0, -1.0], [np.nan], [np.inf]], ids=["up", "negative", "nan", "inf"]
)
def test_bad_penalties(draw: Draw, penalties: list[float]) -> None:
    with pytest.raises(
        ValueError, match="penalties must be finite, not negative and in decreasing"
    ):
        lasso_path(draw(5, 3), np.array(penalties))


@pytest.mark.parametrize(("p", "rho"), [(300, 0.5), (600, 0.8), (1000, 0.8)])
def test_reference_of_pooled_problems(draw: Draw, p: int, rho: float) -> None:
    f = draw(800, p, rho)
    lam = 0.05 * float(np.abs(f.score).max())
    reference = solve_reference(f, lam)
    b = reference.coefficients
    gradient = f.X.T @ (f.X @ b - f.y) / f.m
    assert reference.met
    assert reference.method == "homotopy"
    assert stationarity(b, gradient, L1(lam)) <= 1e-9
    assert reference.objective == pytest.approx(objective(f.X, f.y, b, lam), rel=1e-12)


def test_reference_says_when_it_is_not_one(draw: Draw) -> None:
    reference = solve_reference(draw(20, 10), 0.1, tol=0.0)
    assert reference.met == (reference.stationarity == 0.0)
    assert reference.method == ("homotopy" if reference.met else "fallback")
    assert reference.stationarity <= 1e-12
