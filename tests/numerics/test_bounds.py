"""Bounds on coefficients: proximal steps, conjugates, minima of quadratics and certificates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from fedlasso import FedLassoError
from fedlasso.numerics import L1, Array, Bounds, ElasticNet, duality_gap, stationarity
from fedlasso.numerics.quadratic_lasso import minimize_within

FAR = 50.0
RANGES = Bounds(
    np.array([0.0, -0.4, -np.inf, -1.0, -np.inf, 0.0]),
    np.array([np.inf, 0.2, 0.0, 3.0, np.inf, 0.0]),
)
WEIGHTS = np.array([1.0, 0.0, 0.5, 2.0, 1.0, 1.0])
PENALTIES = [
    L1(0.4, bounds=RANGES),
    L1(0.4, WEIGHTS, bounds=RANGES),
    ElasticNet(0.7, None, 4 / 7, bounds=RANGES),
    ElasticNet(0.7, WEIGHTS, 4 / 7, bounds=RANGES),
]
every = pytest.mark.parametrize("penalty", PENALTIES, ids=["l1", "weights", "net", "both"])


def cost_of_one(penalty: L1, k: int, x: float) -> float:
    """What one coefficient pays, the others being zero."""
    b = np.zeros(6)
    b[k] = x
    return penalty.value(b)


@every
@pytest.mark.parametrize("step", [0.3, 2.0])
def test_the_proximal_step_solves_its_problem_within_bounds(penalty: L1, step: float) -> None:
    for v in np.random.default_rng(0).standard_normal((10, 6)) * 2:
        b = penalty.prox(v, step)
        assert RANGES.hold(b)
        for k in range(6):

            def cost(x: float, k: int = k, v: Array = v) -> float:
                return float((x - v[k]) ** 2 / 2 + step * cost_of_one(penalty, k, x))

            ends = (max(RANGES.lower[k], -FAR), min(RANGES.upper[k], FAR))
            found = minimize_scalar(cost, bounds=ends, options={"xatol": 1e-10})
            assert cost(float(b[k])) <= found.fun + 1e-12
    assert penalty.value(np.full(6, 10.0)) == np.inf


@every
def test_columns_of_models_are_stepped_like_each_alone(penalty: L1) -> None:
    V = np.random.default_rng(1).standard_normal((6, 3)) * 2
    steps = np.array([0.1, 1.0, 3.0])
    together = penalty.prox(V, steps)
    for j in range(3):
        assert together[:, j].tobytes() == penalty.prox(V[:, j], float(steps[j])).tobytes()


@pytest.mark.full
@every
@given(seed=st.integers(0, 1000))
def test_the_conjugate_is_the_largest_value_of_its_definition(penalty: L1, seed: int) -> None:
    z = 3 * np.random.default_rng(seed).standard_normal(6)
    scale = min(1.0, penalty.dual_limit(-z))
    if penalty.weights is None or z[1] > 0:
        # Both sides of the second coefficient have an end, and the others pay.
        assert scale > 0
    z *= scale
    largest = 0.0
    for k in range(6):
        # It is concave, so the largest value over a line of points is close to the largest of all.
        ends = (max(RANGES.lower[k], -FAR), min(RANGES.upper[k], FAR))
        points = np.append(np.linspace(*ends, 401), 0.0)
        largest += max(z[k] * x - cost_of_one(penalty, k, x) for x in points)
    found = penalty.conjugate(z)
    assert found >= largest - 1e-12
    assert found <= largest + 0.1 * (1 + np.abs(z).sum())


def test_only_a_side_without_an_end_limits_dual_points() -> None:
    penalty = L1(0.4, bounds=RANGES)
    # The loss falls when coefficients fall: only the third and the fifth can do so without end.
    assert penalty.dual_limit(np.array([9.0, 9.0, 1.0, 9.0, 2.0, 9.0])) == pytest.approx(0.2)
    assert penalty.dual_limit(np.array([-4.0, -9.0, -9.0, -9.0, 0.0, -9.0])) == pytest.approx(0.1)
    assert penalty.dual_limit(np.array([9.0, -9.0, -9.0, 9.0, 0.0, 9.0])) == np.inf


@given(
    seed=st.integers(0, 10**6), collinear=st.sampled_from([1.0, 1e-2, 1e-5]), p=st.integers(1, 30)
)
def test_a_quadratic_is_solved_within_bounds(seed: int, collinear: float, p: int) -> None:
    """At the minimum every pull is zero, leads out of the range, or is less than what is paid."""
    rng = np.random.default_rng(seed)
    X = collinear * rng.standard_normal((40, p)) + rng.standard_normal((40, 1))
    H = X.T @ X / 40
    slopes = X.T @ rng.standard_normal(40) / 40
    b = np.zeros(p)
    pays = rng.choice([0.0, 0.02], p)
    lower = rng.choice([0.0, -0.1, -np.inf], p)
    upper = rng.choice([0.0, 0.1, np.inf], p)
    bounds = Bounds(lower, upper)
    x = minimize_within(H, slopes, pays, b, bounds)
    assert bounds.hold(x)
    gradient = slopes + H @ (x - b)
    pull = np.where(
        x == 0,
        -np.sign(gradient) * np.maximum(np.abs(gradient) - pays, 0),
        -(gradient + pays * np.sign(x)),
    )
    scale = np.abs(slopes).max() + np.abs(H).max() * np.abs(x).sum()
    assert np.abs(bounds.allowed(x, pull)).max() <= 1e-12 * scale


@every
@given(seed=st.integers(0, 10**6))
def test_a_gap_of_least_squares_is_zero_at_the_minimum_and_never_below_what_is_lost(
    penalty: L1, seed: int
) -> None:
    """With one record per column, X = sqrt(m) I, the minimum is the proximal step from y."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(6) * 2
    whole = np.sqrt(6) * y

    def gap_at(b: Array) -> float:
        r = np.sqrt(6) * (y - b)
        return duality_gap(
            float(r @ r), float(r @ whole), float(whole @ whole), b - y, b, penalty, 6
        )

    def objective(b: Array) -> float:
        return float(((y - b) ** 2).sum()) / 2 + penalty.value(b)

    best = penalty.prox(y, 1.0)
    assert stationarity(best, best - y, penalty) <= 1e-12
    assert gap_at(best) <= 1e-12 * float(y @ y)
    for far in (1e-6, 1e-2, 1.0, 20.0):
        other = RANGES.clip(best + far * rng.standard_normal(6))
        lost = objective(other) - objective(best)
        assert gap_at(other) >= lost - 1e-12 * objective(other)


