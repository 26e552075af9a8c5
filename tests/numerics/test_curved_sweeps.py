"""Sweeps over quadratic models of a loss: reductions, optimality, and no step upwards."""

import numpy as np
import pytest
from helpers.loops import loop
from helpers.responses import draw_response

from fedlasso.numerics import (
    L1,
    LOSSES,
    Array,
    ElasticNet,
    LeastSquares,
    Penalty,
    Response,
    Sample,
    local_sweeps,
    solve_reference,
    stationarity,
)
from fedlasso.numerics.curved_sweeps import Descent, curved_sweeps, minimize_smooth
from fedlasso.numerics.quadratic_lasso import keep_convex

WEIGHTS = np.array([1.0, 0.0, 2.0, np.inf, 1.0, 1.0, 1.0, 0.5])
each_loss = pytest.mark.parametrize("loss", sorted(LOSSES))


def draw(loss: str, m: int = 50, p: int = 8, seed: int = 0, effect: bool = False) -> Sample:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, p)) * np.linspace(0.3, 2.0, p)
    y = draw_response(loss, X[:, 0] - 0.5 * X[:, 2], rng)
    response = Response.of(y, rng.uniform(0.5, 2, m), 0.3 * rng.standard_normal(m))
    return Sample(X, response, LOSSES[loss], effect)


@each_loss
@loop("seed", range(5))
def test_row_curvature_bounds_the_second_derivative(loss: str, seed: int) -> None:
    f = draw(loss, 20, seed=seed)
    eta = 2 * np.random.default_rng(seed).standard_normal(20)
    second = f.loss.curve(eta, f.response, np.eye(20))
    beyond = np.diag(f.loss.row_curvature(eta, f.response)) - second
    assert np.linalg.eigvalsh(beyond)[0] >= -1e-10


@pytest.mark.parametrize("epochs", [1, 3])
def test_sweeps_of_least_squares_are_those_of_its_own_kernel(epochs: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 12))
    y = rng.standard_normal(30)
    start = rng.standard_normal(12)
    own = local_sweeps(LeastSquares(X, y), start[:, None], 0.1, epochs)[:, 0]
    general = curved_sweeps(Sample(X, y, LOSSES["quadratic"]), start, L1(0.1), epochs)
    np.testing.assert_allclose(general, own, atol=1e-12)


def test_fits_of_least_squares_are_the_exact_ones() -> None:
    rng = np.random.default_rng(1)
    f = LeastSquares(rng.standard_normal((30, 40)), rng.standard_normal(30))
    b, sweeps = minimize_smooth(f, L1(0.1), np.zeros(40))
    np.testing.assert_allclose(b, solve_reference(f, 0.1).coefficients, atol=1e-9)
    assert sweeps > 1


@each_loss
@pytest.mark.parametrize(
    "penalty", [L1(0.05), L1(0.05, WEIGHTS), ElasticNet.with_ridge(0.05, 0.3, WEIGHTS)], ids=repr
)
@pytest.mark.parametrize("effect", [False, True])
def test_fits_are_optimal_with_shifts_and_damping(
    loss: str, penalty: Penalty, effect: bool
) -> None:
    f = draw(loss, effect=effect and LOSSES[loss].intercept)
    rng = np.random.default_rng(3)
    linear = 0.1 * rng.standard_normal(f.p)
    for shift, ridge in ((None, 0.0), (linear, 0.2)):
        b, _ = minimize_smooth(f, penalty, rng.standard_normal(f.p), shift, ridge)
        slopes = f.gradient(b) + ridge * b + (0.0 if shift is None else shift)
        assert stationarity(b, slopes, penalty) <= 1e-8
        assert not np.isinf(penalty.weights[b != 0]).any() if penalty.weights is not None else True


@each_loss
@pytest.mark.parametrize("size", [0.0, 1.0, 50.0])
def test_no_sweep_leads_up(loss: str, size: float) -> None:
    f = draw(loss)
    start: Array = size * np.random.default_rng(4).standard_normal(f.p)
    descent = Descent(f, L1(0.02), start)
    for _ in range(10):
        before = descent.value
        descent.step(1)
        assert descent.value <= before * (1 + 1e-12)
        assert descent.value == pytest.approx(f.value(descent.b) + L1(0.02).value(descent.b))
    assert np.isfinite(descent.b).all()


def test_second_derivatives_that_curve_down_are_lifted_and_others_left_alone() -> None:
    convex = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert keep_convex(convex) is convex
    mixed = np.array([[2.0, 3.0], [3.0, 2.0]])
    lifted = keep_convex(mixed)
    assert np.linalg.eigvalsh(lifted) == pytest.approx([2e-3, 5.0])
    assert np.array_equal(lifted, lifted.T)
    assert keep_convex(np.zeros((0, 0))).shape == (0, 0)
