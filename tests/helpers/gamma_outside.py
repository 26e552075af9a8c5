"""A gamma family from outside the package: positive numbers with a log link, in one file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from fedlasso.families import FAMILIES, Family, register
from fedlasso.numerics import LOSSES, Array, RowLoss

# Means below e^-200 are none: a model on the way to them is turned down, and must have a loss.
SMALLEST_ETA = -200.0


class GammaLoss(RowLoss):
    """Half the deviance of a positive response whose mean is e^eta.

    l = y e^-eta - 1 + eta - log y.
    """

    name: ClassVar[str] = "gamma"
    smoothness: ClassVar[float] = np.inf
    wants: ClassVar[str] = "positive numbers"

    def value(self, eta: Array, y: Array) -> Array:
        return y / self.mean(eta) - 1 + eta - np.log(y)

    def derivative(self, eta: Array, y: Array) -> Array:
        return 1 - y / self.mean(eta)

    def curvature(self, eta: Array, y: Array) -> Array:
        return y / self.mean(eta)

    def conjugate(self, u: Array, y: Array) -> Array:
        left = np.maximum(1 - u, 0.0)
        return np.where(u <= 1, u * np.log(y) + xlogy(left, left) + u, np.inf)

    def mean(self, eta: Array) -> Array:
        return np.exp(np.maximum(eta, SMALLEST_ETA))

    def find_misfits(self, y: Array) -> NDArray[np.bool_]:
        return np.asarray(~(np.isfinite(y) & (y > 0)))

    def slope_size(self, rows: float, y_norm: float) -> float:
        # A mean of one, where fits begin, has slopes of this size; fitted means have smaller ones.
        return float(np.sqrt(rows) + y_norm)


class Gamma(Family):
    """Positive numbers whose standard deviation is proportional to their mean."""

    name = "gamma"
    prefix = "gamma "
    summary = "positive numbers, such as costs"
    loss = GammaLoss()
    ratio = "ratio of means"
    effect = "How much the logarithm of the mean of {target} changes with a column."
    dispersion = (0.0, np.inf)

    def link(self, mean: float) -> float:
        return float(np.log(mean))

    def find_problems(self, role: str, numbers: Array) -> Iterator[tuple[Any, str]]:
        yield numbers <= 0, "is not above zero in {rows}; correct or remove those rows"


@contextmanager
def registered() -> Iterator[None]:
    """One line while the tests need it."""
    register(Gamma())
    try:
        yield
    finally:
        del FAMILIES[Gamma.name]
        del LOSSES[GammaLoss.name]
