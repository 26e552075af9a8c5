"""Newton against an independent solver on the pooled records, for every loss and penalty."""

import numpy as np
import pytest
from helpers.pools import LOSSES, draw, solve
from sklearn.datasets import load_breast_cancer

from fedlasso import FedLassoError, InProcess, Ledger, Site, Status, fit
from fedlasso.fitting import Run, after_rounds, certify, fix_penalty, open_evidence
from fedlasso.numerics import L1, ElasticNet
from fedlasso.procedures import Newton, find_procedure
from fedlasso.sites import standardise

PENALTIES: dict[str, L1] = {
    "lasso": L1(0.05),
    "factors": L1(0.05, np.array([1.0, 0.0, 0.5, 2.0, 1.0, 0.0])),
    "net": ElasticNet.with_ridge(0.03, 0.05),
    "net with factors": ElasticNet.with_ridge(0.03, 0.05, np.array([1.0, 0.0, 0.5, 2.0, 1.0, 1.0])),
}


@pytest.mark.full
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("sizes", [(120,), (50, 40, 30), (60, 20, 8, 7, 6, 5, 5, 4, 3, 2)])
def test_newton_is_the_pooled_optimum(loss: str, kind: str, sizes: tuple[int, ...]) -> None:
    pool = draw(loss, sizes)
    penalty = PENALTIES[kind]
    result = fit(InProcess(pool.sites()), Newton(tol=1e-10), penalty=penalty, rounds=300, tol=1e-10)
    assert result.status is Status.OPTIMAL
    found = pool.mean_loss(result.coefficients) + penalty.value(result.coefficients)
    assert result.certificate is not None
    assert result.certificate.objective == pytest.approx(found, rel=1e-11)
    other = solve(pool, penalty)
    assert found <= pool.mean_loss(other) + penalty.value(other) + 1e-12
    np.testing.assert_allclose(result.coefficients, other, atol=2e-4)


@pytest.mark.standard
@pytest.mark.parametrize("loss", LOSSES)
def test_a_certificate_is_never_below_the_true_gap(loss: str) -> None:
    """Near the optimum and far from it, at hardly any penalty and at one above the largest."""
    rng = np.random.default_rng(0)
    for seed in range(12):
        pool = draw(loss, (30, 20), seed=seed)
        federation = InProcess(pool.sites())
        lam = pool.largest_penalty * [1e-3, 0.1, 0.5, 1.2][seed % 4]
        kept = np.array([1.0, 0.0, 1.0, 2.0, 1.0, 0.5])
        for penalty in (L1(lam), ElasticNet(lam, None, 0.5), L1(lam, kept)):
            problem = fix_penalty(federation, penalty)
            best = fit(federation, Newton(tol=1e-12), penalty=penalty, rounds=400)
            assert best.certificate is not None
            least = best.certificate.objective - best.certificate.gap
            for far in (1e-6, 1e-2, 1.0, 5.0):
                b = best.coefficients + far * rng.standard_normal(6)
                reported = certify(federation, problem, b)
                true = pool.mean_loss(b) + penalty.value(b)
                assert reported.objective == pytest.approx(true, rel=1e-9)
                assert reported.objective - reported.gap <= best.certificate.objective * (1 + 1e-9)
                assert reported.gap >= true - best.certificate.objective - 1e-9 * abs(true)
            assert least <= best.certificate.objective


@pytest.mark.full
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize("lam", [0.3, 0.001])
def test_no_bound_is_claimed_where_kept_columns_tell_the_classes_apart(
    tol: float, lam: float
) -> None:
    """The best coefficients are infinite there, and the least objective is zero."""
    penalty = L1(lam, np.array([0.0, 0.0, 1.0, 1.0]))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 4)) * rng.uniform(0.3, 3, 4)
        y = (X[:, :2] @ rng.standard_normal(2) > 0).astype(float)
        parts = {"a": slice(0, 25), "b": slice(25, 40)}
        sites = [Site(name, X[own], y[own], loss="binomial") for name, own in parts.items()]
        result = fit(InProcess(sites), Newton(tol=tol), penalty=penalty, rounds=200, tol=tol)
        assert result.certificate is not None
        assert result.certificate.objective - result.certificate.gap <= 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_is_the_fits_at_its_penalties(loss: str) -> None:
    pool = draw(loss, (60, 50, 40))
    form = ElasticNet(1.0, np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0]), 0.8)
    evidence = open_evidence(InProcess(pool.sites()), 500, form)
    for share in (1.0, 0.5, 0.2, 0.05):
        penalty = form.at(share * evidence.largest_penalty)
        point = evidence.fit(penalty, tol=1e-10)
        assert point.arrived(1e-10)
        alone = fit(InProcess(pool.sites()), Newton(tol=1e-10), penalty=penalty, rounds=300)
        np.testing.assert_allclose(point.coefficients, alone.coefficients, atol=1e-6)
        paying = np.delete(point.coefficients, 2)
        # The largest penalty is known as well as the model without columns is solved.
        assert bool((np.abs(paying) > 1e-8).any()) == (share < 1.0)


def test_a_long_path_is_solved_no_further_than_was_asked_for() -> None:
    """Every fit once took over how far the one before had been solved, and none of them less."""
    pool = draw("quadratic", (60, 50, 40))
    form = L1(1.0, np.array([1.0, 1.0, 1.0, 1.0, 1.0, 2.0]))
    evidence = open_evidence(InProcess(pool.sites()), 300, form)
    for k in range(40):
        assert evidence.fit(form.at(evidence.largest_penalty * 0.7**k), tol=1e-3).arrived(1e-3)


def test_what_newton_says_it_sends_is_what_it_sends() -> None:
    pool = draw("binomial", (60, 50, 40))
    ledger = Ledger(InProcess(pool.sites()))
    run = Run(ledger, Newton(), fix_penalty(ledger, L1(0.02)))
    sent = 0.0
    expected = 0.0
    for _ in range(100):
        if run.procedure.done(run.problem, run.state):
            break
        if run.state.step != "bound":
            expected += run.procedure.upload(run.problem, run.state)
        run.until(after_rounds(run.state.round + 1))
        sent = ledger.costs.total("training", "s00").upload / 8
        assert sent == expected
    assert run.procedure.done(run.problem, run.state)


def test_wishes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(FedLassoError, match="tol is -1"):
        Newton(tol=-1)
    pool = draw("binomial", (60, 50, 40))
    with pytest.raises(FedLassoError, match="fits the quadratic loss only"):
        fit(InProcess(pool.sites()), find_procedure("Secant")(), penalty=0.1)


def test_corrections_that_lead_astray_are_no_end() -> None:
    """A path on tumours, with a kept column, on which corrected second derivatives once stalled."""
    X, y = load_breast_cancer(return_X_y=True)
    sites = [
        Site(str(j), X[j::3], y[j::3].astype(float), loss="binomial", raw=True, intercept=True)
        for j in range(3)
    ]
    view, _ = standardise(InProcess(sites), "fold 5 of 5 0")
    weights = np.append(np.ones(30), 0.0)
    weights[0] = 0.0
    form = L1(1.0, weights)
    evidence = open_evidence(view, 400, form)
    for lam in 0.15 * 0.7366 ** np.arange(17):
        assert evidence.fit(form.at(float(lam)), tol=1e-3).arrived(1e-3)
