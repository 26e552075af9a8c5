"""Chances of columns to have an effect: by Bayes' rule, by brute force, and on clear cases."""

from itertools import product
from math import comb

import numpy as np
import pytest
from helpers.loops import loop
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from fedlasso.numerics import Array
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.spike_slab import (
    FDR_MARGIN,
    PARTNERS,
    Posterior,
    draw_effects,
    draw_nonlocal,
    log_odds,
    sample_posterior,
    select_by_fdr,
    swap_effects,
)


def draw(m: int, truth: Array, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, truth.size))
    return X, X @ truth + rng.standard_normal(m)


def normal_of(X: Array, y: Array) -> Normal:
    V = np.column_stack([X, y])
    return Normal.of_products(V.T @ V, len(y))


@pytest.mark.full
@pytest.mark.parametrize("nonlocal_prior", [False, True])
@loop("seed", range(3))
def test_draws_follow_the_posterior_that_enumeration_finds(seed: int, nonlocal_prior: bool) -> None:
    """With given variances the probabilities of supports of three columns are Bayes' rule.

    Two more columns that are not looked at have no effect. Effects that stay clear of zero have the
    density of normal ones times their squares over the slab, whose mean draws tell.
    """
    m, noise, slab, p = 12, 1.3, 0.7, 5
    X, y = draw(m, np.array([0.6, 0.0, -0.4]), seed)
    X[:, 1] += X[:, 0]
    X /= np.sqrt((X**2).mean(axis=0))
    weights = {}
    sizes = {}
    chance = np.random.default_rng([seed, 1])
    harmonic = sum(1 / k for k in range(1, p + 1))
    for support in product([False, True], repeat=3):
        taken = np.array(support)
        covariance = noise * np.eye(m) + slab * X[:, taken] @ X[:, taken].T
        count = int(taken.sum())
        prior = 1.0 if count == 0 else 1 / (count * harmonic * comb(p, count))
        weights[support] = prior * multivariate_normal.pdf(y, np.zeros(m), covariance)
        spread = np.linalg.inv(X[:, taken].T @ X[:, taken] / noise + np.eye(count) / slab)
        luck = chance.standard_normal((200_000, count)) @ np.linalg.cholesky(spread).T
        effects = np.zeros((200_000, 3))
        effects[:, taken] = spread @ X[:, taken].T @ y / noise + luck
        factor = (
            np.prod(effects[:, taken] ** 2 / slab, axis=1) if nonlocal_prior else np.ones(200_000)
        )
        weights[support] *= factor.mean()
        sizes[support] = np.array([(factor @ effects**power) for power in (1, 2)]) / factor.sum()
    total = sum(weights.values())
    exact = [sum(w for s, w in weights.items() if s[k]) / total for k in range(3)]
    mean, square = sum(w * sizes[s] for s, w in weights.items()) / total
    gram = X.T @ X / m
    reach = (gram**PARTNERS).sum(axis=1) - 1
    b = np.zeros(3)
    rest = X.T @ y / m
    totals = np.zeros((3, 3))
    rng = np.random.default_rng(seed)
    draws = 20_000
    for _ in range(draws):
        lucks = rng.random(3), rng.standard_normal(3)
        active = int(np.count_nonzero(b))
        shape = log_odds(p), nonlocal_prior
        draw_effects(gram, b, rest, active, m / noise, slab, *shape, *lucks, totals)
        if nonlocal_prior and (active := int(np.count_nonzero(b))):
            moves = rng.random((active, 3)), rng.standard_normal(active)
            swap_effects(gram, reach, b, rest, np.flatnonzero(b), m / noise, slab, *moves)
    np.testing.assert_allclose(totals[0] / draws, exact, atol=0.02)
    np.testing.assert_allclose(totals[1] / draws, mean, atol=0.02)
    np.testing.assert_allclose(totals[2] / draws, square, atol=0.04)
    np.testing.assert_allclose(rest, X.T @ (y - X @ b) / m, atol=1e-9)


def test_swaps_alone_keep_which_of_two_columns_has_the_effect_in_proportion() -> None:
    """One effect, of one of three columns with unequal partners: Bayes' rule over the columns."""
    m, noise, slab = 30, 1.0, 0.5
    X, y = draw(m, np.array([0.3, 0.0, 0.0]))
    X[:, 1] += 2 * X[:, 0]
    X /= np.sqrt((X**2).mean(axis=0))
    gram = X.T @ X / m
    own = m / noise + 1 / slab
    centre = X.T @ y / noise / own
    exact = np.exp(own * centre**2 / 2) * (centre**2 + 1 / own)
    b = np.array([0.1, 0.0, 0.0])
    rest = X.T @ (y - X @ b) / m
    reach = (gram**PARTNERS).sum(axis=1) - 1
    rng = np.random.default_rng(0)
    visits = np.zeros(3)
    for _ in range(40_000):
        moves = rng.random((1, 3)), rng.standard_normal(1)
        swap_effects(gram, reach, b, rest, np.flatnonzero(b), m / noise, slab, *moves)
        visits += b != 0
    np.testing.assert_allclose(visits / 40_000, exact / exact.sum(), atol=0.02)


