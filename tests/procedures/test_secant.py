"""Secant on whole vectors: what it sends, what it certifies."""

import numpy as np
import pytest
from helpers.draws import draw_federation
from helpers.secants import parts, pooled, run

from fedlasso import Ledger, certify, fit
from fedlasso.fitting import Run, after_rounds, fix_penalty
from fedlasso.procedures import Secant


def test_its_own_certificate_is_the_one_the_sites_would_give_and_costs_nothing() -> None:
    ledger = Ledger(draw_federation())
    result = fit(ledger, "Secant", penalty=0.1, rounds=8)
    assert result.certificate is not None
    assert "certificate" not in result.costs.kinds
    asked = certify(ledger, result.problem, result.coefficients)
    # A gap is the difference of two objectives, so its rounding is theirs.
    assert result.certificate.gap == pytest.approx(asked.gap, abs=1e-12 * asked.objective)
    assert result.certificate.objective == pytest.approx(asked.objective, rel=1e-12)


def test_a_round_uploads_p_numbers_and_the_start_one() -> None:
    costs = fit(draw_federation(), "Secant", penalty=0.1, rounds=7).costs
    assert costs.total("training").upload == 8 * 3 * 40 * 7
    assert costs.total("rate").upload == 8 * 3
    assert costs.most_steps("training") == 7


def test_splitting_the_rows_otherwise_changes_nothing() -> None:
    data = parts((120, 100, 80), 60)
    f = pooled(data)
    cut = [(f.X[a:b], f.y[a:b]) for a, b in ((0, 7), (7, 150), (150, 151), (151, 300))]
    one, other = run(Secant, data, 0.1, tol=1e-11), run(Secant, cut, 0.1, tol=1e-11)
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-9)


def test_the_objective_never_rises() -> None:
    ledger = Ledger(draw_federation())
    problem = fix_penalty(ledger, 0.1)
    run = Run(ledger, Secant(), problem)
    states = run.rounds(after_rounds(12))
    certificates = [Secant().certificate(problem, state) for state in states]
    values = [c.objective for c in certificates if c is not None]
    assert len(values) == 12
    assert (np.diff(values) <= 1e-12 * values[0]).all()
