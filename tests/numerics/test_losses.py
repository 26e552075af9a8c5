"""Every loss: its derivatives against differences, its conjugate against a search."""

import numpy as np
import pytest
from losses_outside import Huber, Logistic
from scipy.optimize import minimize_scalar

from fedlasso import FedLassoError
from fedlasso.numerics import LOSSES, LeastSquares, Loss, Sample, find_loss, make_sample

every = pytest.mark.parametrize(
    "loss", [*LOSSES.values(), Huber(), Logistic()], ids=lambda loss: loss.name
)
STEP = 2.0**-20


def rows(loss: Loss, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    eta = 2 * rng.standard_normal(count)
    y = (rng.random(count) < 0.5) if isinstance(loss, Logistic) else rng.standard_normal(count)
    return eta, y.astype(np.float64)


@every
def test_derivatives_are_those_of_the_value(loss: Loss) -> None:
    eta, y = rows(loss)
    slope = (loss.value(eta + STEP, y) - loss.value(eta - STEP, y)) / (2 * STEP)
    np.testing.assert_allclose(loss.derivative(eta, y), slope, atol=1e-6)
    bend = (loss.derivative(eta + STEP, y) - loss.derivative(eta - STEP, y)) / (2 * STEP)
    # Where a second derivative jumps, a difference across the jump is neither side's.
    smooth = np.abs(loss.curvature(eta + STEP, y) - loss.curvature(eta - STEP, y)) < 1e-3
    assert smooth.mean() > 0.9
    np.testing.assert_allclose(loss.curvature(eta, y)[smooth], bend[smooth], atol=1e-5)
    assert (loss.curvature(eta, y) <= loss.smoothness * (1 + 1e-12)).all()
    assert (loss.curvature(eta, y) >= 0).all()


@every
def test_the_conjugate_is_the_largest_value_of_its_definition(loss: Loss) -> None:
    eta, y = rows(loss, 25)
    slopes = loss.derivative(eta, y)
    for u_i, y_i in zip(0.9 * slopes, y, strict=True):
        u, target = np.array([u_i]), np.array([y_i])

        def minus(e: float, u: np.ndarray = u, target: np.ndarray = target) -> float:
            return float(loss.value(np.array([e]), target)[0] - u[0] * e)

        best = minimize_scalar(minus, bounds=(-60, 60), method="bounded", options={"xatol": 1e-10})
        assert loss.conjugate(u, target)[0] == pytest.approx(-best.fun, abs=1e-7)
    # At a slope the supremum is attained where the slope was taken (Fenchel and Young).
    attained = slopes * eta - loss.value(eta, y)
    np.testing.assert_allclose(loss.conjugate(slopes, y), attained, atol=1e-9)


@every
def test_a_sample_is_the_mean_of_its_rows(loss: Loss) -> None:
    rng = np.random.default_rng(1)
    _, y = rows(loss, 30)
    X = rng.standard_normal((30, 4))
    b = rng.standard_normal(4)
    f = make_sample(X, y, loss)
    assert isinstance(f, LeastSquares) == (loss.name == "quadratic")
    plain = Sample(X, y, loss)
    assert f.value(b) == pytest.approx(float(loss.value(X @ b, y).mean()), rel=1e-12)
    np.testing.assert_allclose(f.gradient(b), X.T @ loss.derivative(X @ b, y) / 30, atol=1e-12)
    np.testing.assert_allclose(f.errors(b), 2 * loss.value(X @ b, y), atol=1e-12)
    np.testing.assert_allclose(plain.gradient(b), f.gradient(b), atol=1e-12)
    top = np.linalg.eigvalsh(X.T @ X / 30)[-1]
    assert f.largest_curvature == pytest.approx(loss.smoothness * top, rel=1e-10)
    assert f.dual(b, 1.0) <= 30 * f.value(b) - 30 * float(f.gradient(b) @ b) + 1e-9


def test_an_unknown_loss_is_named() -> None:
    with pytest.raises(FedLassoError, match="no loss is called 'hinge'; known: quadratic"):
        find_loss("hinge")
