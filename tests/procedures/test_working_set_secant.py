"""Secant on a working set: what it fills in, what it proves, and that it sends less."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites
from helpers.secants import parts, pooled, run

from fedlasso import InProcess, Ledger, Status, certify, fit
from fedlasso.federation import Federation, decode, encode
from fedlasso.fitting import Run, after_rounds, fix_penalty
from fedlasso.numerics import solve_reference
from fedlasso.procedures import Problem
from fedlasso.procedures.working_set_secant import Restricted, WorkingSetSecant


def states(federation: Federation, lam: float) -> tuple[Problem, list[Restricted]]:
    """Every state of a fit, the last one done."""
    ledger = Ledger(federation)
    run = Run(ledger, WorkingSetSecant(), fix_penalty(ledger, lam))
    first = run.state
    return run.problem, [first, *run.rounds(after_rounds(300))]


def test_what_is_filled_in_is_what_would_have_been_learned() -> None:
    sites = draw_sites((60, 50, 40), 100)
    X = np.vstack([s.training.X for s in sites])
    G = X.T @ X / len(X)
    _, seen = states(InProcess(sites), 0.05)
    assert any(state.N.size for state in seen)
    for state in seen[1:]:
        A = state.A
        assert len(set(A)) == len(A)
        assert not set(A) & set(state.N)
        Q = state.Q
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
        np.testing.assert_allclose(state.Y, G[np.ix_(A, A)] @ Q, atol=1e-13)
        np.testing.assert_allclose(state.c, state.score[A], rtol=0)


def test_the_lower_bound_holds_and_never_falls_nor_does_the_objective_rise() -> None:
    sites = draw_sites((60, 50, 40), 100)
    least = solve_reference(pooled([(s.training.X, s.training.y) for s in sites]), 0.05).objective
    problem, seen = states(InProcess(sites), 0.05)
    certificates = [WorkingSetSecant().certificate(problem, state) for state in seen[1:]]
    values = [c.objective for c in certificates if c is not None]
    lows = [state.low for state in seen]
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert (np.diff(lows) >= 0).all()
    assert lows[-1] <= least * (1 + 1e-12)
    assert WorkingSetSecant().certificate(problem, seen[0]) is None


def test_its_last_certificate_is_the_one_the_sites_would_give_and_costs_nothing() -> None:
    ledger = Ledger(draw_federation())
    result = fit(ledger, "SecantWS", penalty=0.1, rounds=300)
    assert result.certificate is not None
    assert "certificate" not in result.costs.kinds
    asked = certify(ledger, result.problem, result.coefficients)
    # A gap is the difference of two objectives, so its rounding is theirs.
    assert result.certificate.gap == pytest.approx(asked.gap, abs=1e-12 * asked.objective)
    assert result.certificate.objective == pytest.approx(asked.objective, rel=1e-12)


def test_every_kind_of_round_goes_on_through_the_wire() -> None:
    sites = draw_sites((60, 50, 40), 100)
    problem, seen = states(InProcess(sites), 0.05)
    procedure = WorkingSetSecant()
    assert {(s.due, s.N.size > 0) for s in seen} == {(0, False), (1, False), (0, True)}
    for before, after in pairwise(seen):
        ledger = Ledger(InProcess(draw_sites((60, 50, 40), 100)))
        saved = decode(encode(before))
        assert isinstance(saved, Restricted)
        run = Run(ledger, procedure, problem, state=saved)
        assert encode(run.until(after_rounds(saved.round + 1))) == encode(after)
        # and what it said it would upload is what it did
        for site in "abc":
            sent = ledger.costs.total("training", site).upload
            assert sent == 8 * procedure.upload(problem, before)


def test_it_sends_less_than_secant() -> None:
    sites = draw_sites((150, 120, 100), 200)
    sent = [
        fit(InProcess(sites), name, penalty=0.2, rounds=300).costs.total("training", "a").upload
        for name in ("SecantWS", "Secant")
    ]
    assert sent[0] < sent[1]


def test_it_ends_as_far_as_rounding_allows_when_no_tolerance_can_be_met() -> None:
    data = parts()
    result = run(WorkingSetSecant, data, 0.1, tol=0.0)
    assert result.rounds < 300
    assert result.certificate is not None
    assert result.status is Status.OPTIMAL
    assert result.certificate.relative_gap < 1e-12
