"""Bounds on coefficients: ranges that they may not leave, and minima of quadratics within them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.numerics.descent import Lasso, descend
from fedlasso.numerics.machine import Array
from fedlasso.numerics.repair import minimize_along

# Sweeps of coordinate descent after which a step on all coefficients between bounds is taken, and
# how often both are.
SWEEPS = 50
STEPS = 200
# Slopes are solved to this share of the largest one.
EXACT = 1e-14
# Curvature added while a step is computed, as a share of the largest.
STEADY = 1e-14
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Bounds:
    """The range of every coefficient: zero lies in it, and it may be infinite to either side.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics import Bounds
    >>> Bounds(np.array([0.0, -1.0]), np.array([np.inf, 2.0])).clip(np.array([-3.0, 4.0]))
    array([0., 2.])
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        if not ((self.lower <= 0).all() and (self.upper >= 0).all()):
            raise FedLassoError(
                "a range of a coefficient does not hold zero; give lower bounds of at most 0 and "
                "upper bounds of at least 0"
            )

    def __repr__(self) -> str:
        told = self.lower.tobytes() + self.upper.tobytes()
        return f"bounds {hashlib.sha256(told).hexdigest()[:16]}"

    def part(self, on: Any) -> Bounds:
        """Return the bounds of some coefficients."""
        return Bounds(self.lower[on], self.upper[on])

    def scaled(self, factors: Array) -> Bounds:
        """Return the bounds of coefficients that times `factors` are the ones bounded here.

        A factor of zero marks a coefficient that stays at zero, and needs no bound.
        """
        on = factors > 0
        lower = np.divide(self.lower, factors, out=np.full(len(on), -np.inf), where=on)
        upper = np.divide(self.upper, factors, out=np.full(len(on), np.inf), where=on)
        return Bounds(lower, upper)

    def clip(self, v: Array) -> Array:
        """Return the nearest coefficients within bounds, for every column of v."""
        return np.asarray(np.clip(v.T, self.lower, self.upper).T)

    def hold(self, b: Array) -> bool:
        """Whether all coefficients are within."""
        return bool(((b >= self.lower) & (b <= self.upper)).all())

    def toward(self, pull: Array) -> Array:
        """Return the end of each range on the side to which a coefficient is pulled."""
        return np.where(pull > 0, self.upper, self.lower)

    def allowed(self, b: Array, pull: Array) -> Array:
        """Return a pull without that of coefficients which stand at the end it leads to."""
        return np.where(b == self.toward(pull), 0.0, pull)

    def conjugate(self, z: Array, pays: Array, ridges: Array) -> float:
        """Return the largest z'b - sum_k (pays_k |b_k| + ridges_k / 2 b_k^2) within bounds.

        It is finite where a coefficient has a bound or a ridge, or z is no more than it pays.
        """
        beyond = np.maximum(np.abs(z) - pays, 0.0)
        room = np.abs(self.toward(z))
        ends = np.where(np.isfinite(room), room, 0.0)
        size = np.minimum(np.divide(beyond, ridges, out=ends, where=ridges > 0), room)
        return float((beyond * size - ridges / 2 * size**2).sum())


def minimize_within(H: Array, slopes: Array, pays: Array, b: Array, bounds: Bounds) -> Array:
    """Return the x within bounds with least slopes'(x - b) + (x - b)'H(x - b)/2 + sum pays |x|.

    Coordinate descent finds out which coefficients leave zero or a bound; steps on all others solve
    what it is slow at, nearly collinear columns.
    """
    x = b.copy()
    norms = np.diagonal(H).copy()
    score = H @ b - slopes
    problem = Lasso(H, True, norms, score, pays, 0.0, norms, bounds.lower, bounds.upper)
    scale = EXACT * float(np.abs(score).max(initial=0.0))
    largest = float(norms.max(initial=0.0))
    for _ in range(STEPS):
        # What rounding leaves of a slope comes on top.
        tol = scale + 4 * EPS * largest * float(np.abs(x).sum())
        if descend(problem, x, tol, SWEEPS)[1]:
            break
        # Each of these leaves fewer of them, or is one of the few that solve the system.
        for _ in range(len(x)):
            on = np.flatnonzero((x != 0) & (x > bounds.lower) & (x < bounds.upper))
            force = -(slopes + H @ (x - b) + pays * np.sign(x))[on]
            if np.abs(force).max(initial=0.0) <= tol:
                break
            x = _step_between(H[np.ix_(on, on)], force, pays, x, on, bounds)
    return x


def _step_between(
    H: Array, force: Array, pays: Array, x: Array, on: NDArray[np.int64], bounds: Bounds
) -> Array:
    """Step toward the minimum over some coefficients, up to the first bound on the way.

    They have second derivatives H, and are pulled by a force.
    """
    d = np.zeros(len(x))
    steady = STEADY * len(on) * float(np.diagonal(H).max(initial=0.0))
    try:
        factor = scipy.linalg.cho_factor(H + steady * np.eye(len(on)))
    except scipy.linalg.LinAlgError:
        return x
    d[on] = scipy.linalg.cho_solve(factor, force)
    moved = minimize_along(x, d, -float(force @ d[on]), float(d[on] @ H @ d[on]), pays)
    if moved is None:
        return x
    if bounds.hold(moved):
        return moved
    end = bounds.toward(d)
    share = np.divide(end - x, d, out=np.full(len(x), np.inf), where=d != 0)
    along = float(share.min())
    return bounds.clip(np.where(share <= along, end, x + along * d))
