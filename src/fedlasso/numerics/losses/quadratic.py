"""Least squares."""

from typing import ClassVar

from fedlasso.numerics.losses.loss import RowLoss
from fedlasso.numerics.machine import Array


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
