"""Questions about the predictions of fold models, each for the rows that it was not fitted to.

A question has one model per fold; without a split, one model for all rows. Replies are sums over
all rows, so no further subset of rows is summed over.
"""

from dataclasses import dataclass

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Disclosure, Models, Positive, Reply, Request, Shapes, Signed, Steps
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes, power_above
from fedlasso.federation.messages import Count, R, Shifts, Split
from fedlasso.numerics import Array, Loss, Response
from fedlasso.sites.held_out import FURTHER, round_roughly, rows_power
from fedlasso.sites.ranks import (
    FEWEST,
    class_pairs,
    join_few,
    square_pairs,
    survival_pairs,
)
from fedlasso.sites.recalibration import LARGEST_SLOPE, derive
from fedlasso.sites.site import View

# Ranges of the linear predictor, over so many standard deviations to either side.
RANGES = 64
SPREAD = 3.0


@dataclass(frozen=True, eq=False)
class Predicted:
    """Rows with their linear predictors, and those of a model without columns."""

    eta: Array
    empty: Array
    response: Response
    loss: Loss

    @property
    def scores(self) -> Array:
        """The linear predictors without offsets."""
        return self.eta - self.response.offset

    @property
    def observed(self) -> Array:
        """The responses; for survival times, the events."""
        return self.loss.disclosed_response(self.response.y)

    @property
    def means(self) -> Array:
        """The predictions: expected values, probabilities, rates or relative risks."""
        return self.loss.mean(self.eta)

    @property
    def has_classes(self) -> bool:
        """Whether all responses are 0 or 1."""
        return not self.loss.survival and bool(np.isin(self.response.y, (0.0, 1.0)).all())

    @property
    def errors(self) -> tuple[Array, Array]:
        """The deviance of each row, and that of a model without columns."""
        model, empty = (self.loss.deviance(eta, self.response) for eta in (self.eta, self.empty))
        return model, empty

    def pairs(self) -> tuple[Array, Array]:
        """Return every row's comparable and concordant pairs."""
        if self.loss.survival:
            return survival_pairs(self.eta, self.response)
        return class_pairs(self.scores, self.response.y)


class AboutFolds(Request[R]):
    """A question about the predictions of one model per fold, in the columns of a view.

    `shifts` are added to the linear predictors of each model.
    """

    kind = "validation"
    models: Models
    shifts: Shifts
    split: Split = ""

    def predict(self, site: View, empty: float = 0.0) -> Predicted:
        """Return every row's linear predictor by the model of its fold.

        That of a model without columns is `empty`.
        """
        design, response = site.training.unweighted
        parts = site.draw.fold_rows(self.split, site.rows)
        if len(parts) != len(self.shifts):
            raise FedLassoError(f"{len(self.shifts)} models for {len(parts)} folds; give one each")
        eta = response.offset.copy()
        for own, b, shift in zip(parts, self.models.T, self.shifts, strict=True):
            eta[own] += (design.product(np.ascontiguousarray(b)) + shift)[own]
        return Predicted(eta, response.offset + empty, response, site.training.loss)

    def size(self, magnitudes: Magnitudes, empty: float = 0.0) -> int:
        """Return the exponent of a power of two above the norm of the linear predictors."""
        largest = float(np.abs(np.append(self.shifts, empty)).max())
        shifted = power_above(largest) + magnitudes.rows
        return max(magnitudes.reach, shifted, magnitudes.slopes) + 2


class PredictionSums(Reply):
    """Rows, and sums of errors of the models and of those without columns.

    Also sums of linear predictors, of their squares, and of survival times.
    """

    rows: Count[int]
    errors: Positive[float]
    empty: Positive[float]
    scores: float
    squares: Positive[float]
    times: Positive[float]


