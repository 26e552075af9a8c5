"""Questions about how sure single coefficients are: slopes along directions, and their spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes, powers_above
from fedlasso.federation.messages import Columns, Model, Points, Shapes
from fedlasso.numerics import Array
from fedlasso.sites.parts import places
from fedlasso.sites.site import View

# Curvature per row, along a direction that has one at all sites together, without which a site's
# own estimate is left out.
LEAST = 0.1


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
    directions: Points

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
        norms = np.ldexp(1.0, magnitudes.columns)
        return powers_above(norms @ np.abs(self.directions))


class SiteEstimates(Reply):
    """Per direction: how far the site's own rows would move a coefficient, and the variance."""

    positive = ("variances",)
    steps_to: Array
    variances: Array


class EstimatesAlong(Request[SiteEstimates]):
    """How far would the site's rows alone move some coefficients, each along its direction?

    A site whose rows say next to nothing about one says zero, with a variance of zero.
    """

    kind = "intervals"
    discloses = Disclosure(
        "how far each site's rows alone would move some coefficients, with variances",
        single="the card shows where sites disagree",
    )
    b: Model
    directions: Points
    columns: Columns

    def expects(self, p: int) -> Shapes:
        return {"steps_to": self.columns.shape, "variances": self.columns.shape}

    def answer(self, site: View) -> SiteEstimates:
        f = site.training
        slopes, curvatures, squares = f.scores_along(self.b, self.directions)
        if site.loss != "quadratic":
            squares = np.maximum(squares, curvatures)
        steps = np.zeros(len(slopes))
        variances = np.zeros(len(slopes))
        for i, k in enumerate(places(self.columns)):
            unit = np.zeros(f.p)
            unit[k] = 1.0
            curvature = f.m * float(f.curvature_product(self.b, unit) @ self.directions[:, i])
            # The direction is scaled so that all rows together have a curvature of one per row.
            if curvature > LEAST * f.m and squares[i] > 0:
                steps[i] = -slopes[i] / curvature
                variances[i] = squares[i] / curvature**2
        return SiteEstimates(steps, variances, steps=2 * len(slopes))
