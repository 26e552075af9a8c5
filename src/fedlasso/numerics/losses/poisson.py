"""Regression of counts."""

from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from fedlasso.numerics.losses.loss import RowLoss
from fedlasso.numerics.machine import Array
from fedlasso.numerics.response import Response

# Powers of two by which rates may exceed the counts before sums of them are clipped.
FAR_RATES = 10


class Poisson(RowLoss):
    """Minus the log-likelihood of a count whose mean is e^eta, but for a constant.

    l = e^eta - y eta.
    """

    name: ClassVar[str] = "poisson"
    smoothness: ClassVar[float] = np.inf
    wants: ClassVar[str] = "counts, zero or more"

    def value(self, eta: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(eta) - y * eta

    def derivative(self, eta: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(eta) - y

    def curvature(self, eta: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(eta))

    def conjugate(self, u: Array, y: Array) -> Array:
        v = u + y
        rate = np.maximum(v, 0.0)
        return np.where(v >= 0, xlogy(rate, rate) - rate, np.inf)

    def mean(self, eta: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(eta))

    def deviance(self, eta: Array, rows: Response) -> Array:
        y = rows.y
        return 2 * rows.weights * (self.value(eta, y) - (y - xlogy(y, y)))

    def find_misfits(self, y: Array) -> Array:
        return ~(np.isfinite(y) & (y >= 0))

    def slope_size(self, rows: float, y_norm: float) -> float:
        return float(np.ldexp(np.sqrt(rows) + y_norm, FAR_RATES))