class PredictionErrors(AboutFolds[PredictionSums]):
    """Errors of fold models, and of a model without columns with the intercept `empty`."""

    discloses = Disclosure(
        "errors of models on rows that they were not fitted to: sums of squares; and sums of "
        "predictions, their squares and survival times",
        held_out=True,
    )
    empty: Signed = 0.0

    def answer(self, site: View) -> PredictionSums:
        found = self.predict(site, self.empty)
        errors, empty = (max(float(each.sum()), 0.0) for each in found.errors)
        scores = found.scores
        times = float(found.response.times.sum()) if found.loss.survival else 0.0
        sums = (float(scores.sum()), float(scores @ scores), times)
        return PredictionSums(site.rows, errors, empty, *sums)

    def expects(self, p: int) -> Shapes:
        return {}

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        size = self.size(magnitudes, self.empty)
        squares = Bound(2 * size + FURTHER, coarse=COARSE + FURTHER)
        return {
            "rows": Bound(rows_power(magnitudes)),
            "errors": squares,
            "empty": squares,
            "scores": Bound(magnitudes.rows + size, coarse=COARSE),
            "squares": squares,
        }


class RecalibrationSums(Reply):
    """Gradients and second derivatives of the loss in three intercepts and slopes."""

    slopes: Array
    curvature: Array


class RecalibrationAt(AboutFolds[RecalibrationSums]):
    """Derivatives of the loss in intercept and slope of the linear predictor, at three points.

    They are `intercept` and `slope`, `large` and a slope of one, `empty` and a slope of zero.
    """

    discloses = Disclosure(
        "fifteen sums over rows of functions of models' predictions", held_out=True
    )
    intercept: Signed = 0.0
    slope: Signed = 1.0
    large: Signed = 0.0
    empty: Signed = 0.0

    def expects(self, p: int) -> Shapes:
        return {"slopes": (3, 2), "curvature": (3, 3)}

    @property
    def at(self) -> Array:
        return np.array([[self.intercept, self.slope], [self.large, 1.0], [self.empty, 0.0]])

    def answer(self, site: View) -> RecalibrationSums:
        if not abs(self.slope) <= LARGEST_SLOPE:
            raise FedLassoError(f"the slope is beyond {LARGEST_SLOPE:g}")
        found = self.predict(site)
        return RecalibrationSums(*derive(found.loss, found.scores, found.response, self.at))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        size = max(self.size(magnitudes), magnitudes.rows)
        shifted = power_above(float(np.abs(self.at[:, 0]).max())) + magnitudes.rows
        own = max(power_above(abs(self.slope)) + size, shifted)
        slopes = magnitudes.slopes if magnitudes.curved else own + 1
        curvature = magnitudes.slopes if magnitudes.curved else 0
        return {
            "slopes": Bound(slopes + size + FURTHER, coarse=COARSE + FURTHER),
            "curvature": Bound(curvature + 2 * size + FURTHER, coarse=COARSE + FURTHER),
        }


class ScoreCounts(Reply):
    """Per range of linear predictors: number of rows, sums of responses and of predictions.

    `spread` is the sum of squared differences between each row's error and `ratio` times that
    without columns, rounded to a quarter power of two.
    """

    rows: Count[Array]
    observed: Array
    expected: Array
    spread: Positive[float]


