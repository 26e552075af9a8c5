"""Questions about calibration and discrimination of a model on held-out rows: sums over rows."""

import numpy as np

from fedlasso.federation import Disclosure, Positive, Reply, Shapes, Signed, Steps
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes, power_above
from fedlasso.federation.messages import Count
from fedlasso.numerics import Array, Response
from fedlasso.sites.held_out import FURTHER, AboutHeldOut, rows_power
from fedlasso.sites.site import View

PER_SITE = "the card shows how well the model predicts at each site"
# Rows that are compared with all others at once.
PAIR_BLOCK = 1000


class ScoreSums(Reply):
    """Rows, sums of their linear predictors, of the squares of those, and of survival times."""

    rows: Count[int]
    scores: float
    squares: Positive[float]
    times: Positive[float]


class ScoresAt(AboutHeldOut[ScoreSums]):
    """Mean and spread of a model's linear predictors over held-out rows."""

    discloses = Disclosure(
        "sums over held-out rows of a model's predictions, their squares and survival times",
        held_out=True,
    )

    def answer(self, site: View) -> ScoreSums:
        held_out, eta = self.predict(site)
        times = held_out.response.times if held_out.loss.survival else 0 * eta
        return ScoreSums(held_out.m, float(eta.sum()), float((eta * eta).sum()), float(times.sum()))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        reach = magnitudes.reach + FURTHER
        return {
            "rows": Bound(rows_power(magnitudes)),
            "scores": Bound(magnitudes.rows + reach, coarse=COARSE + FURTHER),
            "squares": Bound(2 * reach, coarse=COARSE + 2 * FURTHER),
        }


class ScoreCounts(Reply):
    """Per range of linear predictors: number of rows, sums of responses and of predictions."""

    rows: Count[Array]
    observed: Array
    expected: Array


class ScoreRanges(AboutHeldOut[ScoreCounts]):
    """Sums in `ranges` of the linear predictor, `width` wide from `low` on; outer ones are open."""

    discloses = Disclosure(
        "how many held-out rows a model puts into each of some ranges, and the sums of their "
        "responses and predictions",
        held_out=True,
        single=PER_SITE,
    )
    low: Signed
    width: float
    ranges: Steps

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("rows", "observed", "expected"), (self.ranges,))

    def answer(self, site: View) -> ScoreCounts:
        held_out, eta = self.predict(site)
        place = np.floor((eta - self.low) / self.width)
        place = np.clip(place, 0, self.ranges - 1).astype(np.int64)
        observed = held_out.loss.disclosed_response(held_out.y)

        def add(numbers: Array) -> Array:
            return np.bincount(place, numbers, minlength=self.ranges).astype(np.float64)

        return ScoreCounts(add(np.ones(held_out.m)), add(observed), add(held_out.loss.mean(eta)))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Predictions are linear predictors, or no larger than slopes and responses.
        size = magnitudes.slopes if magnitudes.curved else magnitudes.reach
        sums = Bound(max(size, magnitudes.response) + magnitudes.rows + 2 * FURTHER)
        return {"rows": Bound(rows_power(magnitudes)), "observed": sums, "expected": sums}


class RecalibrationSums(Reply):
    """Gradient and Hessian of the loss in an intercept and a slope of the linear predictor."""

    slopes: Array
    curvature: Array


class RecalibrationAt(AboutHeldOut[RecalibrationSums]):
    """Derivatives of the loss at an intercept and a calibration slope of the linear predictor."""

    discloses = Disclosure(
        "five sums over held-out rows of functions of a model's predictions",
        held_out=True,
        single=PER_SITE,
    )
    intercept: Signed
    slope: Signed

    def expects(self, p: int) -> Shapes:
        return {"slopes": (2,), "curvature": (3,)}

    def answer(self, site: View) -> RecalibrationSums:
        held_out, eta = self.predict(site)
        at = self.intercept + self.slope * eta
        slopes = held_out.loss.slopes(at, held_out.response)
        V = np.column_stack([np.ones(len(eta)), eta])
        curved = V.T @ held_out.loss.curve(at, held_out.response, V)
        return RecalibrationSums(V.T @ slopes, np.array([curved[0, 0], curved[0, 1], curved[1, 1]]))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        shifted = power_above(abs(self.intercept)) + magnitudes.rows
        scaled = power_above(abs(self.slope)) + magnitudes.reach
        columns = max(magnitudes.rows, magnitudes.reach)
        slopes = magnitudes.slopes if magnitudes.curved else max(shifted, scaled, magnitudes.reach)
        curvature = magnitudes.slopes if magnitudes.curved else 0
        return {
            "slopes": Bound(slopes + columns + 2 * FURTHER, coarse=COARSE + 2 * FURTHER),
            "curvature": Bound(curvature + 2 * columns + 3 * FURTHER, coarse=COARSE + 3 * FURTHER),
        }


class PairSums(Reply):
    """Pairs of rows with a known order of events, and those that a model orders correctly."""

    comparable: Positive[float]
    concordant: Positive[float]


class PairsAt(AboutHeldOut[PairSums]):
    """Concordance of linear predictors and events within each site; equal predictors count half."""

    discloses = Disclosure(
        "how many pairs of held-out rows a model has in the right order",
        held_out=True,
        single=PER_SITE,
    )

    def answer(self, site: View) -> PairSums:
        held_out, eta = self.predict(site)
        return PairSums(*count_pairs(eta, held_out.response))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return dict.fromkeys(("comparable", "concordant"), Bound(2 * rows_power(magnitudes)))


def count_pairs(eta: Array, response: Response) -> tuple[float, float]:
    """Count comparable pairs, whose earlier time is an event (Harrell), and concordant ones."""
    times = response.times
    comparable = 0.0
    concordant = 0.0
    events = np.flatnonzero(response.events)
    for at in range(0, len(events), PAIR_BLOCK):
        own = events[at : at + PAIR_BLOCK]
        later = times[None, :] > times[own, None]
        # Of an event and a censoring at the same time, the censored row is the later one.
        later |= (times[None, :] == times[own, None]) & ~response.events[None, :]
        higher = eta[own, None] - eta[None, :]
        comparable += float(later.sum())
        concordant += float((later & (higher > 0)).sum() + 0.5 * (later & (higher == 0)).sum())
    return comparable, concordant


class GroupSums(Reply):
    """Per group of rows and interval of time: numbers of events, and of censored rows."""

    events: Positive[Array]
    censored: Positive[Array]


class GroupsAt(AboutHeldOut[GroupSums]):
    """Events over time of held-out rows at low, middle and high risk.

    The groups are cut at two linear predictors; there are `stretches` of time of `length` each, the
    last one open.
    """

    discloses = Disclosure(
        "how many held-out rows of three groups had an event, or were censored, in each of some "
        "intervals of time",
        held_out=True,
    )
    lower: Signed
    upper: Signed
    length: float
    stretches: Steps

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("events", "censored"), (3, self.stretches))

    def answer(self, site: View) -> GroupSums:
        held_out, eta = self.predict(site)
        group = (eta > self.lower).astype(np.int64) + (eta > self.upper)
        when = np.floor(held_out.response.times / self.length)
        when = np.clip(when, 0, self.stretches - 1).astype(np.int64)
        place = group * self.stretches + when
        dead = held_out.response.events

        def count(which: Array) -> Array:
            counts = np.bincount(place, which, minlength=3 * self.stretches)
            return counts.astype(np.float64).reshape(3, self.stretches)

        return GroupSums(count(dead.astype(np.float64)), count((~dead).astype(np.float64)))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return dict.fromkeys(("events", "censored"), Bound(rows_power(magnitudes)))
