"""Questions about parts of a curved loss: gradients in some columns, and second derivatives."""

from dataclasses import replace

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import Columns, ModelVector, Shapes
from fedlasso.numerics import Array
from fedlasso.numerics.triangles import count_packed, pack
from fedlasso.sites.questions import LossSums, bound_of_gradient, bound_of_loss
from fedlasso.sites.site import View


class PartAt(Request[LossSums]):
    """Loss at b, and its gradient in some columns; in all where none are named."""

    discloses = Disclosure("the gradient and the loss of a model: sums over rows")
    b: ModelVector
    columns: Columns

    def expects(self, p: int) -> Shapes:
        return {"gradient": (self.columns.size or p,)}

    def answer(self, site: View) -> LossSums:
        f = site.training
        value, gradient = f.value_and_gradient(self.b)
        if self.columns.size:
            gradient = gradient[self.columns]
        return LossSums(f.m * gradient, f.m * value, steps=1, operations=site.operations(1))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        gradient = bound_of_gradient(magnitudes)
        if self.columns.size:
            powers = magnitudes.columns[self.columns]
            gradient = replace(gradient, exponent=powers + magnitudes.reach)
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
    b: ModelVector
    columns: Columns
    skip: int
    alone: bool = False

    def expects(self, p: int) -> Shapes:
        return {"block": (self.count(),)}

    def count(self) -> int:
        """Return how many numbers a site answers with."""
        size = self.columns.size
        skip = min(self.skip, size)
        return size - skip if self.alone else count_packed(size) - count_packed(skip)

    def answer(self, site: View) -> CurvatureSums:
        f = site.training
        if self.alone:
            new = self.columns[self.skip :]
            block = f.m * f.hessian_diagonal(self.b, new)
            return CurvatureSums(block, steps=new.size, operations=4 * f.m * new.size)
        whole = pack(f.m * f.hessian(self.b, self.columns), lower=True)
        block = whole[len(whole) - self.count() :]
        steps = self.columns.size
        return CurvatureSums(block, steps=steps, operations=2 * f.m * steps**2)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = magnitudes.columns[self.columns]
        pairs = 2 * powers if self.alone else pack(powers[:, None] + powers, lower=True)
        told = pairs[len(pairs) - self.count() :]
        # Slopes are at least as large as curvatures, but for those of least squares, which are one.
        return {"block": Bound(told + max(magnitudes.reach, 0), words=1, coarse=COARSE)}
