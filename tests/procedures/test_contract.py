"""What every procedure in the registry promises."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
from draws import draw_federation, draw_sites

from fedlasso import REGISTRY, InProcess, Ledger, fit
from fedlasso.federation import decode, encode
from fedlasso.fit import begin, iterate
from fedlasso.lasso import LeastSquares
from fedlasso.procedures import Problem, Procedure
from fedlasso.tuning import fix_penalty

every = pytest.mark.parametrize("name", sorted(REGISTRY))
LAM, ROUNDS = 0.15, 4


def make(name: str, epochs: int = 2) -> Procedure[Any]:
    return REGISTRY[name](epochs=epochs)


def largest_penalty(sites: InProcess) -> float:
    return max(
        float(np.abs(LeastSquares(s.training.X, s.training.y).score).max())
        for s in sites._members.values()
    )


@every
def test_the_order_of_the_sites_changes_no_bit(name: str) -> None:
    forward = fit(InProcess(draw_sites()), name, lam=LAM, rounds=ROUNDS)
    backward = fit(InProcess(draw_sites()[::-1]), name, lam=LAM, rounds=ROUNDS)
    assert forward.coefficients.tobytes() == backward.coefficients.tobytes()
    assert forward.costs.entries == backward.costs.entries


@every
def test_stopping_and_going_on_through_the_wire_changes_no_bit(name: str) -> None:
    ledger = Ledger(draw_federation())
    problem = fix_penalty(ledger, LAM)
    procedure = make(name)
    whole = list(islice(iterate(ledger, procedure, problem, begin(ledger, procedure, problem)), 6))
    saved = decode(encode(whole[2]))
    fresh = Ledger(draw_federation())
    rest = list(islice(iterate(fresh, procedure, problem, saved), 3))
    assert encode(rest[-1]) == encode(whole[-1])


@every
def test_states_count_their_rounds(name: str) -> None:
    ledger = Ledger(draw_federation())
    problem, procedure = fix_penalty(ledger, LAM), make(name)
    states = islice(iterate(ledger, procedure, problem, begin(ledger, procedure, problem)), 3)
    assert [s.round for s in states] == [1, 2, 3]


@every
def test_one_model_per_setting(name: str) -> None:
    result = fit(draw_federation(), name, lam=LAM, rounds=ROUNDS, keep_path=True)
    assert result.candidates.shape == (40, len(make(name).settings))
    assert result.path is not None
    assert len(result.path) == ROUNDS
    assert np.array_equal(result.path[-1], result.candidates)
    assert np.array_equal(result.coefficients, result.candidates[:, result.chosen])


@every
def test_a_penalty_above_every_local_largest_gives_the_empty_model(name: str) -> None:
    federation = draw_federation()
    result = fit(federation, name, lam=1.01 * largest_penalty(federation), rounds=ROUNDS)
    assert not result.candidates.any()
    assert result.certificate is not None
    assert result.certificate.gap <= 1e-12 * result.certificate.objective


@every
def test_state_and_replies_are_not_mutated(name: str) -> None:
    ledger = Ledger(draw_federation())
    problem, procedure = fix_penalty(ledger, LAM), make(name)
    state = begin(ledger, procedure, problem)
    state = next(iterate(ledger, procedure, problem, state))
    before = encode(state)
    replies = ledger.ask(procedure.request(problem, state))
    sent = [encode(r) for r in replies]
    procedure.advance(problem, state, replies)
    procedure.models(problem, state)
    assert encode(state) == before
    assert [encode(r) for r in replies] == sent


@every
def test_what_a_procedure_says_it_uploads_is_what_it_uploads(name: str) -> None:
    ledger = Ledger(draw_federation())
    problem, procedure = fix_penalty(ledger, LAM), make(name)
    state = begin(ledger, procedure, problem)
    for _ in range(ROUNDS):
        promised, before = procedure.upload(problem, state), ledger.costs
        state = next(iterate(ledger, procedure, problem, state))
        assert (ledger.costs - before).total("training").upload == 8 * 3 * promised


@pytest.mark.parametrize("name", ["CD", "ST", "P", "DA"])
def test_charged_paths_are_the_columns_that_travel(name: str) -> None:
    procedure = make(name)
    result = fit(draw_federation(), procedure, lam=LAM, rounds=ROUNDS, certified=False)
    training = result.costs.total("training")
    assert training.upload == 8 * 3 * 40 * procedure.paths * ROUNDS
    assert result.costs.most_steps("training") == ROUNDS * procedure.paths * procedure.epochs
    assert training.operations == 4 * 75 * 40 * ROUNDS * procedure.paths * procedure.epochs


@every
def test_identical_sites_act_as_one(name: str) -> None:
    one = draw_sites((30,))[0]
    twins = InProcess([one, *_copies(one, ("b", "c"))])
    alone = fit(InProcess([one]), name, lam=LAM, rounds=ROUNDS, epochs=3)
    together = fit(twins, name, lam=LAM, rounds=ROUNDS, epochs=3)
    np.testing.assert_allclose(together.coefficients, alone.coefficients, atol=1e-12)


def _copies(site: Any, names: tuple[str, ...]) -> list[Any]:
    copies = []
    for name in names:
        (copy,) = draw_sites((30,))
        copy.name = name
        copies.append(copy)
    return copies


def test_problem_averages_by_size() -> None:
    problem = Problem(0.1, (3, 1), 2)
    average = problem.average([np.array([1.0, 2.0]), np.array([5.0, -2.0])])
    assert average.tolist() == [2.0, 1.0]