class ScoreRanges(AboutFolds[ScoreCounts]):
    """Sums in ranges of the linear predictor; ranges with few rows join their neighbours.

    Cuts are multiples of a power of two, about as far apart as `spread` and `centre` need.
    """

    discloses = Disclosure(
        "how many rows models put into each of some ranges, none of them with only a few, the sums "
        "of their responses and predictions, and roughly how far errors differ",
        held_out=True,
    )
    centre: Signed = 0.0
    spread: float = 1.0
    empty: Signed = 0.0
    ratio: float = 1.0

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("rows", "observed", "expected"), (RANGES,))

    def answer(self, site: View) -> ScoreCounts:
        found = self.predict(site, self.empty)
        place = np.searchsorted(cut_scores(self.centre, self.spread), found.scores, "right")
        place = join_few(np.bincount(place, minlength=RANGES).astype(np.float64))[place]

        def add(numbers: Array) -> Array:
            return np.bincount(place, numbers, minlength=RANGES).astype(np.float64)

        errors, empty = found.errors
        spread = round_roughly(float(((errors - self.ratio * empty) ** 2).sum()))
        return ScoreCounts(add(np.ones(len(place))), add(found.observed), add(found.means), spread)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Predictions are linear predictors, or no larger than slopes and responses.
        size = magnitudes.slopes if magnitudes.curved else self.size(magnitudes)
        sums = Bound(max(size, magnitudes.response) + magnitudes.rows + FURTHER)
        errors = Bound(4 * self.size(magnitudes, self.empty) + 2 * FURTHER)
        counts = Bound(rows_power(magnitudes))
        return {"rows": counts, "observed": sums, "expected": sums, "spread": errors}


def cut_scores(centre: float, spread: float) -> Array:
    """Return the cuts between ranges of linear predictors."""
    width = 2.0 ** np.ceil(np.log2(2 * SPREAD * max(spread, 1e-9) / RANGES))
    first = np.rint(centre / width) - RANGES // 2 + 1
    return np.asarray(width * (first + np.arange(RANGES - 1)))


class PairSums(Reply):
    """Pairs of rows with a known order, those in the right order, and sums of squares per row."""

    comparable: Positive[float]
    concordant: Positive[float]
    squares: Positive[Array]


class PairsAt(AboutFolds[PairSums]):
    """Concordance of linear predictors and responses within each site."""

    discloses = Disclosure(
        "how many pairs of rows models have in the right order, and sums of squares of these "
        "numbers per row",
        held_out=True,
    )

    def expects(self, p: int) -> Shapes:
        return {"squares": (3,)}

    def answer(self, site: View) -> PairSums:
        pairs = self.predict(site).pairs()
        comparable, concordant = (float(own.sum()) / 2 for own in pairs)
        return PairSums(comparable, concordant, square_pairs(*pairs))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        rows = rows_power(magnitudes)
        pairs = dict.fromkeys(("comparable", "concordant"), Bound(2 * rows))
        return {**pairs, "squares": Bound(3 * rows)}


class GroupSums(Reply):
    """Per group of rows and interval of time: numbers of events, and of censored rows."""

    events: Positive[Array]
    censored: Positive[Array]


class GroupsAt(AboutFolds[GroupSums]):
    """Events over time of rows at low, middle and high risk.

    The groups are cut at two linear predictors; there are `stretches` of time of `length` each, the
    last one open. Intervals with few rows join their neighbours.
    """

    discloses = Disclosure(
        "how many rows of three groups had an event, or were censored, in each of some intervals "
        "of time, none of them with only a few",
        held_out=True,
    )
    lower: Signed = 0.0
    upper: Signed = 0.0
    length: float = 1.0
    stretches: Steps = 1

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("events", "censored"), (3, self.stretches))

    def answer(self, site: View) -> GroupSums:
        found = self.predict(site)
        groups = (found.scores > self.lower).astype(np.int64) + (found.scores > self.upper)
        when = np.floor(found.response.times / self.length)
        when = np.clip(when, 0, self.stretches - 1).astype(np.int64)
        sums = np.zeros((2, 3, self.stretches))
        for group in range(3):
            own = groups == group
            counts = np.bincount(when[own], minlength=self.stretches).astype(np.float64)
            # A group of a few rows is not sent.
            if counts.sum() >= FEWEST:
                place = join_few(counts)[when[own]]
                for kind, events in enumerate((found.response.events, ~found.response.events)):
                    chosen = place[events[own]]
                    sums[kind, group] = np.bincount(chosen, minlength=self.stretches)
        return GroupSums(*sums)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return dict.fromkeys(("events", "censored"), Bound(rows_power(magnitudes)))
