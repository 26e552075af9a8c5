"""Coordinate descent for a quadratic with a weighted Lasso penalty and bounds."""

from typing import NamedTuple

import numpy as np

from fedlasso.numerics.machine import Array, compiled, dot, frozen, soft, subtract_nonzero_rows
from fedlasso.numerics.sample import LeastSquares

# Sweeps of `shifted_lasso` end when they change the gradient by at most this fraction of the score.
SETTLED = 1e-14
SWEEPS = 20_000


class Lasso(NamedTuple):
    """1/2 b'(X'X/m + ridge I) b - score'b + sum_k thresholds_k |b_k|, lower <= b <= upper.

    M is X'X/m if `gram`, else the transpose of X; norms is the diagonal of X'X/m. The size of a
    sweep is its largest change of a coefficient times the coefficient's unit.
    """

    M: Array
    gram: bool
    norms: Array
    score: Array
    thresholds: Array
    ridge: float
    units: Array
    lower: Array
    upper: Array

    @classmethod
    def of(
        cls, M: Array, norms: Array, score: Array, lam: float, ridge: float = 0.0, gram: bool = True
    ) -> "Lasso":
        """Return the problem with the same penalty for all coefficients and without bounds."""
        none = np.full(norms.size, np.inf)
        thresholds = np.full(norms.size, lam)
        return cls(M, gram, norms, score, thresholds, ridge, norms + ridge, -none, none)


def descend(L: Lasso, b: Array, tol: float, most: int) -> tuple[int, bool]:
    """Minimize in place; return the number of sweeps and whether they converged to `tol`."""
    return sweep_lasso(frozen(L.M), *L[1:], b, tol, most)


@compiled
def sweep_lasso(
    M: Array,
    gram: bool,
    norms: Array,
    score: Array,
    thresholds: Array,
    ridge: float,
    units: Array,
    lower: Array,
    upper: Array,
    b: Array,
    tol: float,
    most: int,
) -> tuple[int, bool]:
    """Do what `descend` does.

    Full sweeps determine the active set, and sweeps over that set solve for it. With X'X/m, r is
    minus the gradient of the smooth part; else it is -Xb.
    """
    r = np.zeros(M.shape[1])
    full = True
    for sweep in range(most):
        if full:
            # r is recomputed before a sweep that may be the last
            for i in range(r.size):
                r[i] = score[i] - ridge * b[i] if gram else 0.0
            subtract_nonzero_rows(r, M, b)
        largest = 0.0
        for k in range(b.size):
            if not full and b[k] == 0.0:
                continue
            curvature = norms[k] + ridge
            if gram:
                down = r[k] + curvature * b[k]
            else:
                down = score[k] + dot(M[k], r) / r.size + norms[k] * b[k]
            new = soft(down, thresholds[k]) / curvature if curvature > 0.0 else 0.0
            if new < lower[k]:
                new = lower[k]
            elif new > upper[k]:
                new = upper[k]
            step = new - b[k]
            if step != 0.0:
                largest = max(largest, abs(step) * units[k])
                b[k] = new
                if gram:
                    r[k] -= ridge * step
                for i in range(r.size):
                    r[i] -= step * M[k, i]
        settled = largest <= tol
        if settled and full:
            return sweep + 1, True
        full = settled
    return most, False


def shifted_lasso(
    f: LeastSquares, score: Array, lam: float, ridge: float, start: Array, pinned: int = -1
) -> tuple[Array, int]:
    """Minimize 1/2 b'(X'X/m + ridge I) b - score'b + lam |b|_1; return b and the sweeps.

    With a positive ridge the minimizer exists and is unique. The response of f is not used. The
    coordinate `pinned` keeps its value.
    """
    b = np.array(start, dtype=np.float64)
    score = np.ascontiguousarray(score, dtype=np.float64)
    tol = SETTLED * float(np.abs(score).max(initial=0.0))
    gram = f.prefers_gram
    norms = np.diag(f.gram).copy() if gram else f.design.norms
    problem = Lasso.of(f.gram if gram else f.columns, norms, score, lam, ridge, gram)
    if pinned >= 0:
        problem.lower[pinned] = problem.upper[pinned] = b[pinned]
    sweeps, _ = descend(problem, b, tol, SWEEPS)
    return b, sweeps
