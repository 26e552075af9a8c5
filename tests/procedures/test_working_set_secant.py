"""Secant on a working set reaches the pooled Lasso, proves it, and sends less than Secant."""

from collections.abc import Sequence
from itertools import islice, pairwise

import numpy as np
import pytest
from draws import draw_federation, draw_sites
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import FedLassoError, Fit, InProcess, Ledger, Site, Status, certify, fit
from fedlasso.federation import Federation, decode, encode
from fedlasso.fit import begin, iterate
from fedlasso.lasso import Array, LeastSquares, solve_reference
from fedlasso.procedures import Problem, WorkingSetSecant
from fedlasso.procedures.working_set_gram import places
from fedlasso.procedures.working_set_secant import Restricted
from fedlasso.tuning import fix_penalty

Parts = Sequence[tuple[Array, Array]]


def parts(
    sizes: Sequence[int] = (30, 25, 20), p: int = 40, seed: int = 0
) -> list[tuple[Array, Array]]:
    return [(s.training.X, s.training.y) for s in draw_sites(sizes, p, seed)]


def pooled(data: Parts) -> LeastSquares:
    return LeastSquares(np.vstack([X for X, _ in data]), np.concatenate([y for _, y in data]))


def largest(data: Parts) -> float:
    return float(np.abs(pooled(data).score).max())


def run(data: Parts, lam: float, rounds: int = 300, tol: float = 1e-8) -> Fit:
    sites = InProcess([Site(f"s{j}", X, y) for j, (X, y) in enumerate(data)])
    return fit(sites, WorkingSetSecant(tol=tol), lam=lam, rounds=rounds, tol=tol)


def check(result: Fit, data: Parts, lam: float, tol: float = 1e-8) -> None:
    """Optimal, as its own certificate and an independent solver say."""
    assert result.status is Status.OPTIMAL
    assert result.certificate is not None
    assert 0 <= result.certificate.relative_gap <= tol
    f = pooled(data)
    b = result.coefficients
    assert np.isfinite(b).all()
    best = solve_reference(f, lam).objective
    value = f.value(b) + lam * float(np.abs(b).sum())
    assert value - best <= tol * best
    assert result.certificate.objective == pytest.approx(value, rel=1e-9, abs=1e-300)


def states(federation: Federation, lam: float) -> tuple[Problem, list[Restricted]]:
    """Every state of a fit, the last one done."""
    ledger = Ledger(federation)
    problem, procedure = fix_penalty(ledger, lam), WorkingSetSecant()
    first = begin(ledger, procedure, problem)
    return problem, [first, *islice(iterate(ledger, procedure, problem, first), 300)]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    share=st.floats(0.05, 1.2),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    p=st.integers(1, 30),
)
def test_it_reaches_the_pooled_lasso(seed: int, share: float, sizes: list[int], p: int) -> None:
    data = parts(sizes, p, seed)
    check(run(data, share * largest(data)), data, share * largest(data))


def test_it_goes_down_to_ten_digits() -> None:
    data = parts((120, 100, 80), 60)
    check(run(data, 0.1, tol=1e-10), data, 0.1, tol=1e-10)


def test_what_is_filled_in_is_what_would_have_been_learned() -> None:
    sites = draw_sites((60, 50, 40), 100)
    X = np.vstack([s.training.X for s in sites])
    G = X.T @ X / len(X)
    _, seen = states(InProcess(sites), 0.05)
    assert any(state.N.size for state in seen)
    for state in seen[1:]:
        A = places(state.A)
        assert len(set(A)) == len(A)
        assert not set(A) & set(places(state.N))
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
    assert (np.diff(values) <= 1e-14).all()
    assert (np.diff(lows) >= 0).all()
    assert lows[-1] <= least
    assert WorkingSetSecant().certificate(problem, seen[0]) is None


def test_its_last_certificate_is_the_one_the_sites_would_give_and_costs_nothing() -> None:
    ledger = Ledger(draw_federation())
    result = fit(ledger, "SecantWS", lam=0.1, rounds=300)
    assert result.certificate is not None
    assert "certificate" not in result.costs.kinds
    asked = certify(ledger, result.problem, result.coefficients)
    assert result.certificate.gap == pytest.approx(asked.gap, rel=1e-4)
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
        again = next(iterate(ledger, procedure, problem, saved))
        assert encode(again) == encode(after)
        # and what it said it would upload is what it did
        for site in "abc":
            sent = ledger.costs.total("training", site).upload
            assert sent == 8 * procedure.upload(problem, before)


def test_it_sends_less_than_secant() -> None:
    sites = draw_sites((150, 120, 100), 200)
    sent = [
        fit(InProcess(sites), name, lam=0.2, rounds=300).costs.total("training", "a").upload
        for name in ("SecantWS", "Secant")
    ]
    assert sent[0] < 0.6 * sent[1]


def test_above_the_largest_penalty_the_empty_model_is_certified_by_one_gradient() -> None:
    data = parts()
    lam = 1.01 * largest(data)
    result = run(data, lam)
    assert result.rounds == 1
    assert not result.coefficients.any()
    check(result, data, lam)


X, Y = parts((40,), 12)[0]
ODD: dict[str, Parts] = {
    "one predictor": parts((10, 5), 1),
    "one site": parts((40,), 20),
    "a site of one row": parts((40, 1), 20),
    "one row in all": parts((1,), 20),
    "identical sites": [(X, Y)] * 3,
    "every column twice": [(np.hstack([A, A]), y) for A, y in parts((30, 20), 40)],
    "no noise": [(A, A[:, 0]) for A, _ in parts((30, 20), 40)],
    "columns of all sizes": [(A * np.logspace(-3, 3, 20), y) for A, y in parts((30, 20), 20)],
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("share", [0.999999, 0.5, 0.05, 0.001])
def test_odd_data(case: str, share: float) -> None:
    lam = share * largest(ODD[case])
    check(run(ODD[case], lam), ODD[case], lam)


@pytest.mark.parametrize("x_scale", [1e-8, 1e8])
@pytest.mark.parametrize("y_scale", [1e-8, 1.0, 1e8])
def test_scales(x_scale: float, y_scale: float) -> None:
    data = parts()
    unit = run(data, 0.1)
    scaled = run([(x_scale * A, y_scale * y) for A, y in data], 0.1 * x_scale * y_scale)
    assert scaled.status is Status.OPTIMAL
    assert scaled.rounds == unit.rounds
    expected = unit.coefficients * (y_scale / x_scale)
    np.testing.assert_allclose(scaled.coefficients, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_no_response_at_all(lam: float) -> None:
    result = run([(A, 0 * y) for A, y in parts()], lam)
    assert not result.coefficients.any()
    assert result.status is Status.OPTIMAL


def test_without_a_penalty_it_is_least_squares_and_claims_no_certificate() -> None:
    data = parts((60, 50), 10)
    f = pooled(data)
    result = run(data, 0.0)
    np.testing.assert_allclose(result.coefficients, np.linalg.lstsq(f.X, f.y)[0], atol=1e-7)
    assert result.status is Status.SHORT
    assert result.rounds < 300


def test_it_ends_even_when_no_tolerance_can_be_met() -> None:
    data = parts()
    result = run(data, 0.1, tol=0.0)
    assert result.rounds < 300
    assert result.status is Status.SHORT
    assert result.certificate is not None
    assert result.certificate.relative_gap < 1e-12


def test_a_tolerance_must_be_a_number_from_zero_up() -> None:
    with pytest.raises(FedLassoError, match="tol is nan; give a relative gap, zero or more"):
        WorkingSetSecant(tol=float("nan"))
