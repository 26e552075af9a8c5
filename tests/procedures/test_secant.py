"""Secant reaches the pooled Lasso, says so without being asked, and survives odd data."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
import pytest
from draws import draw_federation, draw_sites
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import FedLassoError, Fit, InProcess, Ledger, Site, Status, certify, fit
from fedlasso.fit import begin, iterate
from fedlasso.lasso import Array, LeastSquares, solve_reference
from fedlasso.procedures import Secant
from fedlasso.tuning import fix_penalty

Parts = Sequence[tuple[Array, Array]]


def parts(
    sizes: Sequence[int] = (30, 25, 20), p: int = 40, seed: int = 0
) -> list[tuple[Array, Array]]:
    return [(s.training.X, s.training.y) for s in draw_sites(sizes, p, seed)]


def pooled(data: Parts) -> LeastSquares:
    return LeastSquares(np.vstack([X for X, _ in data]), np.concatenate([y for _, y in data]))


def run(data: Parts, lam: float, rounds: int = 60, tol: float = 1e-8) -> Fit:
    sites = InProcess([Site(f"s{j}", X, y) for j, (X, y) in enumerate(data)])
    return fit(sites, Secant(tol=tol), lam=lam, rounds=rounds, tol=tol)


def check(result: Fit, data: Parts, lam: float, tol: float = 1e-8) -> None:
    """Optimal, as its own certificate and an independent solver say."""
    assert result.status is Status.OPTIMAL
    assert result.certificate is not None
    assert 0 <= result.certificate.relative_gap <= tol
    f = pooled(data)
    b = result.coefficients
    best = solve_reference(f, lam).objective
    value = f.value(b) + lam * float(np.abs(b).sum())
    assert value - best <= tol * best
    assert result.certificate.objective == pytest.approx(value, rel=1e-9, abs=1e-300)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    share=st.floats(0.05, 1.2),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    p=st.integers(1, 30),
)
def test_it_reaches_the_pooled_lasso(seed: int, share: float, sizes: list[int], p: int) -> None:
    data = parts(sizes, p, seed)
    lam = share * float(np.abs(pooled(data).score).max())
    check(run(data, lam, rounds=200), data, lam)


def test_it_goes_down_to_ten_digits() -> None:
    data = parts((120, 100, 80), 60)
    check(run(data, 0.1, tol=1e-10), data, 0.1, tol=1e-10)


def test_its_own_certificate_is_the_one_the_sites_would_give_and_costs_nothing() -> None:
    ledger = Ledger(draw_federation())
    result = fit(ledger, "Secant", lam=0.1, rounds=8)
    assert result.certificate is not None
    assert "certificate" not in result.costs.kinds
    asked = certify(ledger, result.problem, result.coefficients)
    assert result.certificate.gap == pytest.approx(asked.gap, rel=1e-8)
    assert result.certificate.objective == pytest.approx(asked.objective, rel=1e-12)


def test_a_round_uploads_p_numbers_and_the_start_one() -> None:
    costs = fit(draw_federation(), "Secant", lam=0.1, rounds=7).costs
    assert costs.total("training").upload == 8 * 3 * 40 * 7
    assert costs.total("rate").upload == 8 * 3
    assert costs.most_steps("training") == 7


def test_splitting_the_rows_otherwise_changes_nothing() -> None:
    data = parts((120, 100, 80), 60)
    f = pooled(data)
    cut = [(f.X[a:b], f.y[a:b]) for a, b in ((0, 7), (7, 150), (150, 151), (151, 300))]
    one, other = run(data, 0.1, tol=1e-11), run(cut, 0.1, tol=1e-11)
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-9)


def test_the_objective_never_rises() -> None:
    ledger = Ledger(draw_federation())
    problem, procedure = fix_penalty(ledger, 0.1), Secant()
    states = islice(iterate(ledger, procedure, problem, begin(ledger, procedure, problem)), 12)
    certificates = [procedure.certificate(problem, state) for state in states]
    values = [c.objective for c in certificates if c is not None]
    assert len(values) == 12
    assert (np.diff(values) <= 1e-14).all()


def test_above_the_largest_penalty_the_empty_model_is_certified_by_one_gradient() -> None:
    data = parts()
    lam = 1.01 * float(np.abs(pooled(data).score).max())
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
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_odd_data(case: str, share: float) -> None:
    lam = share * float(np.abs(pooled(ODD[case]).score).max())
    check(run(ODD[case], lam, rounds=300), ODD[case], lam)


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


def test_a_tolerance_must_be_a_number_from_zero_up() -> None:
    with pytest.raises(FedLassoError, match="tol is nan; give a relative gap, zero or more"):
        Secant(tol=float("nan"))
