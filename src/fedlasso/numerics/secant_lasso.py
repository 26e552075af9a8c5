"""The Lasso of a curvature that is kept as B = A diag(d) A' + mu I, solved to rounding.

Coordinate descent solves it in a few sweeps where columns differ. Where they are nearly collinear
sweeps hardly move, and a feature-sign search (Lee et al., 2007) takes over from where they stand:
on the support the model is one small dense system.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from fedlasso.numerics.machine import Array, compiled, dot, one_thread, soft
from fedlasso.numerics.repair import minimize_along, turns

# Sweeps after which columns count as nearly collinear, and steps of the search that follows.
SWEEPS = 1000
STEPS = 1000
# Slopes are solved to this share of the largest score.
EXACT = 1e-14
# Curvature added while a step is computed, as a share of the largest: B may have flat directions.
STEADY = 1e-14
# Full steps that solve a system in which that was added.
POLISHED = 4
EPS = float(np.finfo(np.float64).eps)


class CurvatureModel(NamedTuple):
    """B = A diag(d) A' + mu I, and its diagonal."""

    A: Array
    d: Array
    mu: float
    diagonal: Array

    def times(self, b: Array) -> Array:
        """B b."""
        on = np.flatnonzero(b)
        return np.asarray(self.A @ (self.d * (self.A[on].T @ b[on])) + self.mu * b)

    def block(self, on: NDArray[np.int64]) -> Array:
        """B in some rows and the same columns."""
        rows = self.A[on]
        return np.asarray((rows * self.d) @ rows.T + self.mu * np.eye(len(rows)))


def solve_model(B: CurvatureModel, c: Array, penalties: Array, start: Array) -> Array:
    """Return the minimizer of 1/2 b'Bb - c'b + sum_k penalties_k |b_k|."""
    b = start.copy()
    tol = EXACT * float(np.abs(c).max(initial=0.0))
    return b if descend(B, c, penalties, b, tol) else search(B, c, penalties, b, tol)


@one_thread()
def search(B: CurvatureModel, c: Array, penalties: Array, b: Array, tol: float) -> Array:
    """Minimize the same from b on, by steps to the minimum over a support and its signs.

    Every step lowers the objective, so the search ends: at optimality, or where rounding hides
    further progress.
    """
    pays = np.where(np.isfinite(penalties), penalties, 0.0)
    free = np.isfinite(penalties) & (B.diagonal > 0.0)
    largest = float(B.diagonal.max(initial=0.0))
    full_steps = 0
    for _ in range(STEPS):
        slope = c - B.times(b)
        s = np.sign(b)
        # What rounding leaves of a slope.
        rounding = tol + 4 * EPS * largest * float(np.abs(b).sum())
        miss = np.abs(slope - pays * s)[s != 0].max(initial=0.0)
        if miss <= tol or full_steps == POLISHED:
            violation = np.where((s == 0) & free, np.abs(slope) - pays, -np.inf)
            k = int(violation.argmax())
            if violation[k] <= rounding:
                break
            s[k] = np.sign(slope[k])
            full_steps = 0
        on = np.flatnonzero(s)
        H = B.block(on)
        force = (slope - pays * s)[on]
        d = np.zeros(b.size)
        try:
            factor = scipy.linalg.cho_factor(H + STEADY * largest * len(on) * np.eye(len(on)))
        except scipy.linalg.LinAlgError:
            break
        d[on] = scipy.linalg.cho_solve(factor, force)
        if not turns(b, d):
            b = b + d
            full_steps += 1
            continue
        full_steps = 0
        moved = minimize_along(b, d, -float(force @ d[on]), float(d[on] @ H @ d[on]), pays)
        if moved is None:
            break
        b = moved
    return b


@compiled
def descend(B: CurvatureModel, c: Array, penalties: Array, b: Array, tol: float) -> bool:
    """Minimize the same by coordinate descent, in place; return whether it has settled.

    t = diag(d) A'b is kept up to date. Sweeps go over the nonzero coefficients until none moves
    its slope by more than `tol`, then over all.
    """
    A, d, mu, diagonal = B
    p, r = A.shape
    t = np.zeros(r)
    full = True
    for sweep in range(SWEEPS):
        if full or sweep % 100 == 0:
            t[:] = 0.0
            for k in range(p):
                if b[k] != 0.0:
                    for i in range(r):
                        t[i] += d[i] * A[k, i] * b[k]
        largest = 0.0
        for k in range(p):
            if (b[k] == 0.0 and not full) or not diagonal[k] > 0.0:
                continue
            slope = c[k] - dot(A[k], t) - mu * b[k]
            new = soft(slope + diagonal[k] * b[k], penalties[k]) / diagonal[k]
            step = new - b[k]
            if step != 0.0:
                b[k] = new
                for i in range(r):
                    t[i] += d[i] * A[k, i] * step
                largest = max(largest, abs(step) * diagonal[k])
        settled = largest <= tol
        if settled and full:
            return True
        full = settled
    return False
