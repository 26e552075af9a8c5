"""(X'X/m + rho I)^-1: the proximal map of a least-squares loss, factored once."""

import numpy as np
import scipy.linalg

from fedlasso.errors import FedLassoError
from fedlasso.numerics.arrays import Array
from fedlasso.numerics.least_squares import LeastSquares
from fedlasso.numerics.threads import one_thread


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

    def solve(self, v: Array) -> Array:
        """Return (G + rho I)^-1 v."""
        with one_thread():
            if not self._wide:
                solved: Array = scipy.linalg.cho_solve(self._factor, v)
                return solved
            f = self._f
            inner = scipy.linalg.cho_solve(self._factor, f.X @ v)
            out: Array = (v - f.columns @ inner / f.m) / self.rho
            return out
