"""Every loss: its derivatives against differences, its conjugate and dual against a search."""

import numpy as np
import pytest
from helpers.losses_outside import Huber, Logistic
from helpers.responses import draw_response
from scipy.optimize import minimize, minimize_scalar

from fedlasso import FedLassoError
from fedlasso.numerics import (
    LOSSES,
    LeastSquares,
    Loss,
    Response,
    RowLoss,
    Sample,
    find_loss,
    make_sample,
)

ALL: list[Loss] = [*LOSSES.values(), Huber(), Logistic()]
every = pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
row_by_row = pytest.mark.parametrize(
    "loss", [loss for loss in ALL if isinstance(loss, RowLoss)], ids=lambda loss: loss.name
)
STEP = 2.0**-20


def rows(loss: Loss, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    eta = 2 * rng.standard_normal(count)
    return eta, draw_response(loss.name, np.zeros(count), rng)


@row_by_row
def test_derivatives_are_those_of_the_value(loss: RowLoss) -> None:
    eta, y = rows(loss)
    slope = (loss.value(eta + STEP, y) - loss.value(eta - STEP, y)) / (2 * STEP)
    np.testing.assert_allclose(loss.derivative(eta, y), slope, rtol=1e-6, atol=1e-6)
    bend = (loss.derivative(eta + STEP, y) - loss.derivative(eta - STEP, y)) / (2 * STEP)
    # Where a second derivative jumps, a difference across the jump is neither side's.
    jump = np.abs(loss.curvature(eta + STEP, y) - loss.curvature(eta - STEP, y))
    smooth = jump < 1e-3 * (1 + loss.curvature(eta, y))
    assert smooth.mean() > 0.9
    found = loss.curvature(eta, y)[smooth]
    np.testing.assert_allclose(found, bend[smooth], rtol=1e-5, atol=1e-5)
    assert (loss.curvature(eta, y) <= loss.smoothness * (1 + 1e-12)).all()
    assert (loss.curvature(eta, y) >= 0).all()


@row_by_row
def test_the_conjugate_is_the_largest_value_of_its_definition(loss: RowLoss) -> None:
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
    np.testing.assert_allclose(loss.conjugate(slopes, y), attained, rtol=1e-9, atol=1e-9)


def weighted(loss: Loss, count: int, seed: int = 0) -> tuple[np.ndarray, Response]:
    """Linear predictors, and a response with weights, offsets and tied times."""
    rng = np.random.default_rng(seed)
    y = draw_response(loss.name, rng.standard_normal(count), rng)
    response = Response.of(y, rng.uniform(0.2, 2.0, count), rng.standard_normal(count))
    return rng.standard_normal(count) + response.offset, response


@every
def test_slopes_and_curves_of_a_whole_sample_are_those_of_its_values(loss: Loss) -> None:
    eta, response = weighted(loss, 40)
    slopes = loss.slopes(eta, response)
    curved = loss.curve(eta, response, np.eye(40))
    for i in range(40):
        step = STEP * np.eye(40)[i]
        up = loss.values(eta + step, response).sum()
        down = loss.values(eta - step, response).sum()
        assert slopes[i] == pytest.approx((up - down) / (2 * STEP), abs=1e-6)
        bend = (loss.slopes(eta + step, response) - loss.slopes(eta - step, response)) / (2 * STEP)
        if loss.name != "huber":
            np.testing.assert_allclose(curved[:, i], bend, atol=1e-6)
    np.testing.assert_allclose(curved, curved.T, atol=1e-12)
    assert np.linalg.eigvalsh(curved)[0] > -1e-10


@every
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
def test_the_dual_value_is_below_the_least_that_orthogonal_predictors_cost(
    loss: Loss, scale: float
) -> None:
    eta, response = weighted(loss, 30, seed=1)
    u = scale * loss.slopes(eta, response)
    rng = np.random.default_rng(2)
    columns = rng.standard_normal((30, 3))
    if scale:
        columns -= np.outer(u, u @ columns) / (u @ u)

    def cost(b: np.ndarray) -> tuple[float, np.ndarray]:
        at = columns @ b + response.offset
        return float(loss.values(at, response).sum()), columns.T @ loss.slopes(at, response)

    best = minimize(cost, np.zeros(3), jac=True)
    dual = loss.dual(eta, response, scale)
    assert np.isfinite(dual)
    assert dual <= best.fun + 1e-9 * (1 + abs(best.fun))
    if scale == 1.0:
        # Fenchel and Young: the slopes at eta support the loss there.
        at = float(loss.values(eta, response).sum()) - float(u @ (eta - response.offset))
        assert dual == pytest.approx(at, rel=1e-9, abs=1e-9)


@every
def test_a_sample_is_the_mean_of_its_rows(loss: Loss) -> None:
    rng = np.random.default_rng(1)
    _, y = rows(loss, 30)
    X = rng.standard_normal((30, 4))
    b = rng.standard_normal(4)
    f = make_sample(X, y, loss)
    assert isinstance(f, LeastSquares) == (loss.name == "quadratic")
    plain = Sample(X, y, loss)
    response = Response.of(y)
    eta = X @ b
    assert f.value(b) == pytest.approx(float(loss.values(eta, response).sum() / 30), rel=1e-12)
    np.testing.assert_allclose(f.gradient(b), X.T @ loss.slopes(eta, response) / 30, atol=1e-12)
    np.testing.assert_allclose(f.errors(b), loss.deviance(eta, response), atol=1e-11)
    np.testing.assert_allclose(plain.gradient(b), f.gradient(b), atol=1e-12)
    block = X.T @ loss.curve(eta, response, X) / 30
    np.testing.assert_allclose(f.hessian(b, np.array([2, 0])), block[[2, 0]][:, [2, 0]], atol=1e-12)
    np.testing.assert_allclose(f.curvature_product(b, b), block @ b, atol=1e-11)
    if np.isfinite(loss.smoothness):
        top = np.linalg.eigvalsh(X.T @ X / 30)[-1]
        assert f.largest_curvature == pytest.approx(loss.smoothness * top, rel=1e-10)
    assert f.dual(b, 1.0) <= 30 * f.value(b) - 30 * float(f.gradient(b) @ b) + 1e-9


@pytest.mark.parametrize("name", ["quadratic", "binomial", "poisson"])
def test_an_intercept_of_its_own_is_the_best_one_and_its_slopes_add_up_to_nothing(
    name: str,
) -> None:
    loss = find_loss(name)
    _, response = weighted(loss, 60)
    X = np.random.default_rng(3).standard_normal((60, 3))
    b = np.array([0.5, -0.3, 0.0])
    own = make_sample(X, response, loss, effect=True)
    ones = Sample(np.column_stack([X, np.ones(60)]), response, loss)
    free = minimize(
        lambda a: ones.value(np.append(b, a)),
        np.zeros(1),
        jac=lambda a: ones.gradient(np.append(b, a))[-1:],
        options={"gtol": 1e-10},
    )
    assert own.value(b) == pytest.approx(free.fun, rel=1e-12)
    np.testing.assert_allclose(own.gradient(b), ones.gradient(np.append(b, free.x))[:3], atol=1e-8)
    H = ones.hessian(np.append(b, free.x), np.arange(4))
    profiled = H[:3, :3] - np.outer(H[:3, 3], H[3, :3]) / H[3, 3]
    np.testing.assert_allclose(own.hessian(b, np.arange(3)), profiled, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "value"), [("binomial", 1.0), ("binomial", 0.0), ("poisson", 0.0)]
)
def test_a_site_whose_rows_all_say_the_same_says_nothing_with_an_own_intercept(
    name: str, value: float
) -> None:
    X = np.random.default_rng(0).standard_normal((20, 2))
    f = make_sample(X, Response.of(np.full(20, value)), find_loss(name), effect=True)
    b = np.array([1.0, -1.0])
    assert f.value(b) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(f.gradient(b), 0.0, atol=1e-12)
    assert np.isfinite(f.hessian(b, np.arange(2))).all()
    assert np.isfinite(f.dual(b, 0.5))


