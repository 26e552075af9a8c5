"""Second moments of every fold: one question that answers for all penalties and all folds."""

import numpy as np

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.checking import find_odd_rows
from fedlasso.federation.magnitudes import Bound, Magnitudes
from fedlasso.federation.messages import Products, Shapes, Split
from fedlasso.numerics.moments import Moments
from fedlasso.numerics.triangles import count_packed, pack
from fedlasso.sites.rows import folds_in
from fedlasso.sites.site import View


class FoldSums(Reply):
    """Per fold: sums over its rows of all products of (1, x, y), upper triangle."""

    moments: Products

    def find_contradiction(self, rows: int) -> str:
        # The products of 1 and 1 add up to the rows of all folds, unless rows have weights.
        total = float(self.moments[:, 0].sum())
        odd = find_odd_rows("rows", total, rows) if total.is_integer() else ""
        return odd or super().find_contradiction(rows)


class FoldMoments(Request[FoldSums]):
    """What are the second moments of the columns and the response in every fold of a deal?

    Without a deal all rows are one fold.
    """

    kind = "moments"
    discloses = Disclosure(
        "all second moments of the columns and the response: sums over the rows of every fold"
    )
    split: Split = ""

    def expects(self, p: int) -> Shapes:
        return {"moments": (folds_in(self.split), count_numbers(p))}

    def answer(self, site: View) -> FoldSums:
        f = site.least_squares
        parts = site.draw.deal(self.split, site.rows)
        moments = np.vstack([pack(Moments.of(f, rows).products) for rows in parts])
        return FoldSums(moments, steps=f.p, operations=site.operations(f.p) // 4)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = magnitudes.products
        return {"moments": Bound(pack(powers[:, None] + powers)[None, :], words=1)}


def count_numbers(p: int) -> int:
    """Return how many numbers one fold's moments of p columns are."""
    return count_packed(p + 2)
