"""A sample: a design, a response and a loss; the mean loss of a model on it and its gradient."""

from functools import cached_property

import numpy as np

from fedlasso.numerics.designs import Dense, Design
from fedlasso.numerics.losses import LOSSES, Loss
from fedlasso.numerics.machine import Array, dot

# X'X takes m p^2 operations once. At p = 4000 that is hundreds of sweeps over X, more than many
# fits make; up to this it pays within one fit, and takes 32 MiB.
GRAM_COLUMNS = 2048
# With p beyond this many times m, a pass over X costs less than a pass over X'X and its set-up.
GRAM_ASPECT = 16


class Sample:
    """f(b) = sum_i l(x_i'b, y_i) / m.

    Parameters
    ----------
    design : Design or array (m, p)
        An array is kept as one Fortran-ordered float64 array; it is not copied when it already is
        one, so do not write to it afterwards.
    y : array (m,), the response
    loss : how the two meet
    """

    def __init__(self, design: Design | Array, y: Array, loss: Loss) -> None:
        self.design = design if isinstance(design, Design) else Dense(design)
        self.m = self.design.m
        self.p = self.design.p
        self.y = np.ascontiguousarray(y, dtype=np.float64).view()
        if self.y.shape != (self.m,):
            shape = (self.m, self.p)
            raise ValueError(f"X must be (m, p) and y (m,), not {shape} and {np.shape(y)}.")
        if not np.isfinite(self.y).all():
            raise ValueError("y must be finite.")
        self.y.flags.writeable = False
        self.loss = loss

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


class LeastSquares(Sample):
    """f(b) = ||y - Xb||^2 / (2m), with the shortcuts that only a quadratic loss has.

    Parameters
    ----------
    design, y : as of any sample
    gram : whether solvers pass over X'X/m rather than over X; where that pays by default

    Notes
    -----
    A sweep with a nonzero coefficients reads about a p numbers of X'X/m, or (p + 2a) m of X, and a
    is mostly a fraction of m; once p is many times m the p x p matrix stops paying.
    """

    def __init__(self, design: Design | Array, y: Array, gram: bool | None = None) -> None:
        super().__init__(design, y, LOSSES["quadratic"])
        pays = self.p <= min(GRAM_COLUMNS, GRAM_ASPECT * self.m)
        self.prefers_gram = pays if gram is None else gram

    @property
    def gram(self) -> Array:
        """X'X / m, one p x p array; ask `prefers_gram` first."""
        return self.design.gram

    @cached_property
    def y_ss(self) -> float:
        """||y||^2."""
        return dot(self.y, self.y)

    @cached_property
    def score(self) -> Array:
        """X'y / m."""
        return self.slope(self.y)

    def residual(self, b: Array) -> Array:
        """Return y - Xb."""
        r = self.y.copy()
        self.design.subtract(r, b)
        return r

    def gradient(self, b: Array) -> Array:
        return -self.slope(self.residual(b))

    def value(self, b: Array) -> float:
        r = self.residual(b)
        return dot(r, r) / (2 * self.m)

    def errors(self, b: Array) -> Array:
        return self.residual(b) ** 2


def make_sample(design: Design | Array, y: Array, loss: Loss) -> Sample:
    """Return a sample with every shortcut that its loss allows."""
    return LeastSquares(design, y) if loss is LOSSES["quadratic"] else Sample(design, y, loss)