def test_weights_and_offsets_of_least_squares_are_taken_into_rows_and_responses() -> None:
    loss = find_loss("quadratic")
    _, response = weighted(loss, 25)
    X = np.random.default_rng(4).standard_normal((25, 3))
    b = np.array([0.2, -1.0, 0.7])
    taken = make_sample(X, response, loss)
    plain = Sample(X, response, loss)
    assert taken.value(b) == pytest.approx(plain.value(b), rel=1e-12)
    np.testing.assert_allclose(taken.gradient(b), plain.gradient(b), atol=1e-12)
    np.testing.assert_allclose(taken.errors(b), plain.errors(b), atol=1e-12)


@pytest.mark.parametrize("name", ["cox", "cox with Breslow ties"])
def test_survival_times_without_an_event_cost_nothing(name: str) -> None:
    loss = find_loss(name)
    response = Response.of(-np.arange(1.0, 6.0))
    eta = np.linspace(-1, 1, 5)
    assert loss.values(eta, response).sum() == 0.0
    assert not loss.slopes(eta, response).any()
    assert not loss.curve(eta, response, np.eye(5)).any()
    assert loss.dual(eta, response, 0.5) == 0.0


@pytest.mark.parametrize("name", ["cox", "cox with Breslow ties"])
def test_survival_with_linear_predictors_far_apart_has_no_holes(name: str) -> None:
    loss = find_loss(name)
    rng = np.random.default_rng(0)
    response = Response.of(draw_response("cox", np.zeros(50), rng))
    eta = 2000 * rng.standard_normal(50)
    assert np.isfinite(loss.values(eta, response)).all()
    assert np.isfinite(loss.slopes(eta, response)).all()
    assert np.isfinite(loss.curve(eta, response, np.eye(50))).all()
    assert np.isfinite(loss.dual(eta, response, 0.5))


def test_an_unknown_loss_is_named() -> None:
    with pytest.raises(FedLassoError, match="no loss is called 'hinge'; known: quadratic"):
        find_loss("hinge")