def test_runs_from_either_of_two_nearly_collinear_columns_agree() -> None:
    rng = np.random.default_rng(2)
    X, y = draw(200, np.array([1.0, 0.0, 0.0, 0.0, 0.0]))
    X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(200)
    starts = np.eye(5)[:2]
    one, other = (
        sample_posterior(normal_of(X, y), 5, start, nonlocal_prior=True).probabilities[:2]
        for start in starts
    )
    np.testing.assert_allclose(one, other, atol=0.15)
    assert max(one) < 0.9


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1))
def test_no_other_columns_have_a_larger_expected_f1(
    probabilities: list[float], empty: float
) -> None:
    each = np.array(probabilities)
    support = Posterior(each, each, each, empty).support

    def expected(taken: NDArray[np.bool_]) -> float:
        return float(2 * each[taken].sum() / (taken.sum() + each.sum())) if taken.any() else empty

    every = [np.array(taken) for taken in product([False, True], repeat=each.size)]
    assert expected(support) == pytest.approx(max(map(expected, every)), abs=1e-12)


@pytest.mark.parametrize("centre", [-3.0, -0.4, 0.0, 1.0, 9.0])
def test_draws_clear_of_zero_have_the_share_below_them_that_integration_finds(
    centre: float,
) -> None:
    def density(z: float) -> float:
        return float((centre + z) ** 2 * norm.pdf(z))

    for luck in (-2.5, -0.3, 0.0, 1.7):
        z = draw_nonlocal(centre, luck)
        below = quad(density, -12, z, epsabs=1e-11, limit=200)[0] / (centre**2 + 1)
        assert below == pytest.approx(norm.cdf(luck), abs=1e-8)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.99))
def test_no_larger_list_of_likely_columns_has_so_few_false_ones(
    probabilities: list[float], rate: float
) -> None:
    each = np.array(probabilities)
    likely = select_by_fdr(each, rate)

    def false(taken: NDArray[np.bool_]) -> float:
        return float((1 - each)[taken].mean()) if taken.any() else 0.0

    assert false(likely) <= FDR_MARGIN * rate
    for taken in product([False, True], repeat=each.size):
        other = np.array(taken)
        if other.sum() > likely.sum():
            assert false(other) > FDR_MARGIN * rate - 1e-12


def test_effects_near_zero_are_less_likely_where_they_stay_clear_of_it() -> None:
    X, y = draw(200, np.array([1.0, -1.0, 1.0, 0.15, 0.0]))
    plain, nonlocal_prior = (
        sample_posterior(
            normal_of(X, y), 5, np.zeros(5), nonlocal_prior=nonlocal_prior
        ).probabilities
        for nonlocal_prior in (False, True)
    )
    assert nonlocal_prior[3] < plain[3]
    assert nonlocal_prior[0] > 0.99


def test_clear_effects_are_found_whatever_the_units_of_a_column() -> None:
    truth = np.zeros(30)
    truth[[3, 17]] = 1.0, -1.0
    X, y = draw(150, truth)
    found = sample_posterior(normal_of(X, y), 30, np.zeros(30))
    assert found.support.nonzero()[0].tolist() == [3, 17]
    assert found.empty == 0.0
    np.testing.assert_allclose(found.mean[[3, 17]], truth[[3, 17]], atol=0.3)
    units = np.geomspace(1e-6, 1e6, 30)
    other = sample_posterior(normal_of(X * units, y), 30, np.zeros(30))
    np.testing.assert_allclose(other.probabilities, found.probabilities, atol=1e-6)
    np.testing.assert_allclose(other.mean * units, found.mean, atol=1e-6)


def test_a_column_of_zeros_and_a_response_of_zeros_have_no_effect() -> None:
    X, y = draw(50, np.array([1.0, 0.0, 0.0]))
    X[:, 1] = 0.0
    found = sample_posterior(normal_of(X, y), 3, np.zeros(3))
    assert found.probabilities[1] == found.mean[1] == 0.0
    assert found.support[0]
    nothing = sample_posterior(normal_of(X, 0 * y), 3, np.zeros(3))
    assert nothing.empty == 1.0
    assert not nothing.support.any()


def test_more_columns_elsewhere_make_an_effect_less_likely() -> None:
    X, y = draw(60, np.array([0.35, 0.0, 0.0]))
    few, many = (
        sample_posterior(normal_of(X, y), p, np.zeros(3)).probabilities[0] for p in (3, 3000)
    )
    assert many < few
