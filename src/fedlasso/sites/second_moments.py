"""Questions about second moments of the columns, and about gradient and Hessian of any loss."""

from dataclasses import replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Columns, Disclosure, ModelVector, Positive, Reply, Request, Shapes
from fedlasso.federation.checking import find_odd_rows
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import Count, Products, Split
from fedlasso.numerics import Array, LeastSquares, one_thread
from fedlasso.numerics.moments import Moments
from fedlasso.numerics.triangles import count_packed, pack
from fedlasso.sites.held_out import FURTHER
from fedlasso.sites.questions import LossSums, bound_of_gradient, bound_of_loss
from fedlasso.sites.rows import PURPOSES, folds_in
from fedlasso.sites.site import View

# As many rows with all sites' residual variance are added to a site's own, so that a few rows that
# happen to fit well have little influence.
PRIOR_ROWS = 20
# Binary logarithm of the maximum weight of a site's rows.
HEAVIEST = 6


class FoldSums(Reply):
    """Per fold: sums over its rows of all products of (1, x, y), upper triangle."""

    moments: Products

    def find_contradiction(self, rows: int) -> str:
        # The products of 1 and 1 add up to the rows of all folds, unless rows have weights.
        total = float(self.moments[:, 0].sum())
        odd = find_odd_rows("rows", total, rows) if total.is_integer() else ""
        return odd or super().find_contradiction(rows)


class FoldMoments(Request[FoldSums]):
    """Second moments of columns and response in every fold; without a split, in all rows."""

    kind = "moments"
    discloses = Disclosure(
        "all second moments of the columns and the response: sums over the rows of every fold",
        moments=True,
    )
    split: Split = ""

    def expects(self, p: int) -> Shapes:
        return {"moments": (folds_in(self.split), count_numbers(p))}

    def answer(self, site: View) -> FoldSums:
        f = site.least_squares
        parts = site.draw.fold_rows(self.split, site.rows)
        moments = np.vstack([pack(Moments.of(f, rows).products) for rows in parts])
        return FoldSums(moments, steps=f.p, operations=site.operations(f.p) // 4)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = magnitudes.products
        return {"moments": Bound(pack(powers[:, None] + powers)[None, :], words=1)}


def count_numbers(p: int) -> int:
    """Return how many numbers one fold's moments of p columns are."""
    return count_packed(p + 2)


class SubsetSums(Reply):
    """Sums of all products of (x, y) over training and held-out rows, and the rows' weight."""

    rows: Count[int]
    held_out: Count[int]
    weight: Positive[float]
    moments: Products


class SubsetMoments(Request[SubsetSums]):
    """Second moments of some columns and the response.

    Columns and penalty are chosen by then, so with the held-out rows' sums the last fit uses all
    rows.
    """

    kind = "moments"
    discloses = Disclosure(
        "second moments of chosen columns and the response: sums over the training rows, and over "
        "the held-out rows",
        held_out=True,
        moments=True,
    )
    # Binary logarithm of the maximum weight of a row.
    heaviest = 0
    columns: Columns

    def row_weight(self, samples: list[LeastSquares]) -> float:
        """Return the weight of each row of the site."""
        return 1.0

    def expects(self, p: int) -> Shapes:
        return {"moments": (2, count_packed(self.columns.size + 1))}

    @one_thread()
    def answer(self, site: View) -> SubsetSums:
        held_out = [_as_least_squares(site, purpose) for purpose in PURPOSES]
        samples = [site.least_squares, *held_out]
        weight = self.row_weight(samples)
        products = []
        for sample in samples:
            V = np.vstack([sample.design.pick(self.columns), sample.y])
            products.append(weight * pack(V @ V.T))
        moments = np.vstack([products[0], np.sum(products[1:], axis=0)])
        held = sum(sample.m for sample in held_out)
        rows = site.rows + held
        steps = self.columns.size
        sums = (site.rows, held, weight * rows, moments)
        return SubsetSums(*sums, steps=steps, operations=2 * rows * steps**2)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = np.append(magnitudes.columns[self.columns], magnitudes.response)
        # Held-out rows may be farther away than training rows.
        products = pack(powers[:, None] + powers) + 2 * FURTHER + self.heaviest
        rows = Bound(2 * magnitudes.rows + FURTHER + self.heaviest)
        counts = dict.fromkeys(("rows", "held_out", "weight"), rows)
        return {**counts, "moments": Bound(products[None, :], words=1)}


class WeightedMoments(SubsetMoments):
    """The same, with rows weighted by all sites' residual `variance` over that of their site.

    A site's variance is that of its training and held-out rows, or of its training rows only.
    """

    discloses = Disclosure(
        "second moments of chosen columns, each site's weighted by how well a model fits there: "
        "several models separate the sites' sums",
        allowed=False,
        held_out=True,
        moments=True,
    )
    heaviest = HEAVIEST
    b: ModelVector
    variance: float
    training_only: bool = False

    def row_weight(self, samples: list[LeastSquares]) -> float:
        samples = samples[:1] if self.training_only else samples
        rows = PRIOR_ROWS + sum(sample.m for sample in samples)
        squares = PRIOR_ROWS * self.variance + sum(float(s.errors(self.b).sum()) for s in samples)
        if squares <= 0.0:
            return 1.0
        return float(min(rows * self.variance / squares, 2.0**HEAVIEST))


def _as_least_squares(site: View, purpose: str) -> LeastSquares:
    sample = site.validation(purpose)
    if not isinstance(sample, LeastSquares):
        raise FedLassoError("held-out rows cannot be added to rows with their site's own intercept")
    return sample


class PartAt(Request[LossSums]):
    """Loss at b, and its gradient in some columns; in all columns if none are listed."""

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
    """m_j times second derivatives of the local loss: the last rows of the lower triangle."""

    block: Array


class CurvatureAt(Request[CurvatureSums]):
    """Second derivatives of the loss at b in some columns, without those among the first `skip`.

    With `alone`, only the diagonal in the further columns.
    """

    discloses = Disclosure(
        "variances and covariances of some columns, weighted by a model: sums over rows",
        moments=True,
    )
    b: ModelVector
    columns: Columns
    skip: int
    alone: bool = False

    def expects(self, p: int) -> Shapes:
        return {"block": (self.count(),)}

    def count(self) -> int:
        """Return how many numbers the reply has."""
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
        sent = pairs[len(pairs) - self.count() :]
        # Slopes are at least as large as curvatures, except for least squares, whose are one.
        return {"block": Bound(sent + max(magnitudes.reach, 0), words=1, coarse=COARSE)}
