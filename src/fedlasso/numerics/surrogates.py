"""Solvers of local surrogate problems: shifted Lasso, ridge factor, least squares from moments."""

import numpy as np
import scipy.linalg

from fedlasso.errors import FedLassoError
from fedlasso.numerics.descent import Lasso, descend
from fedlasso.numerics.machine import Array, one_thread
from fedlasso.numerics.sample import LeastSquares

# Sweeps end when they change the gradient by at most this fraction of the score.
SETTLED = 1e-14
SWEEPS = 20_000
# Eigenvalues below this fraction of the largest are zero.
RANK = 1e-12


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


class RidgeFactor:
    """Solves (G + rho I) x = v for G = X'X/m, through the shorter side of X.

    With A = X/sqrt(m) and more columns than rows, Woodbury's identity gives
    x = (v - A'(AA' + rho I)^-1 A v) / rho, so no p x p matrix is ever formed.
    """

    def __init__(self, f: LeastSquares, rho: float) -> None:
        if not 0 < rho < np.inf:
            raise FedLassoError(f"rho is {rho}; give a number above zero")
        self.rho = rho
        self._f = f
        self._wide = f.p > f.m
        with one_thread():
            square = f.X @ f.columns / f.m if self._wide else f.gram.copy()
            square[np.diag_indices_from(square)] += rho
            self._factor = scipy.linalg.cho_factor(square, lower=True, overwrite_a=True)

    @one_thread()
    def solve(self, v: Array) -> Array:
        """Return (G + rho I)^-1 v."""
        f = self._f
        solved: Array = scipy.linalg.cho_solve(self._factor, f.X @ v if self._wide else v)
        return (v - f.columns @ solved / f.m) / self.rho if self._wide else solved


@one_thread()
def from_moments(G: Array, c: Array) -> LeastSquares:
    """Return a minimal sample with X'X/m = G and X'y/m = c, for solvers that need records.

    With G = V D V', its n rows are X = sqrt(n) D^1/2 V', and y = sqrt(n) D^-1/2 V'c; the score c
    must lie in the range of G, as it does for moments of real records.
    """
    d, V = scipy.linalg.eigh(G)
    seen = d > RANK * d[-1]
    n = int(seen.sum())
    if n == 0:
        return LeastSquares(np.zeros((1, c.size)), np.zeros(1))
    root = np.sqrt(d[seen])
    X = np.sqrt(n) * root[:, None] * V[:, seen].T
    y = np.sqrt(n) * (V[:, seen].T @ c) / root
    return LeastSquares(X, y)
