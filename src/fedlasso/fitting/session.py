"""Many fits from one set of gradients: the penalty path, adaptive and relaxed fits.

What a gradient says about the pooled curvature does not depend on the penalty, so every fit made
in one `Session` starts from all that the fits before it have learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.fitting.rounds import Run, after_rounds
from fedlasso.fitting.tuning import ACTIVE, fix_penalty
from fedlasso.numerics import L1, Array, Certificate, Secants
from fedlasso.numerics.moments import Normal
from fedlasso.procedures import Secant

# What a refit by least squares still pays, as a share of the largest useful penalty: without any
# there is no duality gap to certify by.
RELAXED = 1e-4


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One fit: argmin ||y - Xb||^2 / (2m) + penalty(b).

    Attributes
    ----------
    penalty : the penalty, with its weights
    coefficients : array (p,)
    residual_ss : ||y - Xb||^2 over all sites, known to the server; twice the loss for other losses
    certificate : distance to the best possible objective with this penalty
    finest : the gap that rounding alone may leave

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, L1, Session, Site
    >>> session = Session(InProcess([Site("a", np.eye(3), [3.0, 2.0, 0.1])]))
    >>> session.fit(L1(0.5)).active
    2
    """

    penalty: L1
    coefficients: Array
    residual_ss: float
    certificate: Certificate
    finest: float = 0.0

    @classmethod
    def by_moments(cls, normal: Normal, b: Array, penalty: L1) -> PathPoint:
        """Certify a model by second moments."""
        (certificate,) = normal.certificates(b[:, None], [penalty])
        residual = normal.variance - 2 * float(b @ normal.score) + float(b @ normal.gram @ b)
        return cls(penalty, b, normal.rows * max(residual, 0.0), certificate)

    def arrived(self, tol: float) -> bool:
        """Whether it is certified to a relative gap, or as far as rounding allows."""
        return self.certificate.relative_gap <= tol or self.certificate.gap <= self.finest

    @property
    def lam(self) -> float:
        """Strength of the penalty, before weights."""
        return self.penalty.lam

    @property
    def active(self) -> int:
        """Number of active coefficients."""
        return int((np.abs(self.coefficients) > ACTIVE).sum())


class Session:
    """The pooled problem as the server knows it, and uploads to learn more of it.

    Parameters
    ----------
    federation : the sites; every byte passes its ledger
    uploads : how many vectors of p numbers each site may send in all, the first one included

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Session, Site
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 8))
    >>> site = Site("a", X, X[:, 0] + 0.1 * rng.standard_normal(50))
    >>> session = Session(InProcess([site]), uploads=30)
    >>> path = session.path(session.grid(5))
    >>> [point.active for point in path][0], session.spent <= 30
    (0, True)
    """

    def __init__(self, federation: Federation, uploads: int = 100) -> None:
        if not isinstance(uploads, int | np.integer) or uploads < 1:
            raise FedLassoError(f"uploads is {uploads!r}; give a whole number, 1 or more")
        self.ledger = metered(federation)
        self.problem = fix_penalty(self.ledger, 0.0)
        self.uploads = uploads
        run = Run(self.ledger, Secant(), self.problem)
        self.known: Secants = run.until(after_rounds(1)).secants
        self.spent = 1
        self.cut = False

    # Relative gap of the fits on a path, and how many there are down to the end of the grid.
    path_tol = 0.01
    path_penalties = 30

    @property
    def largest_penalty(self) -> float:
        """The smallest penalty at which the pooled Lasso is empty."""
        return float(np.abs(self.known.c).max())

    def grid(self, count: int = 20, ratio: float = 0.05, weights: Array | None = None) -> list[L1]:
        """Return log-spaced penalties from the largest useful one down to a share of it."""
        score = self.known.c if weights is None else self.known.c / weights
        largest = float(np.abs(score).max())
        return [L1(float(lam), weights) for lam in largest * np.logspace(0, np.log10(ratio), count)]

    def fit(
        self, penalty: L1, start: Array | None = None, tol: float = 0.01, reserve: int = 0
    ) -> PathPoint:
        """Fit at one penalty, until certified to `tol` or out of uploads.

        Parameters
        ----------
        penalty : the penalty; infinite weights keep their coefficients at zero
        start : a model fitted before in this session; empty by default
        tol : relative duality gap
        reserve : uploads that must be left over
        """
        best = np.zeros(self.problem.p)
        if start is not None:
            warm = np.where(np.isfinite(penalty.each(self.problem.p)), start, 0.0)
            # Only a model in the span of what was asked has a known objective.
            if self.known.direction(warm) is None:
                best = warm
        if not self.arrived(best, penalty, tol):
            problem = replace(self.problem, penalty=penalty)
            secant = Secant(tol=tol)
            state = secant.go_on(problem, self.known, best, self.spent)
            run = Run(self.ledger, secant, problem, state=state)
            state = run.until(after_rounds(self.uploads - reserve))
            self.known = state.secants
            self.spent = state.round
            best = state.best
        rss = 2 * self.problem.m * self.known.loss(best)
        certificate = self.known.certificate(best, penalty)
        return PathPoint(penalty, best, rss, certificate, self.known.finest(best))

    def arrived(self, b: Array, penalty: L1, tol: float) -> bool:
        """Whether b, fitted in this session, is certified to `tol` or as far as rounding allows."""
        certificate = self.known.certificate(b, penalty)
        return certificate.relative_gap <= tol or certificate.gap <= self.known.finest(b)

    def walk(
        self,
        penalties: Sequence[L1],
        tol: float = 0.01,
        reserve: int = 0,
        start: Array | None = None,
    ) -> Iterator[PathPoint]:
        """Fit at decreasing penalties, each from the fit before, while uploads last.

        Every point is certified to `tol`; `cut` says whether uploads ended first.
        """
        self.cut = False
        for penalty in penalties:
            point = self.fit(penalty, start, tol, reserve)
            if not point.arrived(tol):
                self.cut = True
                return
            yield point
            start = point.coefficients

    def path(self, penalties: Sequence[L1], tol: float = 0.01) -> tuple[PathPoint, ...]:
        """Return the whole of `walk`."""
        return tuple(self.walk(penalties, tol))

    def adaptive_weights(self, b: Array, power: float = 1.0) -> Array:
        """1/|b_k|^power, infinite where b_k is not active: the adaptive Lasso of Zou (2006)."""
        weights = np.full(b.shape, np.inf)
        on = np.abs(b) > ACTIVE
        weights[on] = np.abs(b[on]) ** -power
        return weights

    def relax(
        self, b: Array, phi: float = RELAXED, tol: float = 1e-4, reserve: int = 0
    ) -> PathPoint:
        """Refit on the support of b with next to no penalty: least squares, certified.

        The penalty left is a share `phi` of the largest useful one.
        """
        weights = np.where(np.abs(b) > ACTIVE, 1.0, np.inf)
        return self.fit(L1(phi * self.largest_penalty, weights), b, tol, reserve)


def ebic(points: Sequence[PathPoint], m: int, p: int, gamma: float = 0.0) -> Array:
    """Information criteria from residual sums the server knows: BIC, or EBIC when gamma > 0.

    m log(rss / m) + a log m + 2 gamma a log p, with a active coefficients (Chen and Chen 2008).
    """
    rss = np.array([point.residual_ss for point in points])
    active = np.array([point.active for point in points])
    fit = m * np.log(np.maximum(rss, np.finfo(float).tiny) / m)
    criteria: Array = fit + active * (np.log(m) + 2 * gamma * np.log(p))
    return criteria
