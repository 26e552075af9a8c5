"""The numbers of a card, recomputed from pooled records without fedlasso's solvers."""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit, xlogy

Numbers = np.ndarray[Any, np.dtype[np.float64]]


class Records:
    """Pooled rows: X, y (times for Cox), events, and the number of each row's site."""

    def __init__(self, family: str, X: Numbers, y: Numbers, events: Numbers, site: Numbers) -> None:
        self.family, self.X, self.y, self.events, self.site = family, X, y, events, site

    def take(self, rows: Any) -> "Records":
        parts = (own[rows] for own in (self.X, self.y, self.events, self.site))
        return Records(self.family, *parts)

    def loss(self, eta: Numbers) -> tuple[float, Numbers]:
        """The mean negative log-likelihood of a linear predictor and its slope."""
        y, n = self.y, len(self.y)
        if self.family == "linear":
            return float(((y - eta) ** 2).sum()) / 2 / n, (eta - y) / n
        if self.family == "binomial":
            p = expit(eta)
            value = float((np.logaddexp(0, eta) - y * eta).sum()) / n
            return value, (p - y) / n
        if self.family == "poisson":
            mean = np.exp(eta)
            return float((mean - y * eta).sum()) / n, (mean - y) / n
        value, slope = 0.0, np.zeros(n)
        for site in np.unique(self.site):
            own = np.flatnonzero(self.site == site)
            own = own[np.argsort(y[own])]
            risk = np.exp(eta[own])
            at_risk = np.cumsum(risk[::-1])[::-1]
            events = self.events[own]
            value -= float((events * (eta[own] - np.log(at_risk))).sum())
            slope[own] = risk * np.cumsum(events / at_risk) - events
        return value / n, slope / n

    def fit(self, penalty: float) -> tuple[Numbers, float]:
        """The Lasso of standardised columns, as coefficients per unit and an intercept."""
        mean, sd = self.X.mean(axis=0), self.X.std(axis=0)
        Z = (self.X - mean) / sd
        p = Z.shape[1]
        free = self.family != "cox"

        def objective(at: Numbers) -> tuple[float, Numbers]:
            b = at[:p] - at[p : 2 * p]
            value, slope = self.loss(Z @ b + free * at[-1])
            g = Z.T @ slope
            total = value + penalty * float(at[: 2 * p].sum())
            return total, np.concatenate([g + penalty, penalty - g, [free * slope.sum()]])

        bounds = [(0.0, None)] * (2 * p) + [(None, None)]
        start = np.zeros(2 * p + 1)
        options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10}
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        b = (found.x[:p] - found.x[p : 2 * p]) / sd
        return b, float(found.x[-1] - mean @ b)

    def recalibrate(self, eta: Numbers) -> tuple[float, float]:
        """The calibration in the large, and the calibration slope."""

        def both(at: Numbers) -> tuple[float, Numbers]:
            value, slope = self.loss(at[0] + at[1] * eta)
            return value, np.array([slope.sum(), slope @ eta])

        def large(at: Numbers) -> tuple[float, Numbers]:
            value, slope = self.loss(at[0] + eta)
            return value, np.array([slope.sum()])

        slope = minimize(both, np.array([0.0, 1.0]), jac=True, tol=1e-12).x[1]
        return float(minimize(large, np.zeros(1), jac=True, tol=1e-12).x[0]), float(slope)

    def deviance(self, eta: Numbers) -> float:
        """Mean squared error, or the deviance per row."""
        y = self.y
        value = 2 * self.loss(eta)[0]
        if self.family == "poisson":
            return value + 2 * float((xlogy(y, y) - y).mean())
        return value

    def explained(self, eta: Numbers) -> float:
        """The fraction of the deviance of the best constant predictor that is explained."""
        links = {"linear": lambda mean: mean, "binomial": logit, "poisson": np.log}
        constant = 0.0 if self.family == "cox" else links[self.family](self.y.mean())
        empty = np.full(len(eta), float(constant))
        return 1 - self.deviance(eta) / self.deviance(empty)

    def pairs(self, eta: Numbers) -> tuple[float, float]:
        """Comparable pairs of rows of one site, and how many are in the right order."""
        comparable = right = 0.0
        for site in np.unique(self.site):
            own = self.site == site
            y, events, score = self.y[own], self.events[own], eta[own]
            if self.family == "cox":
                first = (events[:, None] == 1) & (y[:, None] < y[None, :])
            else:
                first = y[:, None] > y[None, :]
            ahead = (score[:, None] > score[None, :]) + 0.5 * (score[:, None] == score[None, :])
            comparable += float(first.sum())
            right += float((first * ahead).sum())
        return comparable, right


def fit_breslow(X: Numbers, times: Numbers, events: Any, strata: Any) -> Numbers:
    """Return the maximum of Breslow's partial likelihood, with a baseline hazard per stratum."""
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / scale
    at_risk = (times[None, :] >= times[:, None]) & (strata[None, :] == strata[:, None])

    def minus_log_likelihood(b: Numbers) -> tuple[float, Numbers]:
        eta = Z @ b
        weights = at_risk * np.exp(eta)
        sums = weights.sum(axis=1)
        value = (np.log(sums) - eta)[events].mean()
        slope = (weights @ Z / sums[:, None] - Z)[events].mean(axis=0)
        return float(value), slope

    start = np.zeros(X.shape[1])
    found = minimize(minus_log_likelihood, start, jac=True, method="BFGS", options={"gtol": 1e-10})
    assert np.abs(found.jac).max() < 1e-8
    return np.asarray(found.x / scale)
