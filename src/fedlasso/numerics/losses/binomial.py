"""Logistic regression."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from fedlasso.numerics.losses.loss import RowLoss
from fedlasso.numerics.machine import Array


class BinomialLoss(RowLoss):
    """Logistic regression of a response that is 0 or 1, l = log(1 + e^eta) - y eta."""

    name: ClassVar[str] = "binomial"
    smoothness: ClassVar[float] = 0.25
    wants: ClassVar[str] = "0 or 1"

    def value(self, eta: Array, y: Array) -> Array:
        return np.logaddexp(0.0, eta) - y * eta

    def derivative(self, eta: Array, y: Array) -> Array:
        # Both terms are computed without cancellation.
        return np.asarray((1 - y) * expit(eta) - y * expit(-eta))

    def curvature(self, eta: Array, y: Array) -> Array:
        return np.asarray(expit(eta) * expit(-eta))

    def conjugate(self, u: Array, y: Array) -> Array:
        p = u + y
        inside = (p >= 0) & (p <= 1)
        p = np.clip(p, 0.0, 1.0)
        return np.where(inside, xlogy(p, p) + xlogy(1 - p, 1 - p), np.inf)

    def mean(self, eta: Array) -> Array:
        return np.asarray(expit(eta))

    def varies(self, total: float, weight: float) -> bool:
        return 0 < total < weight * (1 - 1e-12)

    def find_misfits(self, y: Array) -> NDArray[np.bool_]:
        return np.asarray((y != 0) & (y != 1))

    def slope_size(self, rows: float, y_norm: float) -> float:
        return float(np.sqrt(rows))
