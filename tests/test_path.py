"""Paths that share their gradients: certified, charged, and never above the budget."""

import numpy as np
import pytest
from draws import draw_federation, draw_sites

from fedlasso import Explorer, FedLassoError, InProcess, Ledger, Site
from fedlasso.fitting.session import ebic
from fedlasso.numerics import LeastSquares, duality_gap, solve_reference

K, P = 3, 40


def pooled(sites: list[Site]) -> LeastSquares:
    X = np.vstack([s.training.X for s in sites])
    return LeastSquares(X, np.concatenate([s.training.y for s in sites]))


def test_every_gap_along_the_path_is_the_true_pooled_gap() -> None:
    sites = draw_sites()
    f = pooled(sites)
    explorer = Explorer(InProcess(sites))
    points = explorer.path(explorer.grid(12))
    assert len(points) == 12
    for point in points:
        b, r = point.coefficients, f.residual(point.coefficients)
        gap = duality_gap(float(r @ r), float(r @ f.y), f.y_ss, f.gradient(b), b, point.lam, f.m)
        best = solve_reference(f, point.lam).objective
        assert point.certificate.relative_gap <= 0.01
        assert point.certificate.gap == pytest.approx(gap, rel=1e-6, abs=1e-12)
        assert point.certificate.gap >= point.certificate.objective - best - 1e-12
        assert point.residual_ss == pytest.approx(float(r @ r), rel=1e-9)


def test_the_path_costs_less_than_its_fits_one_by_one() -> None:
    grid = Explorer(draw_federation()).grid(12)
    together = Explorer(draw_federation(), uploads=200)
    together.path(grid)
    alone = 0
    for lam in grid:
        one = Explorer(draw_federation(), uploads=200)
        one.fit(float(lam))
        alone += one.spent
    assert together.spent < alone / 2


@pytest.mark.parametrize("uploads", [1, 2, 7, 15])
def test_uploads_are_charged_and_never_exceeded(uploads: int) -> None:
    ledger = Ledger(draw_federation())
    explorer = Explorer(ledger, uploads)
    points = explorer.path(explorer.grid(20), tol=1e-6)
    assert points[0].active == 0
    assert len(points) < 20
    assert all(point.certificate.relative_gap <= 1e-6 for point in points)
    assert explorer.spent <= uploads
    assert ledger.costs.total("training").upload == 8 * K * P * explorer.spent
    assert ledger.costs.total().upload == 8 * K * (P * explorer.spent + 2)


def test_out_of_uploads_a_fit_is_honest_about_its_gap() -> None:
    sites = draw_sites()
    f = pooled(sites)
    explorer = Explorer(InProcess(sites), uploads=4)
    point = explorer.fit(0.05, tol=1e-8)
    value = f.value(point.coefficients) + 0.05 * np.abs(point.coefficients).sum()
    assert point.certificate.objective == pytest.approx(value, rel=1e-10)
    assert point.certificate.relative_gap > 1e-8
    assert point.certificate.gap >= value - solve_reference(f, 0.05).objective


def test_a_reserve_is_left_over() -> None:
    explorer = Explorer(draw_federation(), uploads=20)
    explorer.fit(0.02, tol=0.0, reserve=8)
    assert explorer.spent == 12


def test_adaptive_fits_solve_the_weighted_lasso() -> None:
    sites = draw_sites()
    f = pooled(sites)
    explorer = Explorer(InProcess(sites))
    first = explorer.fit(0.1, tol=1e-6)
    w = explorer.adaptive_weights(first.coefficients)
    second = explorer.fit(0.02, w, first.coefficients, tol=1e-9)
    on = np.isfinite(w)
    other = solve_reference(LeastSquares(f.X[:, on] / w[on], f.y), 0.02)
    assert not second.coefficients[~on].any()
    np.testing.assert_allclose(second.coefficients[on], other.coefficients / w[on], atol=1e-6)
    assert explorer.path(explorer.adaptive_grid(w, 5), w)[0].active == 0


def test_a_relaxed_fit_is_least_squares_on_the_support() -> None:
    sites = draw_sites((60, 50, 40))
    f = pooled(sites)
    explorer = Explorer(InProcess(sites))
    first = explorer.fit(0.3)
    on = np.flatnonzero(first.coefficients)
    relaxed = explorer.relax(first.coefficients, phi=1e-9, tol=1e-6)
    assert 0 < len(on) < 20
    assert not np.delete(relaxed.coefficients, on).any()
    exact = np.linalg.lstsq(f.X[:, on], f.y)[0]
    np.testing.assert_allclose(relaxed.coefficients[on], exact, atol=1e-3)
    assert relaxed.residual_ss <= first.residual_ss


def test_information_criteria_from_what_the_server_knows() -> None:
    explorer = Explorer(draw_federation((100, 80, 60)))
    points = explorer.path(explorer.grid(10))
    m = 240
    plain, extended = ebic(points, m, P), ebic(points, m, P, gamma=1.0)
    first = m * np.log(points[0].residual_ss / m)
    assert plain[0] == extended[0] == pytest.approx(first)
    assert points[int(np.argmin(extended))].active <= points[int(np.argmin(plain))].active
    actives = np.array([point.active for point in points])
    np.testing.assert_allclose(extended - plain, 2 * actives * np.log(P), atol=1e-9)


def test_no_correlation_at_all_gives_an_empty_path() -> None:
    X = np.vstack([np.eye(3), -np.eye(3)])
    explorer = Explorer(InProcess([Site("a", X, np.ones(6))]))
    points = explorer.path(explorer.grid(4))
    assert explorer.spent == 1
    assert not any(point.active for point in points)


@pytest.mark.parametrize("uploads", [0, -1, 2.5])
def test_uploads_are_a_whole_number(uploads: int) -> None:
    with pytest.raises(FedLassoError, match="give a whole number, 1 or more"):
        Explorer(draw_federation(), uploads)
