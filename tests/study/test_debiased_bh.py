"""Debiased BH: p-values of all columns, and the step-up procedure."""

import numpy as np
import pytest
from helpers.fitting.folded import Records, draw_records
from scipy import stats
from sklearn.linear_model import LinearRegression

from fedlasso.study.debiased_bh import debiased_p_values, step_up


def test_steps_go_up_as_in_scipy() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        p_values = rng.uniform(size=30) ** 3
        adjusted = stats.false_discovery_control(p_values)
        for rate in (0.05, 0.1, 0.2):
            np.testing.assert_array_equal(step_up(p_values, rate), adjusted <= rate)
    assert not step_up(np.ones(5), 0.2).any()
    # The second alone is too large, but the third passes.
    assert step_up(np.array([0.01, 0.09, 0.095]), 0.1).all()


def test_with_many_rows_they_are_the_p_values_of_least_squares() -> None:
    records = draw_records(3, m=4000, p=6, noise=3.0)
    fit = LinearRegression().fit(records.X, records.y)
    A = np.column_stack([np.ones(4000), records.X])
    left = records.y - fit.predict(records.X)
    variance = left @ left / (4000 - 7) * np.diagonal(np.linalg.inv(A.T @ A))[1:]
    exact = 2 * stats.norm.sf(np.abs(fit.coef_) / np.sqrt(variance))
    np.testing.assert_allclose(debiased_p_values(records.folded), exact, atol=0.05)


def test_a_column_that_does_not_vary_is_never_discovered() -> None:
    records = draw_records(4, m=100, p=5)
    X = records.X.copy()
    X[:, 4] = 2.0
    p_values = debiased_p_values(Records(X, records.y, records.fold).folded)
    assert p_values[4] == 1.0
    assert (p_values[:3] < 0.01).all()


@pytest.mark.standard
def test_null_p_values_are_uniform() -> None:
    p_values = []
    for seed in range(40):
        records = draw_records(seed, m=120, p=30, active=3)
        p_values.append(debiased_p_values(records.folded)[3:])
    assert stats.kstest(np.concatenate(p_values), "uniform").statistic < 0.08
