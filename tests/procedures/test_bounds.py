"""Fits with bounds against an independent solver on the pooled records, for every loss."""

import numpy as np
import pytest
from helpers.draws import draw_federation
from helpers.pools import LOSSES, draw, solve

from fedlasso import REGISTRY, FedLassoError, InProcess, Status, fit
from fedlasso.fitting import certify, fix_penalty, open_evidence
from fedlasso.numerics import L1, Bounds, ElasticNet
from fedlasso.procedures import Newton

KEPT = np.array([1.0, 0.0, 0.5, 2.0, 1.0, 0.0])
NONE = np.full(6, np.inf)
RANGES = {
    "nonnegative": Bounds(np.zeros(6), NONE),
    "mixed": Bounds(
        np.array([-np.inf, -0.2, 0.0, -0.05, -np.inf, -0.3]),
        np.array([0.3, np.inf, 0.1, 0.0, np.inf, 0.2]),
    ),
    "far": Bounds(np.full(6, -1e3), np.full(6, 1e3)),
}
TAKING = {"Newton", "FISTA"}


def penalties(bounds: Bounds, lam: float = 0.05) -> list[L1]:
    return [
        L1(lam, bounds=bounds),
        L1(lam, KEPT, bounds=bounds),
        ElasticNet(1.6 * lam, KEPT, 0.375, bounds=bounds),
    ]


@pytest.mark.standard
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ranges", RANGES)
def test_newton_is_the_pooled_optimum_within_bounds(loss: str, ranges: str) -> None:
    pool = draw(loss, (50, 40, 30))
    federation = InProcess(pool.sites())
    bounds = RANGES[ranges]
    for penalty in penalties(bounds):
        result = fit(federation, Newton(tol=1e-10), penalty=penalty, rounds=300, tol=1e-10)
        assert result.status is Status.OPTIMAL
        assert bounds.hold(result.coefficients)
        found = pool.mean_loss(result.coefficients) + penalty.value(result.coefficients)
        other = solve(pool, penalty)
        assert found <= pool.mean_loss(other) + penalty.value(other) + 1e-12
        np.testing.assert_allclose(result.coefficients, other, atol=2e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_fista_is_the_same_optimum(loss: str) -> None:
    pool = draw(loss, (50, 40, 30))
    penalty = L1(0.05, KEPT, bounds=RANGES["mixed"])
    federation = InProcess(pool.sites())
    newton = fit(federation, Newton(tol=1e-10), penalty=penalty, rounds=300)
    result = fit(federation, "FISTA", penalty=penalty, rounds=400, tol=1e-6)
    assert result.status is Status.OPTIMAL
    np.testing.assert_allclose(result.coefficients, newton.coefficients, atol=1e-5)


@pytest.mark.standard
@pytest.mark.parametrize("loss", LOSSES)
def test_a_certificate_within_bounds_is_never_below_the_true_gap(loss: str) -> None:
    """Near the optimum and far from it, at hardly any penalty and at one above the largest."""
    rng = np.random.default_rng(0)
    for seed in range(8):
        pool = draw(loss, (30, 20), seed=seed)
        federation = InProcess(pool.sites())
        lam = pool.largest_penalty * [1e-3, 0.1, 0.5, 1.2][seed % 4]
        bounds = list(RANGES.values())[seed % 3]
        for penalty in penalties(bounds, lam):
            problem = fix_penalty(federation, penalty)
            least = pool.mean_loss(b := solve(pool, penalty)) + penalty.value(b)
            for far in (0.0, 1e-6, 1e-2, 1.0, 5.0):
                other = bounds.clip(b + far * rng.standard_normal(6))
                reported = certify(federation, problem, other)
                true = pool.mean_loss(other) + penalty.value(other)
                assert reported.objective == pytest.approx(true, rel=1e-9)
                # What the other solver has found is above the least objective by its rounding.
                assert reported.objective - reported.gap <= least + 1e-9 * abs(least)


def test_columns_that_tell_the_classes_apart_have_a_bound_to_certify_by() -> None:
    """Without bounds the best coefficients are infinite, and nothing is known."""
    rng = np.random.default_rng(0)
    pool = draw("binomial", (25, 15), p=4)
    pool.y = (pool.X[:, :2] @ rng.standard_normal(2) > 0).astype(float)
    bounds = Bounds(np.full(4, -2.0), np.full(4, 2.0))
    penalty = L1(0.01, np.array([0.0, 0.0, 1.0, 1.0]), bounds=bounds)
    result = fit(InProcess(pool.sites()), Newton(), penalty=penalty, rounds=200)
    assert result.status is Status.OPTIMAL
    assert np.abs(result.coefficients[:2]).max() == 2.0


@pytest.mark.parametrize("loss", ["quadratic", "cox"])
def test_a_path_within_bounds_is_the_fits_at_its_penalties(loss: str) -> None:
    pool = draw(loss, (60, 50, 40))
    form = ElasticNet(1.0, np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0]), 0.8, bounds=RANGES["mixed"])
    evidence = open_evidence(InProcess(pool.sites()), 500, form)
    for share in (1.0, 0.5, 0.2, 0.05):
        penalty = form.at(share * evidence.largest_penalty)
        point = evidence.fit(penalty, tol=1e-10)
        assert point.arrived(1e-10)
        alone = fit(InProcess(pool.sites()), Newton(tol=1e-10), penalty=penalty, rounds=300)
        np.testing.assert_allclose(point.coefficients, alone.coefficients, atol=1e-6)
        paying = np.delete(point.coefficients, 2)
        assert bool((np.abs(paying) > 1e-8).any()) == (share < 1.0)


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - TAKING))
def test_all_others_refuse_bounds_in_one_sentence(name: str) -> None:
    penalty = L1(0.1, bounds=Bounds(np.zeros(40), np.full(40, np.inf)))
    with pytest.raises(
        FedLassoError, match=f"^{name} takes no bounds on coefficients; use Newton or FISTA"
    ):
        fit(draw_federation(), name, penalty=penalty, rounds=1)


def test_evidence_from_secants_refuses_bounds() -> None:
    evidence = open_evidence(draw_federation())
    penalty = L1(0.1, bounds=Bounds(np.zeros(40), np.full(40, np.inf)))
    with pytest.raises(FedLassoError, match="takes no bounds"):
        evidence.fit(penalty)
