"""Second moments of every fold: one question that answers for all penalties and all folds."""

import numpy as np

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.messages import Split
from fedlasso.numerics import Array
from fedlasso.numerics.moments import Moments, pack
from fedlasso.sites.site import View


class FoldSums(Reply):
    """Per fold: sums over its rows of all products of (1, x, y), upper triangle."""

    moments: Array


class FoldMoments(Request[FoldSums]):
    """What are the second moments of the columns and the response in every fold of a deal?

    Without a deal all rows are one fold.
    """

    kind = "moments"
    discloses = Disclosure(
        "all second moments of the columns and the response: sums over the rows of every fold"
    )
    split: Split = ""

    def answer(self, site: View) -> FoldSums:
        f = site.least_squares
        parts = site.draw.deal(self.split, site.rows)
        return FoldSums(
            np.vstack([pack(Moments.of(f, rows).products) for rows in parts]),
            steps=f.p,
            operations=site.operations(f.p) // 4,
        )


def count_numbers(p: int) -> int:
    """Return how many numbers one fold's moments of p columns are."""
    return (p + 2) * (p + 3) // 2
