"""Questions about parts of a curved loss: gradients in some columns, and second derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import Columns, Model, Shapes
from fedlasso.numerics import Array
from fedlasso.numerics.surrogates import count_lower, triangle
from fedlasso.sites.questions import LossSums, bound_of_gradient, bound_of_loss
from fedlasso.sites.site import View


class PartAt(Request[LossSums]):
    """Loss at b, and its gradient in some columns; in all where none are named."""

    discloses = Disclosure("the gradient and the loss of a model: sums over rows")
    b: Model
    columns: Columns

    def expects(self, p: int) -> Shapes:
        return {"gradient": (self.columns.size or p,)}

    def answer(self, site: View) -> LossSums:
        f = site.training
        value, gradient = f.value_and_gradient(self.b)
        if self.columns.size:
            gradient = gradient[places(self.columns)]
        return LossSums(f.m * gradient, f.m * value, steps=1, operations=site.operations(1))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        whole = bound_of_gradient(magnitudes)
        powers = magnitudes.columns
        if self.columns.size:
            powers = powers[places(self.columns)]
        gradient = replace(whole, exponent=powers + magnitudes.reach)
        return {"gradient": gradient, "loss": bound_of_loss(magnitudes)}


class CurvatureSums(Reply):
    """m_j times second derivatives of the local loss: rows of the lower triangle, the last ones."""

    block: Array


class CurvatureAt(Request[CurvatureSums]):
    """Second derivatives of the loss at b in some columns, without those of the first `skip`.

    With `alone` each further column's own one is all that is asked for.
    """

    discloses = Disclosure(
        "variances and covariances of some columns, weighted by a model: sums over rows"
    )
    b: Model
    columns: Columns
    skip: int
    alone: int = 0

    def expects(self, p: int) -> Shapes:
        return {"block": (self.count(),)}

    def count(self) -> int:
        """Return how many numbers a site answers with."""
        size = self.columns.size
        skip = min(self.skip, size)
        return size - skip if self.alone else count_lower(size) - count_lower(skip)

    def answer(self, site: View) -> CurvatureSums:
        f = site.training
        wanted = places(self.columns)
        if self.alone:
            new = wanted[self.skip :]
            block = f.m * f.hessian_diagonal(self.b, new)
            return CurvatureSums(block, steps=new.size, operations=4 * f.m * new.size)
        whole = triangle(f.m * f.hessian(self.b, wanted))
        block = whole[len(whole) - self.count() :]
        return CurvatureSums(block, steps=wanted.size, operations=2 * f.m * wanted.size**2)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = magnitudes.columns[places(self.columns)]
        pairs = 2 * powers if self.alone else triangle(powers[:, None] + powers)
        told = pairs[len(pairs) - self.count() :]
        # Slopes are at least as large as curvatures, but for those of least squares, which are one.
        return {"block": Bound(told + max(magnitudes.reach, 0), words=1, coarse=COARSE)}


def places(columns: Array) -> NDArray[np.int64]:
    """Column numbers, which travel as doubles."""
    return columns.astype(np.int64)
