"""Paths that share their gradients: certified, charged, and never above the budget."""

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites

from fedlasso import FedLassoError, InProcess, Ledger, Site, open_evidence
from fedlasso.fitting import ACTIVE
from fedlasso.fitting.candidates import adaptive_weights, refit_penalty
from fedlasso.fitting.paths import log_grid
from fedlasso.numerics import L1, LeastSquares, duality_gap, solve_reference

K, P = 3, 40


def pooled(sites: list[Site]) -> LeastSquares:
    X = np.vstack([s.training.X for s in sites])
    return LeastSquares(X, np.concatenate([s.training.y for s in sites]))


def test_every_gap_along_the_path_is_the_true_pooled_gap() -> None:
    sites = draw_sites()
    f = pooled(sites)
    evidence = open_evidence(InProcess(sites))
    points = evidence.path(evidence.grid(12))
    assert len(points) == 12
    for point in points:
        b, r = point.coefficients, f.residual(point.coefficients)
        gap = duality_gap(
            float(r @ r), float(r @ f.y), f.y_ss, f.gradient(b), b, point.penalty, f.m
        )
        best = solve_reference(f, point.lam).objective
        assert point.certificate.relative_gap <= 0.01
        assert point.certificate.gap == pytest.approx(gap, rel=1e-6, abs=1e-12)
        assert point.certificate.gap >= point.certificate.objective - best - 1e-12
        assert point.residual_ss == pytest.approx(float(r @ r), rel=1e-9)


def test_the_path_costs_less_than_its_fits_one_by_one() -> None:
    grid = open_evidence(draw_federation()).grid(12)
    together = open_evidence(draw_federation(), uploads=200)
    together.path(grid)
    alone = 0.0
    for penalty in grid:
        one = open_evidence(draw_federation(), uploads=200)
        one.fit(penalty)
        alone += one.budget.spent
    assert together.budget.spent < alone / 2


@pytest.mark.parametrize("uploads", [1, 2, 7, 15])
def test_uploads_are_charged_and_never_exceeded(uploads: int) -> None:
    ledger = Ledger(draw_federation())
    evidence = open_evidence(ledger, uploads)
    points = evidence.path(evidence.grid(20), tol=1e-6)
    assert points[0].active == 0
    assert len(points) < 20
    assert all(point.certificate.relative_gap <= 1e-6 for point in points)
    assert evidence.budget.spent <= uploads
    assert ledger.costs.total("training").upload == 8 * K * P * evidence.budget.spent
    assert ledger.costs.total().upload == 8 * K * (P * evidence.budget.spent + 2)


def test_out_of_uploads_a_fit_is_honest_about_its_gap() -> None:
    sites = draw_sites()
    f = pooled(sites)
    evidence = open_evidence(InProcess(sites), uploads=4)
    point = evidence.fit(L1(0.05), tol=1e-8)
    value = f.value(point.coefficients) + 0.05 * np.abs(point.coefficients).sum()
    assert point.certificate.objective == pytest.approx(value, rel=1e-10)
    assert point.certificate.relative_gap > 1e-8
    assert point.certificate.gap >= value - solve_reference(f, 0.05).objective


def test_a_reserve_is_left_over() -> None:
    evidence = open_evidence(draw_federation(), uploads=20)
    evidence.fit(L1(0.02), tol=0.0, reserve=8)
    assert evidence.budget.spent == 12


def test_adaptive_fits_solve_the_weighted_lasso() -> None:
    sites = draw_sites()
    f = pooled(sites)
    evidence = open_evidence(InProcess(sites))
    first = evidence.fit(L1(0.1), tol=1e-6)
    w = adaptive_weights(first.coefficients, cutoff=ACTIVE)
    second = evidence.fit(L1(0.02, w), first.coefficients, tol=1e-9)
    on = np.isfinite(w)
    other = solve_reference(LeastSquares(f.X[:, on] / w[on], f.y), 0.02)
    assert not second.coefficients[~on].any()
    np.testing.assert_allclose(second.coefficients[on], other.coefficients / w[on], atol=1e-6)
    form = L1(1.0, w)
    grid = log_grid(form.largest(f.gradient(np.zeros(P))), 5, 1e-3)
    assert evidence.path([form.at(lam) for lam in grid.tolist()])[0].active == 0


def test_a_relaxed_fit_is_least_squares_on_the_support() -> None:
    sites = draw_sites((60, 50, 40))
    f = pooled(sites)
    evidence = open_evidence(InProcess(sites))
    first = evidence.fit(L1(0.3))
    on = np.flatnonzero(first.coefficients)
    penalty = refit_penalty(first.coefficients, evidence.largest_penalty, phi=1e-9)
    refit = evidence.fit(penalty, first.coefficients, tol=1e-6)
    assert 0 < len(on) < 20
    assert not np.delete(refit.coefficients, on).any()
    exact = np.linalg.lstsq(f.X[:, on], f.y)[0]
    np.testing.assert_allclose(refit.coefficients[on], exact, atol=1e-3)
    assert refit.residual_ss <= first.residual_ss


def test_no_correlation_at_all_gives_an_empty_path() -> None:
    X = np.vstack([np.eye(3), -np.eye(3)])
    evidence = open_evidence(InProcess([Site("a", X, np.ones(6))]))
    points = evidence.path(evidence.grid(4))
    assert evidence.budget.spent == 1
    assert not any(point.active for point in points)


@pytest.mark.parametrize("uploads", [0, -1, 2.5])
def test_uploads_are_a_whole_number(uploads: int) -> None:
    with pytest.raises(FedLassoError, match="give a whole number, 1 or more"):
        open_evidence(draw_federation(), uploads)
