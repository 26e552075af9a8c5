"""Poisson regression of counts."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from fedlasso.numerics.losses.loss import RowLoss
from fedlasso.numerics.machine import Array

# Powers of two by which rates may exceed the counts before their sums are clipped.
FAR_RATES = 6
# Rates are limited to e^200, so that a diverging step has a finite loss and can be rejected.
LARGEST_ETA = 200.0


class PoissonLoss(RowLoss):
    """Poisson regression with mean e^eta: half the deviance, l = e^eta - y eta - (y - y log y)."""

    name: ClassVar[str] = "poisson"
    smoothness: ClassVar[float] = np.inf
    wants: ClassVar[str] = "counts, zero or more"

    def value(self, eta: Array, y: Array) -> Array:
        return np.asarray(self.mean(eta) - y * eta - (y - xlogy(y, y)))

    def derivative(self, eta: Array, y: Array) -> Array:
        return self.mean(eta) - y

    def curvature(self, eta: Array, y: Array) -> Array:
        return self.mean(eta)

    def conjugate(self, u: Array, y: Array) -> Array:
        v = u + y
        rate = np.maximum(v, 0.0)
        return np.where(v >= 0, xlogy(rate, rate) - rate + (y - xlogy(y, y)), np.inf)

    def mean(self, eta: Array) -> Array:
        return np.exp(np.minimum(eta, LARGEST_ETA))

    def varies(self, total: float, weight: float) -> bool:
        return total > 0

    def find_misfits(self, y: Array) -> NDArray[np.bool_]:
        return np.asarray(~(np.isfinite(y) & (y >= 0)))

    def slope_size(self, rows: float, y_norm: float) -> float:
        return float(np.ldexp(np.sqrt(rows) + y_norm, FAR_RATES))
