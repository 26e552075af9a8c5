"""Questions about how sure single coefficients are: slopes along directions, and their spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes, powers_above
from fedlasso.federation.messages import Directions, Model, Shapes
from fedlasso.numerics import Array
from fedlasso.sites.site import View


class AlongSums(Reply):
    """Per direction: sums over rows of slopes, of second derivatives, and of squared slopes."""

    positive = ("curvatures", "squares")
    slopes: Array
    curvatures: Array
    squares: Array


class SlopesAlong(Request[AlongSums]):
    """How steep is the loss at b along some directions (columns), and how much do rows differ?"""

    kind = "intervals"
    discloses = Disclosure(
        "slopes of a model along some directions, and how much rows differ in them: sums over rows"
    )
    b: Model
    directions: Directions

    def expects(self, p: int) -> Shapes:
        each = (self.directions.shape[1],)
        return {"slopes": each, "curvatures": each, "squares": each}

    def answer(self, site: View) -> AlongSums:
        sums = site.training.scores_along(self.b, self.directions)
        count = self.directions.shape[1]
        return AlongSums(*sums, steps=count, operations=site.operations(count) // 2)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = self._powers(magnitudes)
        return {
            "slopes": Bound(powers + magnitudes.slopes, words=1, coarse=COARSE),
            # As of `CurvatureAt`: slopes are at least as large as curvatures, or those are one.
            "curvatures": Bound(2 * powers + max(magnitudes.slopes, 0), coarse=COARSE),
            "squares": Bound(2 * (powers + magnitudes.slopes), coarse=COARSE),
        }

    def _powers(self, magnitudes: Magnitudes) -> NDArray[np.int64]:
        """Powers that bound the norms of the rows' steps along every direction."""
        # Rows are rounded as columns are before they are centred.
        norms = np.ldexp(1.0, magnitudes.terms)
        return powers_above(norms @ np.abs(self.directions))


class SiteSlopesAlong(SlopesAlong):
    """The same, of every site by itself: where do sites disagree?"""

    kind = "intervals"
    discloses = Disclosure(
        "slopes of a model along some directions at each site, and how much its rows differ in "
        "them: sums over rows",
        single="the card shows where sites disagree",
    )
