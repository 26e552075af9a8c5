"""Fits, their certificates and statuses."""

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites, objective
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import InProcess, Ledger, Site, Status, certify, fit
from fedlasso.fitting import fix_penalty
from fedlasso.numerics import Array, LeastSquares, solve_reference
from fedlasso.procedures import find_procedure


def pooled(sites: list[Site]) -> tuple[Array, Array]:
    X = np.vstack([s.training.X for s in sites])
    return X, np.concatenate([s.training.y for s in sites])


def test_one_site_is_the_pooled_lasso() -> None:
    (site,) = draw_sites((60,))
    result = fit(InProcess([site]), "CD", penalty=0.1, rounds=200, epochs=5)
    reference = solve_reference(site.least_squares, 0.1)
    np.testing.assert_allclose(result.coefficients, reference.coefficients, atol=1e-9)
    assert result.status is Status.OPTIMAL
    assert result.certificate is not None
    assert result.certificate.relative_gap <= 1e-8


def test_averaging_does_not_reach_the_pooled_lasso_and_says_so() -> None:
    result = fit(draw_federation(), "CD", penalty=0.1, rounds=200, epochs=5)
    assert result.status is Status.SHORT
    assert "more rounds or another procedure" in result.status.value
    assert result.certificate is not None
    assert "above the best possible objective" in str(result.certificate)


def test_no_certificate_is_missing_not_zero() -> None:
    result = fit(draw_federation(), "CD", penalty=0.1, rounds=2, certified=False)
    assert result.certificate is None
    assert result.status is Status.UNCERTIFIED
    assert "certificate" not in result.costs.kinds


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    lam=st.floats(0.01, 2.0),
    scale=st.floats(0.0, 2.0),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4),
)
def test_certificate_bounds_the_true_gap(
    seed: int, lam: float, scale: float, sizes: list[int]
) -> None:
    sites = draw_sites(sizes, p=6, seed=seed)
    ledger = Ledger(InProcess(sites))
    b = scale * np.random.default_rng(seed).standard_normal(6)
    certificate = certify(ledger, fix_penalty(ledger, lam), b)
    X, y = pooled(sites)
    value = objective(X, y, b, lam)
    best = solve_reference(LeastSquares(X, y), lam).objective
    assert certificate.objective == pytest.approx(value, rel=1e-12)
    assert certificate.gap >= value - best - 1e-9 * value


def test_certificate_is_tight_at_the_optimum() -> None:
    sites = draw_sites()
    X, y = pooled(sites)
    ledger = Ledger(InProcess(sites))
    b = solve_reference(LeastSquares(X, y), 0.1).coefficients
    assert certify(ledger, fix_penalty(ledger, 0.1), b).relative_gap <= 1e-10


def test_a_ledger_given_is_the_ledger_used_and_a_fit_reports_its_own_share() -> None:
    ledger = Ledger(draw_federation())
    first = fit(ledger, "CD", penalty=0.1, rounds=2)
    second = fit(ledger, "CD", penalty=0.1, rounds=2)
    assert first.costs.entries == second.costs.entries
    assert (first.costs + second.costs).entries == ledger.costs.entries


def test_rules_choose_among_the_same_candidates() -> None:
    least = fit(draw_federation(), "ST", penalty=0.05, rounds=5, rule="min")
    sparse = fit(draw_federation(), "ST", penalty=0.05, rounds=5, rule="1se")
    assert np.array_equal(least.candidates, sparse.candidates)
    assert np.count_nonzero(sparse.coefficients) <= np.count_nonzero(least.coefficients)
    assert sparse.setting in find_procedure("ST")().settings


def test_a_repeated_question_is_answered_from_memory_with_the_same_bits() -> None:
    federation = draw_federation()
    first = fit(federation, "CD", penalty=0.1, rounds=20, epochs=3)
    again = fit(federation, "CD", penalty=0.1, rounds=20, epochs=3)
    fresh = fit(draw_federation(), "CD", penalty=0.1, rounds=20, epochs=3)
    assert first.coefficients.tobytes() == again.coefficients.tobytes()
    assert first.coefficients.tobytes() == fresh.coefficients.tobytes()
    assert first.costs.entries == again.costs.entries


def test_wide_sites_never_build_a_gram() -> None:
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((100, 20_000)))
    site = Site("wide", X, X[:, 0] + rng.standard_normal(100), copy=False)
    assert np.shares_memory(site.training.X, X)
    fit(InProcess([site]), "CD", penalty=0.5, rounds=2)
    assert "gram" not in vars(site.training.design)
