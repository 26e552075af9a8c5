"""A fit at a given penalty: which questions it asks, and that it is the pooled Lasso."""

import numpy as np
import pytest
from helpers.draws import draw_sites
from helpers.loops import loop
from helpers.pools import Pool, draw
from helpers.spectra import distance, draw_spectra, solve_exactly

from fedlasso import InProcess, Site
from fedlasso.errors import Refused
from fedlasso.federation import Around, Federation, Request
from fedlasso.federation.messages import R
from fedlasso.fitting import Model, Settings, fit_model
from fedlasso.numerics import Array, LeastSquares
from fedlasso.sites import FoldMoments

FEW = 8


class Silent(Around):
    """Sites that do not tell second moments."""

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if isinstance(request, FoldMoments):
            raise Refused("second moments are not told here")
        return self.inner.replies(request)


def fit_at(federation: Federation, penalty: float, uploads: int | None = None) -> Model:
    return fit_model(federation, Settings(penalty=penalty, uploads=uploads))


def standardised(sites: list[Site]) -> LeastSquares:
    X = np.vstack([site.training.X for site in sites])
    y = np.concatenate([site.training.y for site in sites])
    return LeastSquares((X - X.mean(axis=0)) / X.std(axis=0), y - y.mean())


@pytest.mark.parametrize("share", [0.3, 0.03, 0.001])
@loop("seed", range(3))
def test_few_columns_take_second_moments_and_one_gradient(share: float, seed: int) -> None:
    sites = draw_sites(p=FEW, seed=seed)
    f = standardised(sites)
    lam = share * float(np.abs(f.score).max())
    model = fit_at(InProcess(sites), lam)
    assert model.fit.method == "Moments"
    assert model.costs.total("moments", "a").upload == 8 * (FEW + 2) * (FEW + 3) // 2
    assert model.costs.total("training", "a").upload == 8 * FEW
    assert distance(model.fit.coefficients, solve_exactly(f, lam)) <= 1e-7


@pytest.mark.parametrize("share", [0.1, 0.001])
def test_spectra_on_their_own_scale(share: float) -> None:
    scale = np.linspace(0.1, 2.0, 100)
    parts = [(3.0 + X * scale, y) for X, y in draw_spectra(0)]
    sites = [Site(f"s{j}", X, y) for j, (X, y) in enumerate(parts)]
    f = standardised(sites)
    lam = share * float(np.abs(f.score).max())
    model = fit_at(InProcess(sites), lam)
    assert model.status.name == "OPTIMAL"
    assert distance(model.fit.coefficients, solve_exactly(f, lam)) <= 1e-7


def secant_of(federation: Federation, uploads: int | None = None) -> Array:
    model = fit_at(federation, 0.05, uploads)
    assert model.fit.method == "Secant"
    assert "moments" not in model.costs.kinds
    return model.coefficients


def test_a_site_that_tells_no_moments_is_asked_for_gradients() -> None:
    federation = InProcess(draw_sites(p=FEW))
    reported = fit_at(federation, 0.05).coefficients
    np.testing.assert_allclose(secant_of(Silent(federation)), reported, atol=1e-10)


def test_moments_that_uploads_do_not_allow_are_not_asked_for() -> None:
    secant_of(InProcess(draw_sites(p=FEW)), uploads=10)


def test_many_columns_take_gradients() -> None:
    secant_of(InProcess(draw_sites(p=60)))


def test_a_constant_column_is_left_out_of_moments() -> None:
    sites = draw_sites(p=FEW)
    constant = [
        Site(site.name, np.hstack([np.ones((site.rows, 1)), site.training.X]), site.training.y)
        for site in sites
    ]
    model = fit_at(InProcess(constant), 0.05)
    assert model.fit.method == "Moments"
    assert model.status.name == "OPTIMAL"
    alone = fit_at(InProcess(sites), 0.05)
    expected = np.append(0.0, alone.coefficients)
    np.testing.assert_allclose(model.coefficients, expected, atol=1e-10)


@pytest.mark.parametrize("procedure", [None, "CD", "FISTA"])
@pytest.mark.parametrize(("mean", "deviation"), [(2015.0, 1.4), (1e5, 1.0), (1.7e9, 1e7)])
def test_means_far_from_zero_do_not_round_the_objective(
    procedure: str | None, mean: float, deviation: float
) -> None:
    sites = draw_sites((60, 70), p=FEW, seed=3)
    moved = [Site(site.name, mean + deviation * site.training.X, site.training.y) for site in sites]
    settings = Settings(penalty=0.1, procedure=procedure, uploads=60)
    fit = fit_model(InProcess(moved), settings).fit
    assert fit.certificate is not None
    pooled = standardised(moved)
    own = pooled.value(fit.coefficients) + 0.1 * float(np.abs(fit.coefficients).sum())
    assert fit.certificate.objective == pytest.approx(own, rel=1e-9)
    if procedure is None:
        near = fit_model(InProcess(sites), Settings(penalty=0.1)).fit
        np.testing.assert_allclose(fit.coefficients, near.coefficients, atol=1e-9)


def cox_slopes(pool: Pool, b: Array) -> Array:
    """Return the slopes of the mean partial likelihood, by Breslow's method, risk set by risk set.

    Every site has its own risk sets.
    """
    risks = pool.w * np.exp(pool.X @ b + pool.o)
    total = np.zeros(b.size)
    for i in np.flatnonzero(~np.signbit(pool.y)):
        at_risk = (pool.site == pool.site[i]) & (np.abs(pool.y) >= abs(pool.y[i]))
        mean = risks[at_risk] @ pool.X[at_risk] / risks[at_risk].sum()
        total += pool.w[i] * (mean - pool.X[i])
    return np.asarray(total / pool.w.sum())


@pytest.mark.parametrize("l1_ratio", [0.1, 0.4])
@loop("seed", range(8))
def test_elastic_nets_without_an_intercept_are_solved_to_their_coefficients(
    l1_ratio: float, seed: int
) -> None:
    pool = draw("cox with Breslow ties", (60, 80, 100), seed=seed)
    strength = 0.05
    model = fit_model(
        InProcess(pool.sites()),
        Settings(
            family="cox", ties="breslow", penalty=strength, l1_ratio=l1_ratio, standardise=False
        ),
    )
    b = model.coefficients
    ridge = strength * (1 - l1_ratio)
    slopes = cox_slopes(pool, b) + ridge * b
    kept = np.clip(-slopes, -strength * l1_ratio, strength * l1_ratio)
    kept[b != 0] = strength * l1_ratio * np.sign(b[b != 0])
    # The objective is as convex as its ridge at least, so no optimum is farther away than this.
    assert np.linalg.norm(slopes + kept) / ridge < 1e-6
