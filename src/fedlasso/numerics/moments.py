"""A least-squares problem from its second moments alone."""

import numpy as np
import scipy.linalg

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.least_squares import LeastSquares
from fedlasso.numerics.threads import one_thread

# Eigenvalues below this share of the largest are zero.
RANK = 1e-12


def from_moments(G: Array, c: Array) -> LeastSquares:
    """Return a smallest sample with X'X/m = G and X'y/m = c, so that every exact solver applies.

    With G = V D V', its n rows are X = sqrt(n) D^1/2 V', and y = sqrt(n) D^-1/2 V'c; the score c
    lies in the range of G, as it does for moments of real records.
    """
    with one_thread():
        d, V = scipy.linalg.eigh(G)
        seen = d > RANK * d[-1]
        n = max(1, int(seen.sum()))
        if not seen.any():
            return LeastSquares(np.zeros((1, c.size)), np.zeros(1))
        root = np.sqrt(d[seen])
        X = np.sqrt(n) * root[:, None] * V[:, seen].T
        y = np.sqrt(n) * (V[:, seen].T @ c) / root
    return LeastSquares(X, y)


def triangle(M: Array) -> Array:
    """Return the lower triangle of a symmetric matrix, as the n(n+1)/2 numbers it holds."""
    lower: Array = M[np.tril_indices_from(M)]
    return lower


def square(lower: Array, n: int) -> Array:
    """Return the symmetric matrix with that lower triangle."""
    M = np.zeros((n, n))
    M[np.tril_indices(n)] = lower
    return M + np.tril(M, -1).T
