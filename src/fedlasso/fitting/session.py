"""Many fits from one set of gradients: the penalty path, adaptive and relaxed fits.

What a gradient says about the pooled curvature does not depend on the penalty, so every fit made
with one `Explorer` starts from all that the fits before it have learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, Ledger, metered
from fedlasso.fitting.tuning import ACTIVE, fix_penalty
from fedlasso.numerics import Array, Secants
from fedlasso.numerics.certificate import Certificate
from fedlasso.procedures import Knowledge, Problem
from fedlasso.procedures.secant import ask_along, better, hear
from fedlasso.sites import GradientAt, ResponseSquares


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One fit: argmin ||y - Xb||^2 / (2m) + sum_k penalties_k |b_k|, over finite penalties.

    Attributes
    ----------
    lam : the penalty, before weights
    coefficients : array (p,)
    residual_ss : ||y - Xb||^2 over all sites, known to the server
    certificate : distance to the best possible objective with these penalties
    """

    lam: float
    coefficients: Array
    residual_ss: float
    certificate: Certificate

    @property
    def active(self) -> int:
        """Number of active coefficients."""
        return int((np.abs(self.coefficients) > ACTIVE).sum())


class Explorer:
    """The pooled problem as the server knows it, and uploads to learn more of it.

    Parameters
    ----------
    federation : the sites; every byte passes its ledger
    uploads : how many vectors of p numbers each site may send in all, the first one included
    problem : sizes of the sites, if they are known already

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 8))
    >>> site = Site("a", X, X[:, 0] + 0.1 * rng.standard_normal(50))
    >>> explorer = Explorer(InProcess([site]), uploads=30)
    >>> path = explorer.path(explorer.grid(5))
    >>> [point.active for point in path][0], explorer.spent <= 30
    (0, True)
    """

    def __init__(
        self, federation: Federation, uploads: int = 100, problem: Problem | None = None
    ) -> None:
        if not isinstance(uploads, int | np.integer) or uploads < 1:
            raise FedLassoError(f"uploads is {uploads!r}; give a whole number, 1 or more")
        self.ledger: Ledger = metered(federation)
        self.problem = problem or fix_penalty(self.ledger, 0.0)
        self.uploads = uploads
        self.spent = 0
        y_ss = sum(reply.y_ss for reply in self.ledger.ask(ResponseSquares()))
        gradient = self._gradient(np.zeros(self.problem.p))
        self.known = Secants.first(-gradient, y_ss / self.problem.m)

    def _gradient(self, b: Array) -> Array:
        self.spent += 1
        replies = self.ledger.ask(GradientAt(b))
        gradient: Array = np.sum([r.gradient for r in replies], axis=0) / self.problem.m
        return gradient

    @property
    def largest_penalty(self) -> float:
        """The smallest penalty at which the pooled Lasso is empty."""
        return float(np.abs(self.known.c).max())

    def grid(self, count: int = 20, ratio: float = 0.05) -> Array:
        """Log-spaced penalties from the largest useful one down to a share of it."""
        grid: Array = self.largest_penalty * np.logspace(0.0, np.log10(ratio), count)
        return grid

    def fit(
        self,
        lam: float,
        weights: Array | None = None,
        start: Array | None = None,
        tol: float = 0.01,
        reserve: int = 0,
    ) -> PathPoint:
        """Fit at penalties lam * weights, until certified to `tol` or out of uploads.

        Parameters
        ----------
        lam : the penalty
        weights : one a coefficient; infinite keeps it at zero. Ones by default
        start : a model fitted before with this explorer; empty by default
        tol : relative duality gap
        reserve : uploads that must be left over
        """
        penalties = np.full(self.problem.p, lam) if weights is None else _scaled(lam, weights)
        zero = np.zeros(self.problem.p)
        best = zero if start is None else np.where(np.isfinite(penalties), start, 0.0)
        # Only a model in the span of what was asked has a known objective.
        if self.known.direction(best) is not None:
            best = zero
        while not self._met(best, penalties, tol):
            trial = self.known.propose(penalties, best)
            new = self.known.direction(trial) is not None
            if new and self.spent >= self.uploads - reserve:
                break
            if new:
                gradient = self._gradient(ask_along(self.known, trial))
                self.known = hear(self.known, trial, gradient)
            best = better(self.known, penalties, best, trial)
            if not self.known.positive:
                self.known = self.known.restart(best)
            if not new:
                break
        rss = 2 * self.problem.m * self.known.loss(best)
        return PathPoint(float(lam), best, rss, self._certificate(best, penalties))

    def _certificate(self, b: Array, penalties: Array) -> Certificate:
        return Certificate(self.known.objective(b, penalties), self.known.gap(b, penalties))

    def _met(self, b: Array, penalties: Array, tol: float) -> bool:
        return self._certificate(b, penalties).relative_gap <= tol

    def walk(
        self,
        penalties: Array,
        weights: Array | None = None,
        tol: float = 0.01,
        reserve: int = 0,
    ) -> Iterator[PathPoint]:
        """Fit at decreasing penalties, each from the fit before, while uploads last.

        Every point is certified to `tol`.
        """
        start = None
        for lam in penalties:
            point = self.fit(float(lam), weights, start, tol, reserve)
            if not point.certificate.relative_gap <= tol:
                return
            yield point
            start = point.coefficients

    def path(
        self,
        penalties: Array,
        weights: Array | None = None,
        tol: float = 0.01,
        reserve: int = 0,
    ) -> tuple[PathPoint, ...]:
        """The whole of `walk`."""
        return tuple(self.walk(penalties, weights, tol, reserve))

    def adaptive_weights(self, b: Array, power: float = 1.0) -> Array:
        """1/|b_k|^power, infinite where b_k is not active: the adaptive Lasso of Zou (2006)."""
        weights = np.full(b.shape, np.inf)
        on = np.abs(b) > ACTIVE
        weights[on] = np.abs(b[on]) ** -power
        return weights

    def adaptive_grid(self, weights: Array, count: int = 20, ratio: float = 1e-3) -> Array:
        """As `grid`, for weighted penalties."""
        largest = float(np.abs(self.known.c / weights).max())
        grid: Array = largest * np.logspace(0.0, np.log10(ratio), count)
        return grid

    def relax(self, b: Array, phi: float = 1e-4, tol: float = 1e-4, reserve: int = 0) -> PathPoint:
        """Refit on the support of b with next to no penalty: least squares, certified.

        The penalty left is a share `phi` of the largest useful one; without any there is no
        duality gap to certify by.
        """
        weights = np.where(np.abs(b) > ACTIVE, 1.0, np.inf)
        return self.fit(phi * self.largest_penalty, weights, b, tol, reserve)

    def state(self, point: PathPoint) -> Knowledge:
        """What a Secant fit at the point's penalty would go on from."""
        known, b = self.known, point.coefficients
        trial = known.propose(np.full(self.problem.p, point.lam), b)
        return Knowledge(
            known.c, known.y_ms, known.Q, known.Y, known.mu, b, trial, round=self.spent
        )


def ebic(points: Sequence[PathPoint], m: int, p: int, gamma: float = 0.0) -> Array:
    """Information criteria from residual sums the server knows: BIC, or EBIC when gamma > 0.

    m log(rss / m) + a log m + 2 gamma a log p, with a active coefficients (Chen and Chen 2008).
    """
    rss = np.array([point.residual_ss for point in points])
    active = np.array([point.active for point in points])
    fit = m * np.log(np.maximum(rss, np.finfo(float).tiny) / m)
    criteria: Array = fit + active * (np.log(m) + 2 * gamma * np.log(p))
    return criteria


def _scaled(lam: float, weights: Array) -> Array:
    return np.where(np.isfinite(weights), lam * np.where(np.isfinite(weights), weights, 0), np.inf)
