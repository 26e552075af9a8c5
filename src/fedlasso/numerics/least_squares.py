"""Least squares on a sample, with the shortcuts that only a quadratic loss has."""

from functools import cached_property

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.compiled import dot
from fedlasso.numerics.designs import Design
from fedlasso.numerics.losses import LOSSES, Loss
from fedlasso.numerics.sample import Sample

# X'X takes m p^2 operations once. At p = 4000 that is hundreds of sweeps over X, more than many
# fits make; up to this it pays within one fit, and takes 32 MiB.
GRAM_COLUMNS = 2048
# With p beyond this many times m, a pass over X costs less than a pass over X'X and its set-up.
GRAM_ASPECT = 16


class LeastSquares(Sample):
    """f(b) = ||y - Xb||^2 / (2m), with what its solvers need computed once.

    Parameters
    ----------
    design : Design or array (m, p)
        An array is kept as one Fortran-ordered float64 array; it is not copied when it already is
        one, so do not write to it afterwards.
    y : array (m,)
        The response.
    """

    def __init__(self, design: Design | Array, y: Array) -> None:
        super().__init__(design, y, LOSSES["quadratic"])

    @cached_property
    def y_ss(self) -> float:
        """||y||^2."""
        return dot(self.y, self.y)

    @cached_property
    def score(self) -> Array:
        """X'y / m."""
        return self.slope(self.y)

    @property
    def column_norms(self) -> Array:
        """||x_k||^2 / m for every column."""
        return self.design.norms

    @property
    def gram(self) -> Array:
        """X'X / m, one p x p array; ask `prefers_gram` first."""
        return self.design.gram

    @property
    def prefers_gram(self) -> bool:
        """Whether passes over X'X/m beat passes over X.

        A sweep with a nonzero coefficients reads about a p numbers of X'X/m, or (p + 2a) m of X,
        and a is mostly a fraction of m; once p is many times m the p x p matrix stops paying.
        """
        return self.p <= min(GRAM_COLUMNS, GRAM_ASPECT * self.m)

    def residual(self, b: Array) -> Array:
        """Return y - Xb."""
        r = self.y.copy()
        self.design.subtract(r, b)
        return r

    def gradient(self, b: Array) -> Array:
        """Return X'(Xb - y) / m, computed from X."""
        return self.gradient_from(self.residual(b))

    def gradient_from(self, residual: Array) -> Array:
        """Return -X'r / m for a residual r at hand."""
        return -self.slope(residual)

    def value(self, b: Array) -> float:
        """Return f(b)."""
        r = self.residual(b)
        return dot(r, r) / (2 * self.m)

    def errors(self, b: Array) -> Array:
        """Return squared errors."""
        return self.residual(b) ** 2


def make_sample(design: Design | Array, y: Array, loss: Loss) -> Sample:
    """Return a sample with every shortcut that its loss allows."""
    return LeastSquares(design, y) if loss is LOSSES["quadratic"] else Sample(design, y, loss)
