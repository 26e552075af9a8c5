"""Solvers of local surrogate problems: shifted Lasso, ridge factor, moments."""

import numpy as np
import pytest

from fedlasso.numerics import L1, LeastSquares, solve_reference, stationarity
from fedlasso.numerics.descent import shifted_lasso
from fedlasso.numerics.moments import from_moments
from fedlasso.procedures.splitting import RidgeFactor


def draw(m: int, p: int, gram: bool | None = None) -> LeastSquares:
    rng = np.random.default_rng(m + p)
    X = rng.standard_normal((m, p))
    return LeastSquares(X, X[:, 0] + rng.standard_normal(m), gram)


@pytest.mark.parametrize(("m", "p"), [(40, 15), (15, 40), (1, 3)])
@pytest.mark.parametrize("ridge", [0.05, 2.0])
def test_shifted_lasso_is_stationary_in_both_forms(m: int, p: int, ridge: float) -> None:
    f = draw(m, p)
    rng = np.random.default_rng(0)
    score, start = rng.standard_normal(p), rng.standard_normal(p)
    G = f.X.T @ f.X / m + ridge * np.eye(p)
    gram, _ = shifted_lasso(draw(m, p, gram=True), score, 0.3, ridge, start)
    residual, _ = shifted_lasso(draw(m, p, gram=False), score, 0.3, ridge, start)
    np.testing.assert_allclose(gram, residual, atol=1e-11)
    assert stationarity(gram, G @ gram - score, L1(0.3)) <= 1e-12


def test_unshifted_without_ridge_it_is_the_lasso() -> None:
    f = draw(40, 15)
    b, _ = shifted_lasso(f, f.score, 0.1, 0.0, np.zeros(15))
    np.testing.assert_allclose(b, solve_reference(f, 0.1).coefficients, atol=1e-11)


@pytest.mark.parametrize("gram", [True, False])
def test_a_pinned_coordinate_stays(gram: bool) -> None:
    f = draw(40, 15, gram)
    start = np.zeros(15)
    start[3] = 0.7
    b, _ = shifted_lasso(f, f.score, 0.1, 0.0, start, pinned=3)
    assert b[3] == 0.7
    rest = np.delete(np.arange(15), 3)
    gradient = (f.X.T @ f.X / f.m @ b - f.score)[rest]
    assert stationarity(b[rest], gradient, L1(0.1)) <= 1e-12


@pytest.mark.parametrize(("m", "p"), [(40, 15), (15, 40), (1, 3), (5, 1)])
def test_ridge_factor_solves_through_either_side(m: int, p: int) -> None:
    f = draw(m, p)
    v = np.random.default_rng(0).standard_normal(p)
    x = RidgeFactor(f, 0.3).solve(v)
    np.testing.assert_allclose(f.X.T @ (f.X @ x) / m + 0.3 * x, v, atol=1e-12)


@pytest.mark.parametrize(("m", "p"), [(40, 15), (15, 40), (1, 3)])
def test_moments_are_all_the_lasso_needs(m: int, p: int) -> None:
    f = draw(m, p)
    again = from_moments(f.X.T @ f.X / m, f.score)
    np.testing.assert_allclose(again.gram, f.X.T @ f.X / m, atol=1e-12)
    np.testing.assert_allclose(again.score, f.score, atol=1e-12)
    b, b_again = (solve_reference(g, 0.2).coefficients for g in (f, again))
    np.testing.assert_allclose(b_again, b, atol=1e-10)


def test_no_moments_is_an_empty_problem() -> None:
    assert not solve_reference(from_moments(np.zeros((2, 2)), np.zeros(2)), 0.1).coefficients.any()
