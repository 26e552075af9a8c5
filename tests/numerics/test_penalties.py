"""The Lasso's penalty, with and without weights: value, proximal step, dual limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from fedlasso import FedLassoError
from fedlasso.numerics import L1, find_penalty

WEIGHTS = np.array([1.0, 0.0, 2.0, np.inf, 0.5])
both = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])


@both
@pytest.mark.parametrize("step", [0.3, 2.0])
def test_the_proximal_step_solves_its_problem(weights: np.ndarray | None, step: float) -> None:
    penalty = L1(0.7, weights)
    v = np.random.default_rng(0).standard_normal(5) * 2
    b = penalty.prox(v, step)
    finite = np.isfinite(penalty.each(5))
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
    with pytest.raises(FedLassoError, match="no penalty is called 'l0'; known: l1"):
        find_penalty("l0")
    for lam in (-1.0, np.nan, np.inf):
        with pytest.raises(FedLassoError, match="give a finite number, zero or more"):
            L1(lam)
