"""Questions about how sure single coefficients are: slopes, curvatures, and how noisy sites are.

Squares of the rows' slopes would tell how these vary whatever the noise is like. But sums of fourth
powers, of columns times residuals, are as many equations about single records as there are
directions, so they are not told.
"""

import numpy as np

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes, powers_above
from fedlasso.federation.messages import Directions, ModelVector, Positive, Shapes
from fedlasso.numerics import Array
from fedlasso.sites.site import View

# Levels of noise that sites are counted at: powers of the fourth root of two.
LEVELS = 2.0 ** (np.arange(16) / 4)
# A site is above a level when its variance is so many of its standard errors above.
CLEARLY = 3.0


class AlongSums(Reply):
    """Per direction: sums over rows of slopes and of second derivatives."""

    slopes: Array
    curvatures: Positive[Array]


class SlopesAlong(Request[AlongSums]):
    """How steep and how curved is the loss at b along some directions (columns)?"""

    kind = "intervals"
    discloses = Disclosure(
        "slopes and second derivatives of a model along some directions: sums over rows"
    )
    b: ModelVector
    directions: Directions

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("slopes", "curvatures"), self.directions.shape[1:])

    def answer(self, site: View) -> AlongSums:
        sums = site.training.slopes_along(self.b, self.directions)
        count = self.directions.shape[1]
        return AlongSums(*sums, steps=count, operations=site.operations(count) // 2)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Rows are rounded as columns are before they are centred.
        powers = powers_above(np.ldexp(1.0, magnitudes.terms) @ np.abs(self.directions))
        return {
            "slopes": Bound(powers + magnitudes.slopes, words=1, coarse=COARSE),
            # As of `CurvatureAt`: slopes are at least as large as curvatures, or those are one.
            "curvatures": Bound(2 * powers + max(magnitudes.slopes, 0), coarse=COARSE),
        }


class SiteSlopesAlong(SlopesAlong):
    """The same, of every site by itself: where do sites disagree?"""

    discloses = Disclosure(
        "slopes and second derivatives of a model along some directions at each site: sums over "
        "rows",
        single="the card shows where sites disagree",
    )


class NoisySites(Reply):
    """Per level: one where the site's noise is above it. A total counts sites."""

    above: Positive[Array]


class NoiseAbove(Request[NoisySites]):
    """How many sites have clearly more noise than a variance, and than multiples of it?"""

    kind = "intervals"
    discloses = Disclosure(
        "how many sites have residuals of a model that vary clearly more than a number says, and "
        "than 15 multiples of it",
        compares=True,
    )
    b: ModelVector
    variance: float

    def expects(self, p: int) -> Shapes:
        return {"above": LEVELS.shape}

    def answer(self, site: View) -> NoisySites:
        rows = site.rows
        own = float(site.training.errors(self.b).sum()) / rows
        surely = own / (1 + CLEARLY * np.sqrt(2 / rows))
        return NoisySites((surely > LEVELS * self.variance).astype(np.float64), steps=1)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # There are no more sites than rows.
        return {"above": Bound(2 * magnitudes.rows, words=1)}
