"""Newton against an independent solver on the pooled records, for every loss and penalty."""

from dataclasses import dataclass

import numpy as np
import pytest
from responses import draw_response
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer

from fedlasso import FedLassoError, InProcess, Ledger, Site, Status, fit
from fedlasso.fitting import CurvedSession, Run, after_rounds, certify, fix_penalty
from fedlasso.numerics import L1, Array, ElasticNet, PenaltyForm
from fedlasso.procedures import Newton, find_procedure
from fedlasso.sites import standardise

LOSSES = ["quadratic", "binomial", "poisson", "cox", "cox with Breslow ties"]


@dataclass
class Pool:
    """Pooled records, and which site each row belongs to."""

    loss: str
    X: Array
    y: Array
    w: Array
    o: Array
    site: np.ndarray

    def sites(self) -> list[Site]:
        found = []
        for k in np.unique(self.site):
            own = self.site == k
            found.append(
                Site(
                    f"s{k:02d}",
                    self.X[own],
                    self.y[own],
                    loss=self.loss,
                    weights=self.w[own],
                    offset=self.o[own],
                )
            )
        return found

    def mean_loss(self, b: Array) -> float:
        """The mean loss, written out row by row and risk set by risk set."""
        eta = self.X @ b + self.o
        if self.loss == "quadratic":
            return float(self.w @ (self.y - eta) ** 2) / 2 / len(eta)
        if self.loss == "binomial":
            wrong = np.where(self.y == 1, -eta, eta)
            return float(self.w @ np.logaddexp(0, wrong)) / len(eta)
        if self.loss == "poisson":
            free = np.where(self.y > 0, self.y * np.log(np.maximum(self.y, 1)), 0.0)
            return float(self.w @ (np.exp(eta) - self.y * eta - self.y + free)) / len(eta)
        total = 0.0
        for k in np.unique(self.site):
            own = self.site == k
            total += cox(eta[own], self.y[own], self.w[own], "Breslow" in self.loss)
        return total / len(eta)


def cox(eta: Array, y: Array, w: Array, breslow: bool) -> float:
    times = np.abs(y)
    dead = ~np.signbit(y)
    total = -float((w * eta)[dead].sum())
    for time in np.unique(times[dead]):
        at_risk = float((w * np.exp(eta))[times >= time].sum())
        dying = dead & (times == time)
        own = float((w * np.exp(eta))[dying].sum())
        count = int(dying.sum())
        for turn in range(count):
            left = at_risk if breslow else at_risk - turn / count * own
            total += float(w[dying].mean()) * np.log(left)
    return total


def draw(loss: str, sizes: tuple[int, ...], p: int = 6, seed: int = 0) -> Pool:
    rng = np.random.default_rng(seed)
    m = sum(sizes)
    X = rng.standard_normal((m, p)) @ np.linalg.cholesky(0.4 + 0.6 * np.eye(p)).T
    truth = np.zeros(p)
    truth[:3] = (0.8, -0.6, 0.4)
    y = draw_response(loss, X @ truth, rng)
    site = np.repeat(np.arange(len(sizes)), sizes)
    return Pool(loss, X, y, rng.uniform(0.5, 1.5, m), 0.3 * rng.standard_normal(m), site)


def solve(pool: Pool, penalty: L1) -> Array:
    """Split every coefficient into its two signs, and let a quasi-Newton method with bounds do."""
    p = pool.X.shape[1]
    pays = penalty.each(p)
    ridges = penalty.ridges(p) if isinstance(penalty, ElasticNet) else np.zeros(p)

    def cost(v: Array) -> float:
        b = v[:p] - v[p:]
        return pool.mean_loss(b) + float(pays @ (v[:p] + v[p:])) + float(ridges @ b**2) / 2

    best = minimize(
        cost,
        np.full(2 * p, 0.01),
        method="SLSQP",
        bounds=[(0, None)] * (2 * p),
        options={"ftol": 1e-16, "maxiter": 2000},
    )
    return np.asarray(best.x[:p] - best.x[p:])


PENALTIES: dict[str, L1] = {
    "lasso": L1(0.05),
    "factors": L1(0.05, np.array([1.0, 0.0, 0.5, 2.0, 1.0, 0.0])),
    "net": ElasticNet(0.03, None, 0.05),
    "net with factors": ElasticNet(0.03, np.array([1.0, 0.0, 0.5, 2.0, 1.0, 1.0]), 0.05),
}


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


@pytest.mark.parametrize("loss", LOSSES)
def test_a_certificate_is_never_below_the_true_gap(loss: str) -> None:
    """Near the optimum and far from it, at hardly any penalty and at one above the largest."""
    rng = np.random.default_rng(0)
    for seed in range(12):
        pool = draw(loss, (30, 20), seed=seed)
        federation = InProcess(pool.sites())
        slopes = sum(s.rows * s.training.gradient(np.zeros(6)) for s in pool.sites()) / 50
        lam = float(np.abs(slopes).max()) * [1e-3, 0.1, 0.5, 1.2][seed % 4]
        kept = np.array([1.0, 0.0, 1.0, 2.0, 1.0, 0.5])
        for penalty in (L1(lam), ElasticNet(0.5 * lam, None, 0.5 * lam), L1(lam, kept)):
            problem = fix_penalty(federation, penalty)
            best = fit(federation, Newton(tol=1e-12), penalty=penalty, rounds=400)
            assert best.certificate is not None
            least = best.certificate.objective - best.certificate.gap
            for far in (1e-6, 1e-2, 1.0, 5.0):
                b = best.coefficients + far * rng.standard_normal(6)
                told = certify(federation, problem, b)
                true = pool.mean_loss(b) + penalty.value(b)
                assert told.objective == pytest.approx(true, rel=1e-9)
                assert told.objective - told.gap <= best.certificate.objective * (1 + 1e-9)
                assert told.gap >= true - best.certificate.objective - 1e-9 * abs(true)
            assert least <= best.certificate.objective


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
    form = PenaltyForm(np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0]), 0.8)
    session = CurvedSession(InProcess(pool.sites()), 500, form)
    for share in (1.0, 0.5, 0.2, 0.05):
        penalty = form.at(share * session.largest_penalty)
        point = session.fit(penalty, tol=1e-10)
        assert point.arrived(1e-10)
        alone = fit(InProcess(pool.sites()), Newton(tol=1e-10), penalty=penalty, rounds=300)
        np.testing.assert_allclose(point.coefficients, alone.coefficients, atol=1e-6)
        paying = np.delete(point.coefficients, 2)
        # The largest penalty is known as well as the model without columns is solved.
        assert bool((np.abs(paying) > 1e-8).any()) == (share < 1.0)


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
    form = PenaltyForm(weights)
    session = CurvedSession(view, 400, form)
    for lam in 0.15 * 0.7366 ** np.arange(17):
        assert session.fit(form.at(float(lam)), tol=1e-3).arrived(1e-3)
