"""Questions about a fitted model: slopes, noise, and each site's baseline hazard and intercept.

Squares of the rows' slopes would give robust standard errors. But they are sums of fourth powers,
one equation about single records per direction, so sites do not send them. They send squares of
sums over batches of rows instead.
"""

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation import Disclosure, ModelVector, Positive, Reply, Request, Shapes
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes, powers_above
from fedlasso.federation.messages import Directions, Points, R, Times
from fedlasso.numerics import Array, LeastSquares
from fedlasso.sites.cells import floor_times, join_events
from fedlasso.sites.questions import Amount, bound_of_loss
from fedlasso.sites.repeats import MANY_REPEATED
from fedlasso.sites.site import View

# Levels of noise that sites are counted at: powers of the fourth root of two.
LEVELS = 2.0 ** (np.arange(16) / 4)
# Smallest part of a variance that batches may leave: that of two batches, one much larger.
LEAST_LEFT = 0.25
# A site is above a level if its variance is so many of its standard errors above.
CLEARLY = 3.0
# Binary logarithm of the largest intercept of a site, except for least squares. Beyond it the
# intercept is as good as infinite: all rows of the site have the same response.
LARGEST_EFFECT = 6
# Largest squared mean of a site's residuals over their variance; its logarithm is below 2^5.
LARGEST_RATIO = 1e12


class AlongSums(Reply):
    """Per direction: sums over rows of slopes and of second derivatives."""

    slopes: Array
    curvatures: Positive[Array]


class AboutDirections(Request[R]):
    """A question about the loss at b along some directions (columns)."""

    kind = "intervals"
    b: ModelVector
    directions: Directions

    def powers(self, magnitudes: Magnitudes) -> NDArray[np.int64]:
        """Bound the norms of the linear predictors along the directions."""
        # Rows are rounded as columns are before they are centred.
        return powers_above(np.ldexp(1.0, magnitudes.terms) @ np.abs(self.directions))

    def curvature_bound(self, magnitudes: Magnitudes) -> Bound:
        # As for `CurvatureAt`: slopes are at least as large as curvatures, or those are one.
        powers = self.powers(magnitudes)
        return Bound(2 * powers + max(magnitudes.slopes, 0), coarse=COARSE)


class SlopesAlong(AboutDirections[AlongSums]):
    """First and second derivatives of the loss at b along some directions (columns)."""

    discloses = Disclosure(
        "slopes and second derivatives of a model along some directions: sums over rows"
    )

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("slopes", "curvatures"), self.directions.shape[1:])

    def answer(self, site: View) -> AlongSums:
        sums = site.training.slopes_along(self.b, self.directions)
        count = self.directions.shape[1]
        return AlongSums(*sums, steps=count, operations=site.operations(count) // 2)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = self.powers(magnitudes) + magnitudes.slopes
        return {
            "slopes": Bound(powers, words=1, coarse=COARSE),
            "curvatures": self.curvature_bound(magnitudes),
        }


class SiteSlopesAlong(SlopesAlong):
    """The same of every site by itself: where do sites disagree?"""

    discloses = Disclosure(
        "slopes and second derivatives of a model along some directions at each site: sums over "
        "rows",
        single="the card shows where sites disagree",
    )


class BatchSums(Reply):
    """Per direction: variances of slopes, and second derivatives; and degrees of freedom.

    Sites with fewer than two batches add nothing to these. `clusters` is the number of clusters,
    zero without any. `repeated` is one if rows look repeated and there are no clusters; a total
    counts sites.
    """

    variances: Positive[Array]
    curvatures: Positive[Array]
    degrees: Positive[float]
    clusters: Positive[float]
    repeated: Positive[float]


class BatchSlopes(AboutDirections[BatchSums]):
    """Variances of slopes at b along some directions, whatever the noise is like.

    A site cuts its rows at random into batches, once, and keeps the clusters of a study in one
    batch. Sums of slopes over batches are independent, so that their squares about the site's mean
    estimate the variance of a total: for any noise, and for rows that depend on each other within a
    cluster.
    """

    discloses = Disclosure(
        "variances of slopes of a model along some directions: sums over batches of at least "
        "min_rows rows, drawn once, of squared sums over rows; the number of clusters; and at how "
        "many sites rows look repeated",
        batches=True,
    )

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("variances", "curvatures"), self.directions.shape[1:])

    def answer(self, site: View) -> BatchSums:
        count = self.directions.shape[1]
        batch = site.batches
        sizes = np.bincount(batch) / site.rows
        # The part of a variance that is left once the mean is subtracted.
        left = 1 - float(sizes @ sizes)
        members = site.draw.clusters
        clusters = 0.0 if members is None else float(members.max() + 1)
        repeated = float(site.draw.repeated >= MANY_REPEATED)
        if left < LEAST_LEFT:
            return BatchSums(np.zeros(count), np.zeros(count), 0.0, clusters, repeated)
        terms = site.training.slope_terms(self.b, self.directions)
        sums = np.zeros((len(sizes), count))
        np.add.at(sums, batch, terms)
        sums -= np.outer(sizes, sums.sum(axis=0))
        _, curvatures = site.training.slopes_along(self.b, self.directions)
        columns = np.sqrt(site.rows * site.training.design.norms)
        sums = self._round(sums, columns, np.sqrt(curvatures))
        variances = np.einsum("ik,ik->k", sums, sums) / left
        work = site.operations(count)
        degrees = left / (1 - left)
        return BatchSums(
            variances, curvatures, degrees, clusters, repeated, steps=count, operations=work
        )

    def _round(self, sums: Array, columns: Array, along: Array) -> Array:
        """Round sums over batches as coarsely as other sums; their squares may then be exact.

        Terms of a row cancel as far as the norms of the columns, weighted by a direction, exceed
        the norm along it.
        """
        together = np.abs(self.directions).T @ columns
        cancelled = np.divide(together, along, out=np.ones_like(along), where=along > 0)
        steps = np.ldexp(1.0, powers_above(cancelled * np.linalg.norm(sums, axis=0)) - COARSE)
        return np.asarray(np.rint(sums / steps) * steps)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = self.powers(magnitudes) + magnitudes.slopes
        return {
            "variances": Bound(2 * powers + 6, coarse=2 * COARSE + 6),
            "curvatures": self.curvature_bound(magnitudes),
            "degrees": Bound(2 * magnitudes.rows),
            "clusters": Bound(2 * magnitudes.rows, words=1),
            # There are no more sites than rows.
            "repeated": Bound(2 * magnitudes.rows, words=1),
        }


