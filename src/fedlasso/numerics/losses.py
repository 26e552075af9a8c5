"""Losses: how a linear predictor meets a response, row by row.

A loss is one class and one line in `LOSSES`. Everything that a fit needs of it are four functions
of a row's linear predictor and response, and a bound on the second derivative.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from fedlasso.errors import FedLassoError
from fedlasso.numerics.machine import Array


class Loss(ABC):
    """What one row costs, l(eta, y), convex and smooth in the linear predictor eta.

    Attributes
    ----------
    name : as settings and messages call it
    smoothness : the largest second derivative in eta; infinite where there is none

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics import find_loss
    >>> find_loss("quadratic").value(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    array([0., 2.])
    """

    name: ClassVar[str]
    smoothness: ClassVar[float]

    @abstractmethod
    def value(self, eta: Array, y: Array) -> Array:
        """Return l(eta, y) of every row."""

    @abstractmethod
    def derivative(self, eta: Array, y: Array) -> Array:
        """Return the derivative in eta."""

    @abstractmethod
    def curvature(self, eta: Array, y: Array) -> Array:
        """Return the second derivative in eta."""

    @abstractmethod
    def conjugate(self, u: Array, y: Array) -> Array:
        """Return the largest value of u eta - l(eta, y) over eta; it bounds fits from below."""


class Quadratic(Loss):
    """Half the squared error, (y - eta)^2 / 2: least squares."""

    name: ClassVar[str] = "quadratic"
    smoothness: ClassVar[float] = 1.0

    def value(self, eta: Array, y: Array) -> Array:
        return (y - eta) ** 2 / 2

    def derivative(self, eta: Array, y: Array) -> Array:
        return eta - y

    def curvature(self, eta: Array, y: Array) -> Array:
        return 0 * eta + 1

    def conjugate(self, u: Array, y: Array) -> Array:
        return u * (u / 2 + y)


LOSSES: dict[str, Loss] = {"quadratic": Quadratic()}


def find_loss(name: str) -> Loss:
    """Return the loss of that name."""
    if name not in LOSSES:
        raise FedLassoError(f"no loss is called {name!r}; known: {', '.join(LOSSES)}")
    return LOSSES[name]
