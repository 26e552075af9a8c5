"""Losses from outside the package: they prove that the seam between losses and fits is real."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np

from fedlasso.numerics import LOSSES, Array, RowLoss


class Huber(RowLoss):
    """Quadratic up to a distance of one from the response, linear beyond."""

    name: ClassVar[str] = "huber"
    smoothness: ClassVar[float] = 1.0

    def value(self, eta: Array, y: Array) -> Array:
        r = np.abs(eta - y)
        return np.where(r <= 1, r**2 / 2, r - 0.5)

    def derivative(self, eta: Array, y: Array) -> Array:
        return np.clip(eta - y, -1, 1)

    def curvature(self, eta: Array, y: Array) -> Array:
        return (np.abs(eta - y) <= 1).astype(np.float64)

    def conjugate(self, u: Array, y: Array) -> Array:
        return np.where(np.abs(u) <= 1, u * (u / 2 + y), np.inf)


class Logistic(RowLoss):
    """Minus the log-likelihood of a response that is zero or one."""

    name: ClassVar[str] = "logistic for tests"
    smoothness: ClassVar[float] = 0.25

    def value(self, eta: Array, y: Array) -> Array:
        return np.logaddexp(0, eta) - y * eta

    def derivative(self, eta: Array, y: Array) -> Array:
        return 1 / (1 + np.exp(-eta)) - y

    def curvature(self, eta: Array, y: Array) -> Array:
        s = 1 / (1 + np.exp(-eta))
        return s * (1 - s)

    def conjugate(self, u: Array, y: Array) -> Array:
        s = np.clip(u + y, 1e-300, 1.0)
        rest = np.clip(1 - u - y, 1e-300, 1.0)
        return s * np.log(s) + rest * np.log(rest)


@contextmanager
def registered(loss: RowLoss) -> Iterator[None]:
    """One line in the registry while the tests need it."""
    LOSSES[loss.name] = loss
    try:
        yield
    finally:
        del LOSSES[loss.name]
