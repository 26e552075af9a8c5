"""Losses that are sums over rows: least squares, logistic and Poisson regression."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, xlogy

from fedlasso.numerics.losses.loss import RowLoss
from fedlasso.numerics.machine import Array

# Powers of two by which rates may exceed the counts before their sums are clipped.
FAR_RATES = 6
# Rates are limited to e^200, so that a diverging step has a finite loss and can be rejected.
LARGEST_ETA = 200.0


class Quadratic(RowLoss):
    """Half the squared error, (y - eta)^2 / 2: least squares."""

    name: ClassVar[str] = "quadratic"
    smoothness: ClassVar[float] = 1.0
    centres: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True

    def value(self, eta: Array, y: Array) -> Array:
        return (y - eta) ** 2 / 2

    def derivative(self, eta: Array, y: Array) -> Array:
        return eta - y

    def curvature(self, eta: Array, y: Array) -> Array:
        return 0 * eta + 1

    def conjugate(self, u: Array, y: Array) -> Array:
        return u * (u / 2 + y)

    def slope_size(self, rows: float, y_norm: float) -> float:
        return y_norm


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

    def link(self, mean: float) -> float:
        return float(logit(mean))

    def varies(self, total: float, weight: float) -> bool:
        return 0 < total < weight * (1 - 1e-12)

    def find_misfits(self, y: Array) -> NDArray[np.bool_]:
        return np.asarray((y != 0) & (y != 1))

    def slope_size(self, rows: float, y_norm: float) -> float:
        return float(np.sqrt(rows))


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

    def link(self, mean: float) -> float:
        return float(np.log(mean))

    def varies(self, total: float, weight: float) -> bool:
        return total > 0

    def find_misfits(self, y: Array) -> NDArray[np.bool_]:
        return np.asarray(~(np.isfinite(y) & (y >= 0)))

    def slope_size(self, rows: float, y_norm: float) -> float:
        return float(np.ldexp(np.sqrt(rows) + y_norm, FAR_RATES))
