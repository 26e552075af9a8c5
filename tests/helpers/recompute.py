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

    def fit(self, penalty: float, effects: bool = False) -> tuple[Numbers, float]:
        """The Lasso of standardised columns, as coefficients per unit and an intercept.

        With `effects` every site has an intercept of its own, and their mean over rows is returned.
        """
        mean, sd = self.X.mean(axis=0), self.X.std(axis=0)
        Z = (self.X - mean) / sd
        p = Z.shape[1]
        free = self.family != "cox"
        site = np.unique(self.site, return_inverse=True)[1] if effects else np.zeros(len(Z), int)
        sites = int(site.max()) + 1

        def objective(at: Numbers) -> tuple[float, Numbers]:
            b = at[:p] - at[p : 2 * p]
            value, slope = self.loss(Z @ b + free * at[2 * p :][site])
            g = Z.T @ slope
            total = value + penalty * float(at[: 2 * p].sum())
            shifts = free * np.bincount(site, slope, sites)
            return total, np.concatenate([g + penalty, penalty - g, shifts])

        bounds = [(0.0, None)] * (2 * p) + [(None, None)] * sites
        start = np.zeros(2 * p + sites)
        options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10}
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        b = (found.x[:p] - found.x[p : 2 * p]) / sd
        return b, float(found.x[2 * p :][site].mean() - mean @ b)

    def means(self, eta: Numbers) -> Numbers:
        """The predicted means."""
        means = {"linear": np.positive, "binomial": expit, "poisson": np.exp}
        return np.asarray(means[self.family](eta))

    def curvature(self, V: Numbers, at: Numbers) -> Numbers:
        """The second derivatives of the negative log-likelihood in coefficients of columns."""
        half = 1e-4 / np.maximum(np.abs(V).max(axis=0), 1e-12)
        slopes = []
        for step in np.diag(half):
            ends = [V.T @ self.loss(V @ (at + sign * step))[1] for sign in (1, -1)]
            slopes.append((ends[0] - ends[1]) * len(self.y) / (2 * step.sum()))
        H = np.array(slopes)
        return np.asarray((H + H.T) / 2)

    def estimate_unpenalised(self) -> tuple[Numbers, Numbers]:
        """Coefficients without a penalty, and their variances."""
        b, intercept = self.fit(0.0)
        V = np.column_stack([self.X, np.ones(len(self.y))])
        at = np.append(b, intercept)
        if self.family == "cox":
            V, at = self.X, b
        variances = np.diagonal(np.linalg.inv(self.curvature(V, at)))[: len(b)]
        if self.family == "linear":
            variances = variances * self.deviance(V @ at) * len(self.y) / (len(self.y) - len(at))
        return b, variances

    def recalibrate(self, eta: Numbers) -> tuple[tuple[float, float], tuple[float, float]]:
        """The calibration in the large and the calibration slope, each with its standard error."""
        V = np.column_stack([np.ones(len(eta)), eta / eta.std()])

        def fit(free: Numbers, offset: Numbers) -> Numbers:
            def objective(at: Numbers) -> tuple[float, Numbers]:
                value, slope = self.loss(free @ at / scale + offset)
                return value / scale**2, free.T @ slope / scale / scale**2

            scale = 1 / self.y.std() if self.family == "linear" else 1.0
            start = np.zeros(free.shape[1])
            found = minimize(objective, start, jac=True, tol=1e-14, method="BFGS")
            return np.asarray(found.x / scale)

        both = fit(V, np.zeros(len(eta)))
        (large,) = fit(V[:, :1], eta)
        dispersion = 1.0
        if self.family != "binomial":
            dispersion = self.deviance(V @ both)
        if self.family == "poisson":
            # That of the predictions as they are.
            dispersion = max(self.deviance(eta), 1.0)
        centred = Records(self.family, V, self.y, self.events, self.site)
        variances = np.diagonal(np.linalg.inv(centred.curvature(V, both)))
        moved = np.column_stack([np.ones(len(eta)), eta])
        info = centred.curvature(moved, np.array([large, 1.0]))[0, 0]
        slope = both[1] / eta.std(), float(np.sqrt(dispersion * variances[1])) / eta.std()
        return (float(large), float(np.sqrt(dispersion / info))), slope

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
