"""Pooled records of every loss, and an independent solver of the penalised problem on them."""

from dataclasses import dataclass

import numpy as np
from helpers.responses import draw_response
from scipy.optimize import minimize

from fedlasso import Site
from fedlasso.numerics import L1, Array

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

    @property
    def largest_penalty(self) -> float:
        """The smallest penalty at which all coefficients are zero."""
        p = self.X.shape[1]
        slopes = sum(s.rows * s.training.gradient(np.zeros(p)) for s in self.sites())
        return float(np.abs(slopes).max()) / len(self.y)

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
    pays = penalty.thresholds(p)
    ranges = [(0.0, np.inf)] * (2 * p)
    if penalty.bounds is not None:
        ends = np.concatenate([penalty.bounds.upper, -penalty.bounds.lower])
        ranges = [(0.0, float(end)) for end in ends]
    own = penalty.smooth_part(p)
    ridges = np.zeros(p) if own is None else own

    def cost(v: Array) -> float:
        b = v[:p] - v[p:]
        # On its way the solver may go far.
        with np.errstate(over="ignore"):
            loss = pool.mean_loss(b)
        return loss + float(pays @ (v[:p] + v[p:])) + float(ridges @ b**2) / 2

    best = minimize(
        cost,
        np.minimum(0.01, [end for _, end in ranges]),
        method="SLSQP",
        bounds=ranges,
        options={"ftol": 1e-16, "maxiter": 2000},
    )
    b = np.asarray(best.x[:p] - best.x[p:])
    return b if penalty.bounds is None else penalty.bounds.clip(b)
