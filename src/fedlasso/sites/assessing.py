"""Questions about how well a model predicts held-out rows, beyond its error: sums over rows."""

import numpy as np

from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes, power_above
from fedlasso.federation.messages import (
    Count,
    ModelVector,
    Positive,
    Purpose,
    Shapes,
    Signed,
    Steps,
)
from fedlasso.numerics import Array, Response
from fedlasso.sites.held_out import FURTHER
from fedlasso.sites.site import View

EACH = "the card tells how well the model predicts at each site"
# Rows that are compared with all others at once.
BLOCK = 1000


def rows_power(magnitudes: Magnitudes) -> int:
    """Return a power of two that no number of held-out rows exceeds."""
    return 2 * magnitudes.rows + FURTHER


class ScoreSums(Reply):
    """Rows, sums of their linear predictors, of the squares of those, and of survival times."""

    rows: Count[int]
    scores: float
    squares: Positive[float]
    times: Positive[float]


class ScoresAt(Request[ScoreSums]):
    """How far do the linear predictors of a model spread over held-out rows?"""

    kind = "validation"
    discloses = Disclosure(
        "sums over held-out rows of a model's predictions, their squares and survival times",
        held_out=True,
    )
    b: ModelVector
    purpose: Purpose = "candidate"

    def answer(self, site: View) -> ScoreSums:
        held_out = site.validation(self.purpose)
        eta = held_out.predictor(self.b)
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
    """Per range of linear predictors: rows, their responses and their predictions, added up."""

    rows: Count[Array]
    observed: Array
    expected: Array


class ScoreRanges(Request[ScoreCounts]):
    """How do responses and predictions compare in ranges of a model's linear predictor?

    There are `ranges` of them, each `width` wide, from `low` on; the outer ones are open.
    """

    kind = "validation"
    discloses = Disclosure(
        "how many held-out rows a model puts into each of some ranges, with their responses and "
        "predictions added up",
        held_out=True,
        single=EACH,
    )
    b: ModelVector
    low: Signed
    width: float
    ranges: Steps
    purpose: Purpose = "candidate"

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("rows", "observed", "expected"), (self.ranges,))

    def answer(self, site: View) -> ScoreCounts:
        held_out = site.validation(self.purpose)
        eta = held_out.predictor(self.b)
        place = np.floor((eta - self.low) / self.width)
        place = np.clip(place, 0, self.ranges - 1).astype(np.int64)
        told = held_out.loss.disclosed_response(held_out.y)

        def add(numbers: Array) -> Array:
            return np.bincount(place, numbers, minlength=self.ranges).astype(np.float64)

        return ScoreCounts(add(np.ones(held_out.m)), add(told), add(held_out.loss.mean(eta)))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Predictions are linear predictors, or no larger than slopes and responses.
        size = magnitudes.slopes if magnitudes.curved else magnitudes.reach
        sums = Bound(max(size, magnitudes.response) + magnitudes.rows + 2 * FURTHER)
        return {"rows": Bound(rows_power(magnitudes)), "observed": sums, "expected": sums}


class RecalibrationSums(Reply):
    """Slopes and curvature of the loss in an intercept and a slope of the linear predictor."""

    slopes: Array
    curvature: Array


class RecalibrationAt(Request[RecalibrationSums]):
    """How should an intercept and a factor change a model's linear predictor to fit better?"""

    kind = "validation"
    discloses = Disclosure(
        "five sums over held-out rows of functions of a model's predictions",
        held_out=True,
        single=EACH,
    )
    b: ModelVector
    intercept: Signed
    slope: Signed
    purpose: Purpose = "candidate"

    def expects(self, p: int) -> Shapes:
        return {"slopes": (2,), "curvature": (3,)}

    def answer(self, site: View) -> RecalibrationSums:
        held_out = site.validation(self.purpose)
        eta = held_out.predictor(self.b)
        at = self.intercept + self.slope * eta
        slopes = held_out.loss.slopes(at, held_out.response)
        V = np.column_stack([np.ones(len(eta)), eta])
        curved = V.T @ held_out.loss.curve(at, held_out.response, V)
        return RecalibrationSums(V.T @ slopes, np.array([curved[0, 0], curved[0, 1], curved[1, 1]]))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        moved = power_above(abs(self.intercept)) + magnitudes.rows
        turned = power_above(abs(self.slope)) + magnitudes.reach
        columns = max(magnitudes.rows, magnitudes.reach)
        slopes = magnitudes.slopes if magnitudes.curved else max(moved, turned, magnitudes.reach)
        curvature = magnitudes.slopes if magnitudes.curved else 0
        return {
            "slopes": Bound(slopes + columns + 2 * FURTHER, coarse=COARSE + 2 * FURTHER),
            "curvature": Bound(curvature + 2 * columns + 3 * FURTHER, coarse=COARSE + 3 * FURTHER),
        }


class PairSums(Reply):
    """Pairs of rows of which one is known to have had its event first, and how a model has them."""

    comparable: Positive[float]
    concordant: Positive[float]


class PairsAt(Request[PairSums]):
    """Of two held-out rows, does the one with the larger linear predictor have its event first?

    Pairs are of rows of one site; where a model does not tell them apart they count half.
    """

    kind = "validation"
    discloses = Disclosure(
        "how many pairs of held-out rows a model has in the right order", held_out=True, single=EACH
    )
    b: ModelVector
    purpose: Purpose = "candidate"

    def answer(self, site: View) -> PairSums:
        held_out = site.validation(self.purpose)
        return PairSums(*count_pairs(held_out.predictor(self.b), held_out.response))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return dict.fromkeys(("comparable", "concordant"), Bound(2 * rows_power(magnitudes)))


def count_pairs(eta: Array, response: Response) -> tuple[float, float]:
    """Return how many pairs can be compared, and how many of them linear predictors have right.

    A pair can be compared where the earlier of two times ended in an event (Harrell).
    """
    times = response.times
    comparable = 0.0
    concordant = 0.0
    events = np.flatnonzero(response.events)
    for at in range(0, len(events), BLOCK):
        own = events[at : at + BLOCK]
        later = times[None, :] > times[own, None]
        # A time that was censored when another ended in an event is the later one.
        later |= (times[None, :] == times[own, None]) & ~response.events[None, :]
        higher = eta[own, None] - eta[None, :]
        comparable += float(later.sum())
        concordant += float((later & (higher > 0)).sum() + 0.5 * (later & (higher == 0)).sum())
    return comparable, concordant


class GroupSums(Reply):
    """Per group of rows and stretch of time: events, and rows that were censored."""

    events: Positive[Array]
    censored: Positive[Array]


class GroupsAt(Request[GroupSums]):
    """When did held-out rows of low, middle and high risk have their events?

    The groups are cut at two linear predictors; `stretches` of time are `length` long each, and the
    last one is open.
    """

    kind = "validation"
    discloses = Disclosure(
        "how many held-out rows of three groups had an event, or were censored, in each of some "
        "stretches of time",
        held_out=True,
    )
    b: ModelVector
    lower: Signed
    upper: Signed
    length: float
    stretches: Steps
    purpose: Purpose = "candidate"

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("events", "censored"), (3, self.stretches))

    def answer(self, site: View) -> GroupSums:
        held_out = site.validation(self.purpose)
        eta = held_out.predictor(self.b)
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
