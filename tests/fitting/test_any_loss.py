"""Losses from outside the package: who fits them, who refuses, and certificates that hold."""

from collections.abc import Iterator

import numpy as np
import pytest
from helpers.losses_outside import Huber, Logistic, registered

from fedlasso import REGISTRY, FedLassoError, InProcess, Site, certify, fit
from fedlasso.fitting import fix_penalty
from fedlasso.numerics import L1, Array, Loss, Sample

SMOOTH = sorted(n for n, procedure in REGISTRY.items() if procedure.losses == "any smooth")
OTHERS = sorted(set(REGISTRY) - set(SMOOTH))
LAM = 0.05
each_loss = pytest.mark.parametrize("loss", [Huber(), Logistic()], ids=lambda loss: loss.name)


@pytest.fixture(autouse=True)
def _known() -> Iterator[None]:
    with registered(Huber()), registered(Logistic()):
        yield


def draw(loss: Loss, sizes: tuple[int, ...] = (60, 40, 30), p: int = 8) -> list[Site]:
    rng = np.random.default_rng(0)
    sites = []
    for j, m in enumerate(sizes):
        X = rng.standard_normal((m, p))
        y = 2 * X[:, 0] - X[:, 1] + rng.standard_normal(m)
        if isinstance(loss, Logistic):
            y = (y > 0).astype(np.float64)
        held_out = {"candidate": (X, y)}
        sites.append(Site("abc"[j], X, y, loss=loss.name, validation=held_out))
    return sites


def pooled_optimum(sites: list[Site], loss: Loss, penalty: L1) -> tuple[Sample, Array]:
    """By plain proximal gradient steps until nothing moves."""
    X = np.vstack([site.training.X for site in sites])
    f = Sample(X, np.concatenate([site.training.y for site in sites]), loss)
    b = np.zeros(f.p)
    for _ in range(20_000):
        before = b
        b = penalty.prox(b - f.gradient(b) / f.largest_curvature, 1 / f.largest_curvature)
        if np.array_equal(b, before):
            break
    return f, b


@pytest.mark.full
@each_loss
@pytest.mark.parametrize(("name", "rounds"), [("FISTA", 1000), ("ProxSkip", 2000)])
@pytest.mark.parametrize("weights", [None, np.array([1.0, 0.5, 2.0, 1.0, 1.0, 3.0, 1.0, 1.0])])
def test_methods_that_reach_the_optimum_reach_it(
    loss: Loss, name: str, rounds: int, weights: Array | None
) -> None:
    sites = draw(loss)
    penalty = L1(LAM, weights)
    result = fit(InProcess(sites), name, penalty=penalty, rounds=rounds)
    f, best = pooled_optimum(sites, loss, penalty)
    np.testing.assert_allclose(result.coefficients, best, atol=1e-5)
    assert result.certificate is not None
    value = f.value(result.coefficients) + penalty.value(result.coefficients)
    assert result.certificate.objective == pytest.approx(value, rel=1e-9)
    assert result.certificate.gap >= value - f.value(best) - penalty.value(best) - 1e-12
    assert result.certificate.relative_gap <= 1e-4


@each_loss
@pytest.mark.parametrize("name", SMOOTH)
def test_methods_for_any_smooth_loss_go_down(loss: Loss, name: str) -> None:
    sites = draw(loss)
    result = fit(InProcess(sites), name, penalty=LAM, rounds=60)
    f, best = pooled_optimum(sites, loss, L1(LAM))
    least = f.value(best) + L1(LAM).value(best)
    empty = f.value(np.zeros(f.p))
    assert result.certificate is not None
    assert least - 1e-9 <= result.certificate.objective < least + (empty - least) / 2


@pytest.mark.parametrize("name", OTHERS)
def test_the_others_refuse_in_one_sentence_before_anything_is_trained(name: str) -> None:
    with pytest.raises(FedLassoError) as refused:
        fit(InProcess(draw(Huber())), name, penalty=LAM)
    assert str(refused.value) == (
        f"{name} fits the quadratic loss only, and these sites have the huber loss; "
        "use Newton or FISTA, which reach the optimum of any loss"
    )


def test_sites_with_different_losses_make_no_federation() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    with pytest.raises(FedLassoError, match="site 'b' has the huber loss but site 'a' the quadr"):
        InProcess([Site("a", X, y), Site("b", X, y, loss="huber")])


@each_loss
def test_certificates_hold_far_from_the_optimum(loss: Loss) -> None:
    sites = draw(loss)
    federation = InProcess(sites)
    rng = np.random.default_rng(2)
    for lam in (0.001, 0.05, 5.0):
        penalty = L1(lam)
        f, best = pooled_optimum(sites, loss, penalty)
        least = f.value(best) + penalty.value(best)
        for scale in (0.0, 0.1, 3.0):
            b = best + scale * rng.standard_normal(f.p)
            certificate = certify(federation, fix_penalty(federation, penalty), b)
            assert certificate.gap >= certificate.objective - least - 1e-9


def test_a_site_searches_its_own_penalty_for_least_squares_only() -> None:
    with pytest.raises(FedLassoError, match="these have the huber loss; give a penalty"):
        fit(InProcess(draw(Huber())), "FISTA")


def test_weights_go_to_those_who_take_them() -> None:
    rng = np.random.default_rng(0)
    site = Site("a", rng.standard_normal((9, 2)), rng.standard_normal(9))
    with pytest.raises(FedLassoError, match="CD takes one penalty for all coefficients"):
        fit(InProcess([site]), "CD", penalty=L1(0.1, np.array([1.0, 2.0])))