class LossesSums(Reply):
    """Per model: the sum over rows of its loss."""

    losses: Array


class LossesAt(Request[LossesSums]):
    """Losses at some models (columns): do the rows bound an effect?"""

    kind = "intervals"
    discloses = Disclosure("losses of some models: sums over rows")
    b: Points

    def expects(self, p: int) -> Shapes:
        return {"losses": self.b.shape[1:]}

    def answer(self, site: View) -> LossesSums:
        f = site.training
        losses = f.m * np.array([f.value(np.ascontiguousarray(b)) for b in self.b.T])
        steps = self.b.shape[1]
        return LossesSums(losses, steps=steps, operations=site.operations(steps) // 2)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"losses": bound_of_loss(magnitudes)}


class NoisySites(Reply):
    """Per level: one where the site's noise is above it. A total counts sites."""

    above: Positive[Array]


class NoiseAbove(Request[NoisySites]):
    """How many sites have clearly more noise than a variance, and than multiples of it?"""

    kind = "intervals"
    discloses = Disclosure(
        "how many sites have residuals of a model with a variance clearly above a given number, "
        "and above 15 multiples of it",
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


class SiteShift(Request[Amount]):
    """Does the model's mean residual differ between sites?

    The statistic is a likelihood ratio of each site's mean slope with the site's own variance. Its
    total has a chi-square distribution if no site is shifted.
    """

    kind = "intervals"
    discloses = Disclosure(
        "how clearly the sites' mean residuals of a model differ, as one number over all sites"
    )
    b: ModelVector

    def answer(self, site: View) -> Amount:
        slopes = site.training.row_slopes(self.b)
        mean, variance = float(slopes.mean()), float(slopes.var())
        ratio = mean**2 / variance if variance > 0 else float(mean != 0) * LARGEST_RATIO
        # Bartlett's correction: few rows make such a ratio too large.
        count = max(site.rows - 1.5, 0.0)
        return Amount(count * np.log1p(min(ratio, LARGEST_RATIO)), steps=1)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"value": Bound(2 * magnitudes.rows + 5, coarse=COARSE)}


class Hazard(Reply):
    hazard: Positive[Array]


class BaselineAt(Request[Hazard]):
    """Cumulative baseline hazard at some times, by Breslow's estimator.

    A site with a policy adds the steps of some events at once, at times on a grid of its own.
    """

    kind = "baseline"
    discloses = Disclosure(
        "the site's own baseline hazard at some times: when every few of its events were, roughly",
        allowed=False,
        single="every site has a baseline of its own",
    )
    b: ModelVector
    times: Times

    def expects(self, p: int) -> Shapes:
        return {"hazard": self.times.shape}

    def answer(self, site: View) -> Hazard:
        f = site.training
        sets = f.response.risk_sets
        logs = np.log(f.response.weights) + f.predictor(self.b)
        log_risk = np.logaddexp.accumulate(logs[sets.order][::-1])[::-1][sets.start]
        steps = np.append(0.0, np.cumsum(sets.masses * np.exp(-log_risk)))
        times = self.times
        if site.draw.cell_rows:
            times = floor_times(times, f.response.times)
        passed = np.searchsorted(sets.moments, times, side="right")
        if site.draw.cell_rows:
            passed = join_events(sets.counts, site.draw.cell_rows)[passed]
        return Hazard(steps[passed], steps=1, operations=site.operations(1) // 2)


class EffectSums(Reply):
    """A site's own intercept times the weight of its rows, and that weight."""

    effects: float
    weight: Positive[float]


class EffectAt(Request[EffectSums]):
    """The site's own best intercept at b, with weight zero where its rows do not determine it."""

    kind = "certificate"
    discloses = Disclosure("the mean over all rows of the sites' own intercepts, and their weight")
    b: ModelVector

    def answer(self, site: View) -> EffectSums:
        f = site.training
        effect = f.effect_at(self.b)
        if isinstance(f, LeastSquares):
            weight = f.given[1].weight if f.given is not None else 0.0
        else:
            weight = f.response.weight if abs(effect) < 2.0**LARGEST_EFFECT else 0.0
        return EffectSums(weight * effect, weight, steps=1, operations=site.operations(1) // 2)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        rows = 2 * magnitudes.rows
        most = max(rows + LARGEST_EFFECT, magnitudes.rows + magnitudes.reach)
        return {"effects": Bound(most, coarse=COARSE), "weight": Bound(rows)}
