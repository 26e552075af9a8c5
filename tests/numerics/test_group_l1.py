"""The group Lasso's penalty and its quadratic problems, against definitions and slow oracles."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fedlasso.errors import FedLassoError
from fedlasso.numerics import L1, Array, GroupL1, penalty_fields, rebuild_penalty, stationarity
from fedlasso.numerics.quadratic_groups import minimize_block, solve_group_step

GROUPS = np.array([0.0, 1, 1, 0, 4, 5, 5, 5])
WEIGHTS = np.array([1.0, 2, 2, 1, 0, 0.5, 0.5, 0.5])


def test_a_value_is_the_sum_of_weighted_lengths() -> None:
    b = np.array([3.0, 1, -2, 4, 7, 0, 0, 0])
    expected = 0.3 * (np.sqrt(2) * 5 + 2 * np.sqrt(2) * np.sqrt(5))
    assert GroupL1(0.3, WEIGHTS, groups=GROUPS).value(b) == pytest.approx(expected, rel=1e-14)


def test_groups_of_one_are_the_lasso() -> None:
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2, 6)
    one, other = GroupL1(0.4, weights, groups=np.arange(6.0)), L1(0.4, weights)
    v = rng.normal(size=(6, 3))
    steps = np.array([0.1, 0.7, 2.0])
    np.testing.assert_allclose(one.prox(v, steps), other.prox(v, steps), atol=1e-15)
    slopes = rng.normal(size=6)
    for name in ("value", "dual_limit", "largest"):
        assert getattr(one, name)(slopes) == pytest.approx(getattr(other, name)(slopes))
    np.testing.assert_allclose(one.steepness(slopes), other.steepness(slopes))


def test_a_proximal_step_is_a_minimum() -> None:
    rng = np.random.default_rng(1)
    penalty = GroupL1(0.4, WEIGHTS, groups=GROUPS)
    for _ in range(20):
        v = 2 * rng.normal(size=8)
        b = penalty.prox(v, 1.3)

        def objective(x: Array, v: Array = v) -> float:
            return float((x - v) @ (x - v)) / 2 + 1.3 * penalty.value(x)

        for _ in range(30):
            assert objective(b) <= objective(b + 0.1 * rng.normal(size=8))


def test_no_group_enters_above_the_largest_strength() -> None:
    rng = np.random.default_rng(2)
    penalty = GroupL1(1.0, WEIGHTS, groups=GROUPS)
    slopes = rng.normal(size=8)
    slopes[4] = 0.0  # unpenalised
    largest = penalty.largest(slopes)
    assert not penalty.at(largest * 1.0001).prox(-slopes, 1.0).any()
    entered = np.flatnonzero(penalty.at(largest * 0.9999).prox(-slopes, 1.0))
    np.testing.assert_array_equal(entered, penalty.whole_groups(entered[:1]))
    assert penalty.at(largest).dual_limit(slopes) == pytest.approx(1.0)
    assert penalty.at(largest).steepness(slopes)[entered] == pytest.approx(1.0)


def test_weights_are_those_of_groups_and_messages_keep_everything() -> None:
    with pytest.raises(FedLassoError, match="columns of one group must have the same"):
        GroupL1(1.0, np.arange(8.0), groups=GROUPS)
    penalty = GroupL1(0.2, WEIGHTS, groups=GROUPS)
    again = rebuild_penalty(**penalty_fields(penalty))
    b = np.arange(8.0)
    assert again.value(b) == penalty.value(b)
    assert repr(again) == repr(penalty)


def test_a_block_is_minimized_as_by_a_general_solver() -> None:
    rng = np.random.default_rng(3)
    for size in (1, 2, 5):
        for _ in range(5):
            e, pull = rng.uniform(1e-3, 3, size), rng.normal(size=size)

            def objective(v: Array, e: Array = e, pull: Array = pull) -> float:
                return float(v @ (e * v / 2 - pull)) + 0.5 * float(np.linalg.norm(v))

            found = minimize_block(e, pull, 0.5)
            slow = minimize(objective, pull, method="Nelder-Mead", options={"maxiter": 4000})
            assert objective(found) <= slow.fun + 1e-12


@pytest.mark.parametrize("rows", [6, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_quadratic_problems_are_solved_to_rounding_errors(rows: int, weighted: bool) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(rows, 8))
    X[:, 2] = X[:, 1] + 1e-4 * rng.normal(size=rows)
    H = X.T @ X / rows
    score = X.T @ (X[:, 0] - X[:, 5] + rng.normal(size=rows)) / rows
    start = rng.normal(size=8)
    for strength in (0.01, 0.1, 0.5):
        penalty = GroupL1(strength, WEIGHTS if weighted else None, groups=GROUPS)
        # Slopes at the start, so that those at zero are the scores.
        b = solve_group_step(H, H @ start - score, penalty, start)
        assert stationarity(b, H @ b - score, penalty) <= 1e-11
        for place in penalty.places:
            assert b[place].all() or not b[place].any()
