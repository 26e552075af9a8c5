"""Second moments of a few columns, over the rows that train and over those that are held out.

What chose the columns and the penalty is done by then, so held-out rows need not be wasted: with
their sums the last fit is one to all rows.
"""

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Columns, Disclosure, ModelVector, Reply, Request, Shapes
from fedlasso.federation.magnitudes import Bound, Magnitudes
from fedlasso.federation.messages import Count, Positive, Products
from fedlasso.numerics import LeastSquares, one_thread
from fedlasso.numerics.triangles import count_packed, pack
from fedlasso.sites.held_out import FURTHER
from fedlasso.sites.rows import PURPOSES
from fedlasso.sites.site import View

# As many rows with all sites' residual variance are added to a site's own, so that a few rows that
# happen to fit well do not count for much.
PRIOR = 20
# Rows of one site count at most two to this power times as much as they would on average.
HEAVIEST = 6


class SubsetSums(Reply):
    """Sums of all products of (x, y) over training and held-out rows, and what the rows weigh."""

    rows: Count[int]
    held_out: Count[int]
    weight: Positive[float]
    moments: Products


class SubsetMoments(Request[SubsetSums]):
    """What are the second moments of some columns and the response?"""

    kind = "moments"
    discloses = Disclosure(
        "second moments of chosen columns and the response: sums over the training rows, and over "
        "the held-out rows",
        held_out=True,
    )
    # Rows count at most two to this power each.
    heaviest = 0
    columns: Columns

    def weigh(self, samples: list[LeastSquares]) -> float:
        """Return how much each row of the site counts."""
        return 1.0

    def expects(self, p: int) -> Shapes:
        return {"moments": (2, count_packed(self.columns.size + 1))}

    @one_thread()
    def answer(self, site: View) -> SubsetSums:
        held_out = [_as_least_squares(site, purpose) for purpose in PURPOSES]
        samples = [site.least_squares, *held_out]
        weight = self.weigh(samples)
        products = []
        for sample in samples:
            V = np.vstack([sample.design.pick(self.columns), sample.y])
            products.append(weight * pack(V @ V.T))
        moments = np.vstack([products[0], np.sum(products[1:], axis=0)])
        held = sum(sample.m for sample in held_out)
        rows = site.rows + held
        size = self.columns.size
        return SubsetSums(
            site.rows, held, weight * rows, moments, steps=size, operations=2 * rows * size**2
        )

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = np.append(magnitudes.columns[self.columns], magnitudes.response)
        # Rows that did not train may lie further away.
        told = pack(powers[:, None] + powers) + 2 * FURTHER + self.heaviest
        rows = Bound(2 * magnitudes.rows + FURTHER + self.heaviest)
        counts = dict.fromkeys(("rows", "held_out", "weight"), rows)
        return {**counts, "moments": Bound(told[None, :], words=1)}


class WeighedMoments(SubsetMoments):
    """The same, where rows of a site at which a model fits well count for more.

    They count as all sites' residual `variance` over the site's own.
    """

    discloses = Disclosure(
        "the same, each site's weighted by how well a model fits there: several models tell the "
        "sites' sums apart",
        allowed=False,
        held_out=True,
    )
    heaviest = HEAVIEST
    b: ModelVector
    variance: float

    def weigh(self, samples: list[LeastSquares]) -> float:
        rows = PRIOR + sum(sample.m for sample in samples)
        squares = PRIOR * self.variance + sum(float(s.errors(self.b).sum()) for s in samples)
        if squares <= 0.0:
            return 1.0
        return float(min(rows * self.variance / squares, 2.0**HEAVIEST))


def _as_least_squares(site: View, purpose: str) -> LeastSquares:
    sample = site.validation(purpose)
    if not isinstance(sample, LeastSquares):
        raise FedLassoError("held-out rows cannot be added to rows about their site's own mean")
    return sample
