"""The question behind Table 1: counts, sums and squares of every column and of the response."""

import numpy as np

from fedlasso.federation import Disclosure, Positive, Reply, Request, Shapes
from fedlasso.federation.magnitudes import Bound, Magnitudes
from fedlasso.federation.messages import Centre, Count, ResponseCentre
from fedlasso.numerics import Array
from fedlasso.sites.site import Site
from fedlasso.sites.views import STEP, read_powers

# No squared survival time exceeds two to this power.
TIME_POWER = 70


class TableSums(Reply):
    """Sums over all rows without weights: of columns, response and survival times.

    Squares are about the centre in the question, those of times about zero.
    """

    rows: Count[int]
    missing: Positive[Array]
    sums: Array
    squares: Positive[Array]
    y_sum: float
    y_squares: Positive[float]
    time_sum: Positive[float]
    time_squares: Positive[float]


class SummariseTable(Request[TableSums]):
    """Rows, missing values, sums and squares of the columns, bounded by `letters`."""

    kind = "scaling"
    discloses = Disclosure(
        "Table 1: the numbers of rows and of missing values, and sums and squares of every column, "
        "of the response and of survival times, over all rows",
        single="Table 1 describes each site",
    )
    means: Centre
    y_mean: ResponseCentre = 0.0
    letters: str = ""

    def answer(self, site: Site) -> TableSums:
        ones = np.ones(site.table.n)
        loss = site.training.loss
        y = loss.disclosed_response(site.response.y)
        times = site.response.times if loss.survival else 0 * ones
        return TableSums(
            site.table.n,
            site.table.missing(ones),
            site.table.inner(ones),
            site.table.squares(self.means, ones),
            float(y.sum()),
            float(((y - self.y_mean) ** 2).sum()),
            float(times.sum()),
            float((times * times).sum()),
            steps=1,
            operations=site.operations(1),
        )

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("missing", "sums", "squares"), (p,))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Before there is a view, the reach is that of the number of rows.
        rows = magnitudes.reach
        powers = read_powers(self.letters)[:-1]
        # No deviation from a mean is more than twice the largest number.
        squares = 2 * (powers + 1) + rows
        # Letters bound a response less its offset.
        return {
            "rows": Bound(rows),
            "missing": Bound(rows, 1),
            "sums": Bound(powers[:-1] + rows),
            "squares": Bound(squares[:-1]),
            "y_sum": Bound(int(powers[-1]) + STEP + rows),
            "y_squares": Bound(int(squares[-1]) + 2 * STEP),
            "time_sum": Bound(TIME_POWER + rows),
            "time_squares": Bound(TIME_POWER + rows),
        }
