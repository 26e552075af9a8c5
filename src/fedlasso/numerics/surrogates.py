"""What local surrogate problems are solved with: shifted Lasso, ridge factor, moments."""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.numerics.machine import Array, compiled, dot, one_thread, soft, subtract_product
from fedlasso.numerics.moments import N
from fedlasso.numerics.sample import LeastSquares

# A sweep whose largest change of the gradient is below this share of the score moves nothing.
SETTLED = 1e-14
SWEEPS = 20_000
# Eigenvalues below this share of the largest are zero.
RANK = 1e-12


def shifted_lasso(
    f: LeastSquares, score: Array, lam: float, ridge: float, start: Array, pinned: int = -1
) -> tuple[Array, int]:
    """Minimize 1/2 b'(X'X/m + ridge I) b - score'b + lam |b|_1; return b and the sweeps it took.

    By coordinate descent: full sweeps to find the active set, sweeps over that set to settle it. A
    ridge above zero makes the minimizer exist and unique.

    Parameters
    ----------
    f : whose X'X/m is used; its y is not
    score : array (p,), the linear term
    lam, ridge : the penalties
    start : array (p,), not changed
    pinned : a coordinate that stays as it is
    """
    b = np.array(start, dtype=np.float64)
    score = np.ascontiguousarray(score, dtype=np.float64)
    tol = SETTLED * float(np.abs(score).max(initial=0.0))
    if f.prefers_gram:
        M = f.gram
        norms = np.diag(f.gram).copy()
    else:
        M = f.columns
        norms = f.design.norms
    return b, descend(M, norms, f.prefers_gram, score, lam, ridge, b, pinned, tol)


@compiled
def descend(
    M: Array,
    norms: Array,
    gram: bool,
    score: Array,
    lam: float,
    ridge: float,
    b: Array,
    pinned: int,
    tol: float,
) -> int:
    """Minimize in place and return the sweeps; M is X'X/m, or has the columns of X in its rows.

    Kept up to date is r: with X'X/m minus the gradient of the smooth part, else the residual -Xb.
    """
    r = np.zeros(M.shape[1])
    full = True
    for sweep in range(SWEEPS):
        if full:
            # computed anew before the sweep that may end the work
            if gram:
                r[:] = score - ridge * b
            else:
                r[:] = 0.0
            subtract_product(r, M, b)
        largest = 0.0
        for k in range(b.size):
            if k == pinned or (not full and b[k] == 0.0):
                continue
            curvature = norms[k] + ridge
            if gram:
                down = r[k] + curvature * b[k]
            else:
                down = score[k] + dot(M[k], r) / r.size + norms[k] * b[k]
            new = soft(down, lam) / curvature if curvature > 0.0 else 0.0
            step = new - b[k]
            if step != 0.0:
                largest = max(largest, abs(step) * curvature)
                b[k] = new
                if gram:
                    r[k] -= ridge * step
                for i in range(r.size):
                    r[i] -= step * M[k, i]
        settled = largest <= tol
        if settled and full:
            return sweep + 1
        # a settled active set calls for a full sweep
        full = settled
    return SWEEPS


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
    """Return a smallest sample with X'X/m = G and X'y/m = c, so that every exact solver applies.

    With G = V D V', its n rows are X = sqrt(n) D^1/2 V', and y = sqrt(n) D^-1/2 V'c; the score c
    lies in the range of G, as it does for moments of real records.
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


def triangle(M: NDArray[N]) -> NDArray[N]:
    """Return the lower triangle of a symmetric matrix, as the n(n+1)/2 numbers it holds."""
    return np.asarray(M[np.tril_indices_from(M)])


def count_lower(n: int) -> int:
    """Return how many numbers the lower triangle of an n by n matrix has."""
    return n * (n + 1) // 2


def square(lower: Array, n: int) -> Array:
    """Return the symmetric matrix with that lower triangle."""
    M = np.zeros((n, n))
    M[np.tril_indices(n)] = lower
    return M + np.tril(M, -1).T
