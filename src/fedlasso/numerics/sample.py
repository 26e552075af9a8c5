"""A sample: a design, a response and a loss; the mean loss of a model on it and its gradient."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.designs import Dense, Design
from fedlasso.numerics.losses import Loss


class Sample:
    """f(b) = sum_i l(x_i'b, y_i) / m.

    Parameters
    ----------
    design : Design or array (m, p)
    y : array (m,)
        The response.
    loss : Loss
        How the two meet.
    """

    def __init__(self, design: Design | Array, y: Array, loss: Loss) -> None:
        self.design = design if isinstance(design, Design) else Dense(design)
        self.y = np.ascontiguousarray(y, dtype=np.float64).view()
        if self.y.shape != (self.design.m,):
            shape = (self.design.m, self.design.p)
            raise ValueError(f"X must be (m, p) and y (m,), not {shape} and {np.shape(y)}.")
        if not np.isfinite(self.y).all():
            raise ValueError("y must be finite.")
        self.y.flags.writeable = False
        self.loss = loss

    @property
    def m(self) -> int:
        """Number of records."""
        return self.design.m

    @property
    def p(self) -> int:
        """Number of predictors."""
        return self.design.p

    @property
    def columns(self) -> Array:
        """X, a column in each row, read-only."""
        return self.design.columns

    @property
    def X(self) -> Array:
        """X, read-only."""
        return self.design.columns.T

    def value(self, b: Array) -> float:
        """Return f(b)."""
        return float(self.loss.value(self.design.product(b), self.y).sum()) / max(self.m, 1)

    def gradient(self, b: Array) -> Array:
        """Return the gradient of f at b."""
        return self.slope(self.loss.derivative(self.design.product(b), self.y))

    def slope(self, u: Array) -> Array:
        """Return X'u / m; zero where there are no records."""
        return self.design.inner(u) / max(self.m, 1)

    def dual(self, b: Array, scale: float) -> float:
        """Return -sum_i l*(scale l'(x_i'b, y_i), y_i): the dual value of the scaled slopes at b."""
        u = scale * self.loss.derivative(self.design.product(b), self.y)
        return -float(self.loss.conjugate(u, self.y).sum())

    def errors(self, b: Array) -> Array:
        """Return what each record costs, twice: squared errors for least squares."""
        return 2 * self.loss.value(self.design.product(b), self.y)

    @cached_property
    def largest_curvature(self) -> float:
        """A bound on every second derivative of f along a unit vector."""
        return self.loss.smoothness * self.design.largest_eigenvalue

    @cached_property
    def mean_curvature(self) -> float:
        """A bound on the average second derivative of f along a coordinate."""
        return self.loss.smoothness * float(self.design.norms.mean())
