"""Intervals and p-values of estimates and effects, against textbook answers."""

import numpy as np
import pytest
from helpers.loops import loop
from helpers.statistics_of import benjamini_hochberg, holm
from scipy import stats

from fedlasso.fitting.inference.estimates import Effects, Estimates


def make(scores: list[float], tests: int = 0) -> Estimates:
    values = np.array(scores)
    columns = np.arange(values.size)
    return Estimates(columns, values, np.ones(values.size), tests or values.size)


@loop("seed", range(20))
def test_adjusted_p_values_are_the_textbook_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = make(list(3 * rng.standard_normal(15)), tests=40)
    everything = np.append(found.p_values, np.ones(25))
    np.testing.assert_allclose(found.adjusted("bh"), benjamini_hochberg(everything)[:15])
    np.testing.assert_allclose(found.adjusted("holm"), holm(everything)[:15])


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_of_effects_hold_them_as_often_as_said(level: float) -> None:
    """Effects are drawn as they are thought to be: zero, or normal."""
    rng = np.random.default_rng(3)
    chances = np.array([1.0, 0.99, 0.9, 0.6, 0.97, 0.97])
    means = np.array([1.0, -1.0, 0.5, 0.1, 3.0, 0.01])
    spreads = np.array([0.5, 0.3, 0.4, 0.2, 0.1, 1.0])
    low, high = Effects(chances, means, spreads).intervals(level).T
    draws = means + spreads * rng.standard_normal((40_000, 6))
    draws[rng.random((40_000, 6)) >= chances] = 0.0
    tail = (1 - level) / 2
    # Four standard errors of 40,000 draws; zero alone has more than a tail of probability.
    slack = 4 * np.sqrt(tail * (1 - tail) / 40_000)
    assert ((draws < low).mean(axis=0) <= tail + slack).all()
    assert ((draws > high).mean(axis=0) <= tail + slack).all()
    assert ((draws <= low).mean(axis=0) >= tail - slack).all()
    assert ((draws >= high).mean(axis=0) >= tail - slack).all()
    # Without doubt it is the normal interval, and much doubt reaches zero.
    reach = stats.norm.ppf(1 - tail)
    np.testing.assert_allclose([low[0], high[0]], [1 - reach * 0.5, 1 + reach * 0.5])
    doubtful = Effects(np.array([0.85]), np.array([3.0]), np.array([0.1]))
    assert doubtful.intervals(level)[0, 0] == 0.0


def test_columns_found_at_a_smaller_rate_are_among_those_of_a_larger_one() -> None:
    chances = np.array([0.999, 0.7, 0.95, 0.9])
    effects = Effects(chances, np.ones(4), np.ones(4))
    for rate, expected in ((0.3, [0, 1, 2, 3]), (0.1, [0, 2, 3]), (0.001, [])):
        np.testing.assert_array_equal(np.flatnonzero(effects.discover(rate)[0]), expected)


def test_sites_that_differ_are_told() -> None:
    values = np.array([[1.0, 0.0], [1.1, 2.0], [0.9, 4.0]])
    found = Estimates(np.array([0, 1]), np.ones(2), np.ones(2), 2, values, np.full((3, 2), 0.25))
    p_value, share = found.heterogeneity()
    Q = (values[:, 1] - 2.0) @ (values[:, 1] - 2.0) / 0.25
    assert p_value[1] == pytest.approx(stats.chi2.sf(Q, 2))
    assert share[1] == pytest.approx((Q - 2) / Q)
    assert share[0] == 0.0
    assert p_value[0] > 0.9


def test_stretched_estimates_are_as_far_from_zero_as_before() -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    some = Estimates(np.array([0, 1]), np.ones(2), np.array([0.5, 0.2]), 2, values, values)
    wider = some.stretch(1.5)
    np.testing.assert_allclose(wider.p_values, some.p_values)
    np.testing.assert_allclose(wider.intervals(), 1.5 * some.intervals())
    assert wider.site_values is not None
    np.testing.assert_allclose(wider.site_values, 1.5 * values)
    np.testing.assert_allclose(wider.heterogeneity(), some.heterogeneity())