def test_ranges_hold_zero_and_keep_their_unit() -> None:
    with pytest.raises(FedLassoError, match="must include zero"):
        Bounds(np.array([0.1]), np.array([1.0]))
    with pytest.raises(FedLassoError, match="must include zero"):
        Bounds(np.array([np.nan]), np.array([1.0]))
    bounds = Bounds(np.array([-1.0, 0.0, -1.0]), np.array([np.inf, 3.0, 2.0]))
    scaled = bounds.scaled(np.array([0.5, 2.0, 0.0]))
    assert scaled.lower.tolist() == [-2.0, 0.0, -np.inf]
    assert scaled.upper.tolist() == [np.inf, 1.5, np.inf]
    assert repr(L1(0.4, bounds=bounds)) != repr(L1(0.4))
    assert repr(L1(0.4, bounds=bounds)) != repr(L1(0.4, bounds=scaled))
    assert L1(0.4, bounds=bounds).at(0.2).bounds is bounds


def test_the_largest_strength_is_of_the_columns_that_bounds_leave() -> None:
    slopes = np.array([-3.0, 2.0, 1.0])
    unbounded = np.full(3, np.inf)
    form = L1(1.0, bounds=Bounds(-unbounded, np.array([0.0, np.inf, np.inf])))
    assert not form.plain
    assert form.largest(slopes) == 2.0
    # Bounds that leave none make every strength alike; it is not zero all the same.
    form = L1(1.0, bounds=Bounds(np.zeros(3), np.array([0.0, np.inf, np.inf])))
    assert form.largest(slopes) == 3.0


def test_rounding_does_not_move_a_coefficient_away_from_its_bound() -> None:
    bounds = Bounds(np.array([0.0, -np.inf, 0.0]), np.array([0.7, 0.5, np.inf]))
    below = np.nextafter([0.7, 0.5, 0.0], 0.0)
    above = np.nextafter([0.7, 0.5, 3.0], 9.0)
    assert bounds.snap(below).tolist() == [0.7, 0.5, 0.0]
    assert bounds.snap(above).tolist() == [0.7, 0.5, above[2]]
    assert bounds.snap(np.array([0.3, -0.2, 0.1])).tolist() == [0.3, -0.2, 0.1]
