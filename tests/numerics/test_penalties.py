"""Penalties, with and without weights: value, proximal step, dual limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from fedlasso import FedLassoError
from fedlasso.numerics import (
    L1,
    Array,
    ElasticNet,
    Penalty,
    duality_gap,
    find_penalty,
    penalty_fields,
    rebuild_penalty,
    stationarity,
)

WEIGHTS = np.array([1.0, 0.0, 2.0, np.inf, 0.5])
both = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])


@both
@pytest.mark.parametrize("step", [0.3, 2.0])
def test_the_proximal_step_solves_its_problem(weights: np.ndarray | None, step: float) -> None:
    penalty = L1(0.7, weights)
    v = np.random.default_rng(0).standard_normal(5) * 2
    b = penalty.prox(v, step)
    finite = np.isfinite(penalty.thresholds(5))
    assert not b[~finite].any()

    def cost(x: np.ndarray) -> float:
        whole = np.zeros(5)
        whole[finite] = x
        return float(((whole - v) ** 2)[finite].sum() / 2 + step * penalty.value(whole))

    other = minimize(cost, v[finite], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert cost(b[finite]) <= other.fun + 1e-9


@both
def test_columns_have_their_own_steps(weights: np.ndarray | None) -> None:
    penalty = L1(0.4, weights)
    V = np.random.default_rng(1).standard_normal((5, 3))
    steps = np.array([0.1, 1.0, 3.0])
    together = penalty.prox(V, steps)
    for j in range(3):
        assert together[:, j].tobytes() == penalty.prox(V[:, j], float(steps[j])).tobytes()


@both
@given(seed=st.integers(0, 1000))
def test_within_the_dual_limit_zero_is_optimal(weights: np.ndarray | None, seed: int) -> None:
    penalty = L1(0.4, weights)
    gradient = np.random.default_rng(seed).standard_normal(5)
    if weights is not None:
        gradient[1] = 0.0  # it pays nothing, so it must have no slope
    limit = penalty.dual_limit(gradient)
    assert not penalty.prox(-limit * gradient * (1 - 1e-12), 1.0).any()
    assert penalty.prox(-limit * gradient * (1 + 1e-9), 1.0).any()


def test_what_pays_nothing_allows_no_slope() -> None:
    assert L1(0.4, WEIGHTS).dual_limit(np.ones(5)) == 0.0
    assert L1(0.0).dual_limit(np.ones(5)) == 0.0
    assert L1(0.4).dual_limit(np.zeros(5)) == np.inf


def test_strength_and_names() -> None:
    penalty = L1(0.4, WEIGHTS)
    assert penalty.at(0.2).lam == 0.2
    assert penalty.at(0.2).weights is WEIGHTS
    assert repr(penalty) != repr(L1(0.4)) != repr(L1(0.5))
    assert find_penalty("l1") is L1
    with pytest.raises(FedLassoError, match="no penalty is called 'l0'; known: l1, elastic net"):
        find_penalty("l0")
    for lam in (-1.0, np.nan, np.inf):
        with pytest.raises(FedLassoError, match="give a finite number, zero or more"):
            L1(lam)


@both
@pytest.mark.parametrize("ridge", [0.0, 0.2, 5.0])
@pytest.mark.parametrize("step", [0.3, 2.0])
def test_the_elastic_nets_proximal_step_solves_its_problem(
    weights: np.ndarray | None, step: float, ridge: float
) -> None:
    penalty = ElasticNet.with_ridge(0.7, ridge, weights)
    pays = penalty.thresholds(5)
    ridges = penalty.smooth_part(5)
    for v in np.random.default_rng(0).standard_normal((20, 5)) * 2:
        b = penalty.prox(v, step)
        for k in range(5):
            if not np.isfinite(pays[k]):
                assert b[k] == 0.0
                continue

            def cost(x: float, k: int = k, v: np.ndarray = v) -> float:
                paid = pays[k] * abs(x) + ridges[k] / 2 * x * x
                return float((x - v[k]) ** 2 / 2 + step * paid)

            found = minimize_scalar(cost, bounds=(-8.0, 8.0), options={"xatol": 1e-10})
            # The cost is 1-strongly convex, so a cost within e is a point within sqrt(2 e).
            assert cost(float(b[k])) <= found.fun + 1e-12
            assert b[k] == pytest.approx(found.x, abs=1e-6)


@both
def test_an_elastic_net_without_a_ridge_is_a_lasso(weights: np.ndarray | None) -> None:
    net = ElasticNet(0.4, weights)
    lasso = L1(0.4, weights)
    for b in np.random.default_rng(0).standard_normal((20, 5)):
        gradient = b.copy()
        model = np.where(np.isfinite(lasso.thresholds(5)), b, 0.0)
        assert net.value(model) == lasso.value(model)
        assert np.array_equal(net.prox(b, 0.7), lasso.prox(b, 0.7))
        assert net.dual_limit(gradient) == lasso.dual_limit(gradient)
        assert net.conjugate(lasso.dual_limit(gradient) * gradient) == 0.0


@both
@given(seed=st.integers(0, 1000))
def test_the_conjugate_of_a_net_is_the_largest_value_of_its_definition(
    weights: np.ndarray | None, seed: int
) -> None:
    net = ElasticNet.with_ridge(0.4, 0.3, weights)
    finite = np.isfinite(net.thresholds(5))
    z = 3 * np.random.default_rng(seed).standard_normal(5)
    z[net.free(5)] = 0.0
    assert net.dual_limit(z) == np.inf
    # The largest value is where z is the slope of what is paid: the proximal point of that.
    pays = net.thresholds(5)
    ridges = net.smooth_part(5)
    b = np.zeros(5)
    on = finite & (ridges > 0)
    b[on] = np.sign(z[on]) * np.maximum(np.abs(z[on]) - pays[on], 0.0) / ridges[on]
    assert net.conjugate(z) == pytest.approx(float(z @ b) - net.value(b), abs=1e-12)


@both
@pytest.mark.parametrize("ridge", [0.2, 5.0])
def test_an_elastic_net_costs_the_lasso_and_half_its_squares(
    weights: np.ndarray | None, ridge: float
) -> None:
    net = ElasticNet.with_ridge(0.4, ridge, weights)
    steps = np.array([0.1, 1.0, 3.0])
    for V in np.random.default_rng(0).standard_normal((20, 5, 3)):
        b = np.where(np.isfinite(net.thresholds(5)), V[:, 0], 0.0)
        on = b != 0
        squares = float((b**2)[on] @ (np.ones(5) if weights is None else weights)[on])
        assert net.value(b) == pytest.approx(L1(0.4, weights).value(b) + ridge / 2 * squares)
        together = net.prox(V, steps)
        for j in range(3):
            assert together[:, j].tobytes() == net.prox(V[:, j], float(steps[j])).tobytes()


def test_a_net_scales_both_parts_with_its_strength() -> None:
    net = ElasticNet(0.5, WEIGHTS, 0.75)
    assert (net.at(2.0).lam, net.at(2.0).ridge) == (1.5, 0.5)
    assert net.at(0.2).weights is WEIGHTS
    assert len({repr(net), repr(L1(0.5, WEIGHTS)), repr(ElasticNet(0.5, WEIGHTS, 0.5))}) == 3
    for lam, ridge in ((0.3, 0.01), (1e-3, 2.0), (0.0, 0.4), (0.7, 0.0), (0.0, 0.0)):
        own = ElasticNet.with_ridge(lam, ridge)
        assert (own.lam, own.ridge) == pytest.approx((lam, ridge), rel=1e-12)
    with pytest.raises(FedLassoError, match=r"l1_ratio is 1\.5; give a number between 0 and 1"):
        ElasticNet(0.5, None, 1.5)


@pytest.mark.parametrize("penalty", [L1(0.4), L1(0.4, WEIGHTS), ElasticNet(0.4, WEIGHTS, 0.3)])
def test_a_penalty_travels_as_its_fields(penalty: L1) -> None:
    assert repr(rebuild_penalty(**penalty_fields(penalty))) == repr(penalty)


def test_a_penalty_offers_what_it_defines() -> None:
    class Counted(Penalty):
        name = "count for tests"
        convex = False

        def value(self, b: Array) -> float:
            return self.strength * float(np.count_nonzero(b))

    count = Counted(0.4)
    assert not count.offers("prox")
    assert not count.offers("dual_limit")
    assert not count.offers("convex")
    assert count.offers("uniform")
    assert count.offers("separable")
    assert not count.plain
    with pytest.raises(FedLassoError, match="the penalty 'count for tests' has no proximal step"):
        count.prox(np.ones(2), 1.0)
    assert L1(0.4).plain
    assert ElasticNet(0.4).plain
    assert not ElasticNet(0.4, None, 0.5).plain
    assert not L1(0.4, WEIGHTS).plain


@given(seed=st.integers(0, 10**6), ridge=st.floats(0.0, 10.0), lam=st.floats(0.01, 3.0))
def test_the_minimiser_of_a_net_is_where_its_proximal_step_stands_still(
    seed: int, ridge: float, lam: float
) -> None:
    """With one record per column, X = sqrt(m) I, the minimiser is the proximal step from y."""
    y = np.random.default_rng(seed).standard_normal(6) * 2
    net = ElasticNet.with_ridge(lam, ridge)
    b = net.prox(y, 1.0)
    assert stationarity(b, b - y, net) <= 1e-12
    r = np.sqrt(6) * (y - b)
    whole = np.sqrt(6) * y
    gap = duality_gap(float(r @ r), float(r @ whole), float(whole @ whole), b - y, b, net, 6)
    assert gap <= 1e-12 * float(y @ y)
    # Anywhere else the gap is at least what is lost.
    other = b + np.random.default_rng(seed).standard_normal(6)
    r = np.sqrt(6) * (y - other)
    gap = duality_gap(
        float(r @ r), float(r @ whole), float(whole @ whole), other - y, other, net, 6
    )
    lost = ((y - other) ** 2).sum() / 2 + net.value(other) - ((y - b) ** 2).sum() / 2 - net.value(b)
    assert gap >= lost - 1e-12 * float(y @ y)
