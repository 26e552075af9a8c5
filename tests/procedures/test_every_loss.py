"""What procedures for any smooth loss promise on binomial, Poisson and Cox responses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.loops import loop
from helpers.responses import draw_response

from fedlasso import REGISTRY, FedLassoError, InProcess, Ledger, Site, fit
from fedlasso.federation import Federation, Request, decode, encode
from fedlasso.federation.federation import recipients
from fedlasso.federation.messages import R
from fedlasso.fitting import Run, after_rounds, fix_penalty
from fedlasso.numerics import LOSSES, Array
from fedlasso.procedures import Newton

SMOOTH = sorted(n for n, procedure in REGISTRY.items() if procedure.losses == "any smooth")
CURVED = sorted(set(LOSSES) - {"quadratic"})
LAM = 0.05
REMEMBERING = {"ProxSkip"}
each_loss = pytest.mark.parametrize("loss", CURVED)
every = pytest.mark.parametrize("name", SMOOTH)


def draw_sites(
    loss: str, sizes: Sequence[int] = (40, 30, 24), p: int = 12, size: float = 1.0, seed: int = 0
) -> list[Site]:
    rng = np.random.default_rng(seed)
    b = np.zeros(p)
    b[:3] = (1.0, -0.7, 0.5)

    def sample(rows: int) -> tuple[Array, Array]:
        X = rng.standard_normal((rows, p))
        return size * X, draw_response(loss, X @ b, rng)

    return [
        Site("abcdef"[j], *sample(m), loss=loss, validation={"candidate": sample(20)})
        for j, m in enumerate(sizes)
    ]


def objective(sites: Sequence[Site], b: Array, lam: float) -> float:
    m = sum(site.rows for site in sites)
    return sum(s.rows * s.training.value(b) for s in sites) / m + lam * float(np.abs(b).sum())


class Direct(Federation):
    """Sites that are asked without a wire in between."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.members = {site.name: site for site in sites}
        self.sites = tuple(sorted(self.members))
        self.columns = sites[0].columns
        self.loss = sites[0].loss

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        return tuple(self.members[name].answer(request) for name in recipients(self.sites, request))


@pytest.mark.standard
@every
@each_loss
def test_the_wire_and_the_order_of_the_sites_change_no_bit(name: str, loss: str) -> None:
    wired = fit(InProcess(draw_sites(loss)), name, penalty=LAM, rounds=8, epochs=2)
    direct = fit(Direct(draw_sites(loss)[::-1]), name, penalty=LAM, rounds=8, epochs=2)
    assert wired.candidates.tobytes() == direct.candidates.tobytes()
    assert encode(wired.state) == encode(direct.state)
    assert np.isfinite(wired.candidates).all()


@pytest.mark.standard
@every
@each_loss
def test_a_fit_is_charged_as_it_says_and_goes_on_from_what_was_saved(name: str, loss: str) -> None:
    sites = draw_sites(loss)
    ledger = Ledger(InProcess(sites))
    problem = fix_penalty(ledger, LAM)
    procedure = REGISTRY[name](epochs=2)
    run = Run(ledger, procedure, problem)
    saved: Any = None
    for at in range(6):
        if procedure.done(problem, run.state):
            break
        if at == 3:
            saved = decode(encode(run.state))
        request = procedure.request(problem, run.state)
        promised = procedure.upload(problem, run.state)
        before = ledger.costs
        run.until(after_rounds(run.state.round + 1))
        for site in recipients(ledger.sites, request):
            passed = (ledger.costs - before).total(request.kind, site)
            assert passed.upload == 8 * promised
    if saved is not None and name not in REMEMBERING:
        again = Run(InProcess(draw_sites(loss)), procedure, problem, state=saved)
        assert encode(again.until(after_rounds(run.state.round))) == encode(run.state)


@pytest.mark.full
@every
@each_loss
def test_every_procedure_goes_down(name: str, loss: str) -> None:
    sites = draw_sites(loss, (60, 60, 60))
    result = fit(InProcess(sites), name, penalty=LAM, rounds=60, epochs=5)
    best = fit(InProcess(sites), Newton(tol=1e-12), penalty=LAM, rounds=500)
    least = objective(sites, best.coefficients, LAM)
    empty = objective(sites, np.zeros(12), LAM)
    assert result.certificate is not None
    assert least * (1 - 1e-9) <= result.certificate.objective < least + (empty - least) / 2


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - set(SMOOTH)))
@each_loss
def test_the_others_refuse_in_one_sentence(name: str, loss: str) -> None:
    ledger = Ledger(InProcess(draw_sites(loss)))
    with pytest.raises(FedLassoError) as refused:
        fit(ledger, name, penalty=LAM)
    text = str(refused.value)
    assert text.startswith(f"{name} fits the quadratic loss only, and these sites have the {loss}")
    assert "\n" not in text
    assert not ledger.costs.total("training").upload


@pytest.mark.full
@loop("seed", range(3))
@each_loss
def test_fista_reaches_the_objective_of_newton(loss: str, seed: int) -> None:
    sites = draw_sites(loss, seed=seed)
    best = fit(InProcess(sites), Newton(tol=1e-12), penalty=LAM, rounds=500)
    fista = fit(InProcess(sites), "FISTA", penalty=LAM, rounds=3000)
    least = objective(sites, best.coefficients, LAM)
    assert objective(sites, fista.coefficients, LAM) == pytest.approx(least, rel=1e-8)


@pytest.mark.standard
@pytest.mark.parametrize("name", ["CSL", "DANE"])
@each_loss
def test_surrogates_reach_the_pooled_optimum(name: str, loss: str) -> None:
    sites = draw_sites(loss, (90, 80, 70))
    best = fit(InProcess(sites), Newton(tol=1e-12), penalty=LAM, rounds=500)
    strongest = replace(REGISTRY[name](), settings=(1.0,))
    result = fit(InProcess(sites), strongest, penalty=LAM, rounds=400)
    least = objective(sites, best.coefficients, LAM)
    assert objective(sites, result.coefficients, LAM) == pytest.approx(least, rel=1e-8)


@each_loss
def test_averaging_at_one_site_is_that_site_s_own_fit(loss: str) -> None:
    sites = draw_sites(loss, (60,))
    best = fit(InProcess(sites), Newton(tol=1e-13), penalty=LAM, rounds=500)
    averaged = fit(InProcess(sites), "CD", penalty=LAM, rounds=400, epochs=5)
    voted = fit(InProcess(sites), "Voting", penalty=LAM)
    np.testing.assert_allclose(averaged.coefficients, best.coefficients, atol=1e-7)
    np.testing.assert_allclose(voted.coefficients, best.coefficients, atol=1e-7)


@pytest.mark.full
@pytest.mark.parametrize("size", [1e-3, 30.0, 1e4])
@every
@each_loss
def test_columns_of_any_size_never_lead_beyond_numbers(name: str, loss: str, size: float) -> None:
    """Curvature without any coefficient says little about it elsewhere: rates may be too large."""
    sites = draw_sites(loss, size=size)
    result = fit(InProcess(sites), name, penalty=0.1 * size, rounds=12, epochs=3)
    assert np.isfinite(result.candidates).all()
    assert result.certificate is not None
    assert np.isfinite(result.certificate.objective)
