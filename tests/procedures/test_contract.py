"""What every procedure in the registry promises."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites

from fedlasso import REGISTRY, FedLassoError, InProcess, Ledger, Site, fit
from fedlasso.federation import decode, encode
from fedlasso.federation.federation import recipients
from fedlasso.fitting import Run, after_rounds, fix_penalty
from fedlasso.numerics import LeastSquares
from fedlasso.procedures import Procedure

every = pytest.mark.parametrize("name", sorted(REGISTRY))
LAM, ROUNDS = 0.15, 4
# These end by themselves, after one round or when they are certified optimal.
ENDING = {
    "OneShot", "OneShotGram", "Debiased", "Voting", "Secant", "SecantWS", "Newton",
    "WorkingSetGram",
}  # fmt: skip
# Sites keep something between rounds.
REMEMBERING = {"ADMM", "FedDR", "ProxSkip"}
# Splitting methods start off the solution even at zero, and debiasing leaves it on purpose.
NOT_EMPTY_AT_ONCE = {"ADMM", "FedDR", "ProxSkip", "Debiased"}


def make(name: str, epochs: int = 2) -> Procedure[Any]:
    return REGISTRY[name](epochs=epochs)


def largest_penalty(sites: InProcess) -> float:
    return max(
        float(np.abs(LeastSquares(s.training.X, s.training.y).score).max())
        for s in sites._members.values()
        if isinstance(s, Site)
    )


@every
def test_the_order_of_the_sites_changes_no_bit(name: str) -> None:
    forward = fit(InProcess(draw_sites()), name, penalty=LAM, rounds=ROUNDS)
    backward = fit(InProcess(draw_sites()[::-1]), name, penalty=LAM, rounds=ROUNDS)
    assert forward.coefficients.tobytes() == backward.coefficients.tobytes()
    assert forward.costs.entries == backward.costs.entries


@every
def test_stopping_and_going_on_through_the_wire_changes_no_bit(name: str) -> None:
    sites = draw_sites()
    ledger = Ledger(InProcess(sites))
    problem = fix_penalty(ledger, LAM)
    procedure = make(name)
    run = Run(ledger, procedure, problem)
    last = run.until(after_rounds(3))
    saved: Any = decode(encode(last))
    memories = [deepcopy(site.memory) for site in sites]
    whole = run.until(after_rounds(6))
    # A restarted site has its records, and its memory where it keeps one.
    restarted = draw_sites()
    if name in REMEMBERING:
        for site, memory in zip(restarted, memories, strict=True):
            site.memory = memory
    again = Run(InProcess(restarted), procedure, problem, state=saved)
    assert encode(again.until(after_rounds(6))) == encode(whole)
    assert (again.state is saved) == procedure.done(problem, last)


@pytest.mark.parametrize("name", sorted(REMEMBERING))
def test_a_site_that_lost_its_memory_says_so(name: str) -> None:
    ledger = Ledger(draw_federation())
    run = Run(ledger, make(name), fix_penalty(ledger, LAM))
    state = run.until(after_rounds(1))
    forgetful = Run(draw_federation(), run.procedure, run.problem, state=state)
    with pytest.raises(FedLassoError, match="round 1 of this fit is not stored"):
        forgetful.until(after_rounds(2))


@every
def test_asking_a_round_again_changes_no_bit(name: str) -> None:
    ledger = Ledger(draw_federation())
    run = Run(ledger, make(name), fix_penalty(ledger, LAM))
    for _ in range(ROUNDS):
        if run.procedure.done(run.problem, run.state):
            break
        request = run.procedure.request(run.problem, run.state)
        first = ledger.replies(request)
        again = ledger.replies(request)
        assert [encode(r) for r in first] == [encode(r) for r in again]
        run.until(after_rounds(run.state.round + 1))


@every
def test_states_count_their_rounds(name: str) -> None:
    ledger = Ledger(draw_federation())
    run = Run(ledger, make(name), fix_penalty(ledger, LAM))
    rounds = [state.round for state in run.rounds(after_rounds(60))]
    assert rounds == list(range(1, len(rounds) + 1))
    assert (len(rounds) < 60) == (name in ENDING)


@every
def test_one_model_per_setting(name: str) -> None:
    result = fit(draw_federation(), name, penalty=LAM, rounds=ROUNDS, keep_path=True)
    assert result.candidates.shape == (40, len(make(name).settings))
    assert result.path is not None
    assert len(result.path) == result.rounds
    assert result.rounds == ROUNDS or name in ENDING
    assert np.array_equal(result.path[-1], result.candidates)
    assert np.array_equal(result.coefficients, result.candidates[:, result.chosen])


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - NOT_EMPTY_AT_ONCE))
def test_a_penalty_above_every_local_largest_gives_the_empty_model(name: str) -> None:
    federation = draw_federation()
    result = fit(federation, name, penalty=1.01 * largest_penalty(federation), rounds=ROUNDS)
    assert not result.candidates.any()
    assert result.certificate is not None
    assert result.certificate.gap <= 1e-12 * result.certificate.objective


@pytest.mark.parametrize("name", sorted(REMEMBERING))
def test_above_the_largest_penalty_splitting_methods_reach_the_empty_model(name: str) -> None:
    federation = draw_federation()
    result = fit(federation, name, penalty=1.01 * largest_penalty(federation), rounds=60)
    assert not result.candidates.any()


@every
def test_state_and_replies_are_not_mutated(name: str) -> None:
    ledger = Ledger(draw_federation())
    problem = fix_penalty(ledger, LAM)
    procedure = make(name)
    run = Run(ledger, procedure, problem)
    state = run.until(after_rounds(0 if name in ENDING else 1))
    before = encode(state)
    total = ledger.total(procedure.request(problem, state))
    sent = encode(total)
    procedure.advance(problem, state, total)
    procedure.models(problem, state)
    assert encode(state) == before
    assert encode(total) == sent


@every
def test_what_a_procedure_says_it_uploads_is_what_it_uploads(name: str) -> None:
    ledger = Ledger(draw_federation())
    problem = fix_penalty(ledger, LAM)
    procedure = make(name)
    run = Run(ledger, procedure, problem)
    for _ in range(ROUNDS):
        if procedure.done(problem, run.state):
            assert name in ENDING
            break
        promised = procedure.upload(problem, run.state)
        before = ledger.costs
        senders = recipients(ledger.sites, procedure.request(problem, run.state))
        run.until(after_rounds(run.state.round + 1))
        passed = ledger.costs - before
        assert passed.sites == senders
        for site in senders:
            assert passed.total("training", site).upload == 8 * promised


@every
def test_settings_given_are_the_candidates_run_and_charged(name: str) -> None:
    """Two candidates, and one alone, which is then the same path to the bit."""
    usual = make(name)
    if usual.settings == (0.0,):
        with pytest.raises(FedLassoError, match=f"{usual.name} has no settings"):
            replace(usual, settings=(0.0, 1.0))
        return
    two, one = (replace(usual, settings=usual.settings[-n:]) for n in (2, 1))
    both = fit(draw_federation(), two, penalty=LAM, rounds=ROUNDS, certified=False)
    alone = fit(draw_federation(), one, penalty=LAM, rounds=ROUNDS, certified=False)
    assert both.candidates[:, 1].tobytes() == alone.candidates[:, 0].tobytes()
    charged = [f.costs.total("training").upload for f in (both, alone)]
    assert charged[0] * one.paths == charged[1] * two.paths
    assert (two.paths, one.paths) in ((2, 1), (1, 1))
    for wrong in ((), (-1.0,), (float("nan"),)):
        with pytest.raises(FedLassoError, match="settings is"):
            replace(usual, settings=wrong)


@pytest.mark.parametrize("name", ["CD", "ST", "P", "DA"])
def test_charged_paths_are_the_columns_that_travel(name: str) -> None:
    procedure = make(name)
    result = fit(draw_federation(), procedure, penalty=LAM, rounds=ROUNDS, certified=False)
    training = result.costs.total("training")
    assert training.upload == 8 * 3 * 40 * procedure.paths * ROUNDS
    assert result.costs.most_steps("training") == ROUNDS * procedure.paths * procedure.epochs
    assert training.operations == 4 * 75 * 40 * ROUNDS * procedure.paths * procedure.epochs


@every
def test_identical_sites_act_as_one(name: str) -> None:
    one = draw_sites((30,))[0]
    twins = InProcess([one, *_copies(one, ("b", "c"))])
    alone = fit(InProcess([one]), name, penalty=LAM, rounds=ROUNDS, epochs=3)
    together = fit(twins, name, penalty=LAM, rounds=ROUNDS, epochs=3)
    np.testing.assert_allclose(together.coefficients, alone.coefficients, atol=1e-12)


def _copies(site: Any, names: tuple[str, ...]) -> list[Any]:
    copies = []
    for name in names:
        (copy,) = draw_sites((30,))
        copy.name = name
        copies.append(copy)
    return copies
