"""Questions about the predictions of fold models, each for the rows that it was not fitted to.

A question has one model per fold; without a split, one model for all rows. Replies are sums over
all rows, so no further subset of rows is summed over.
"""

from dataclasses import dataclass

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Disclosure, Models, Positive, Reply, Request, Shapes, Signed
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes, power_above
from fedlasso.federation.messages import ERRORS, Count, R, Shifts, Split
from fedlasso.numerics import Array, Loss, Response
from fedlasso.sites import recalibration
from fedlasso.sites.cells import (
    CELL_ROWS,
    EVENT_STEP,
    SLOTS,
    STRETCHES,
    THIRDS,
    count_cells,
    even,
    place_times,
    rank_ends,
    round_counts,
    round_sums,
    weigh_ranks,
)
from fedlasso.sites.held_out import FURTHER, round_roughly, rows_power, sum_errors
from fedlasso.sites.ranks import class_pairs, spread_pairs, survival_pairs
from fedlasso.sites.recalibration import derive, rests_on_many
from fedlasso.sites.site import View


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

    @property
    def has_both(self) -> bool:
        """Whether enough rows are of either class, or have an event."""
        events = float((self.observed > 0).sum())
        others = len(self.eta) if self.loss.survival else len(self.eta) - events
        return min(events, others) >= CELL_ROWS

    def enough_pairs(self) -> tuple[Array, Array]:
        """Return every row's pairs, or none if a few rows would be in all of them."""
        nothing = np.zeros(len(self.eta))
        return self.pairs() if self.has_both else (nothing, nothing)


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


def shifted_curvature(site: View, b: Array, shift: float, slope: float = 1.0) -> Array:
    """Return the curvature of all rows at a shift plus `slope` times a linear predictor."""
    design, response = site.training.unweighted
    eta = response.offset + shift + slope * design.product(np.ascontiguousarray(b))
    return site.training.loss.row_curvature(eta, response)


class PredictionSums(Reply):
    """Rows, sums of errors of the models and of those without columns, and of survival times."""

    rows: Count[int]
    errors: Positive[float]
    empty: Positive[float]
    times: Positive[float]


class PredictionErrors(AboutFolds[PredictionSums]):
    """Errors of fold models, and of a model without columns with the intercept `empty`."""

    discloses = Disclosure(
        f"errors of models on rows that they were not fitted to: sums of {ERRORS}; and the sum of "
        "survival times",
        held_out=True,
    )
    empty: Signed = 0.0

    def answer(self, site: View) -> PredictionSums:
        found = self.predict(site, self.empty)
        errors, empty = (max(sum_errors(found.loss, each), 0.0) for each in found.errors)
        times = float(found.response.times.sum()) if found.loss.survival else 0.0
        return PredictionSums(site.rows, errors, empty, times)

    def expects(self, p: int) -> Shapes:
        return {}

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        size = self.size(magnitudes, self.empty)
        squares = Bound(2 * size + FURTHER, coarse=COARSE + FURTHER)
        return {
            "rows": Bound(rows_power(magnitudes)),
            "errors": squares,
            "empty": squares,
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
        found = self.predict(site)
        slopes, curvature = derive(found.loss, found.scores, found.response, self.at)
        for k, (shift, slope) in enumerate(self.at):
            if not self._rests_on_many(site, shift, slope):
                slopes[k] = 0.0
                curvature[k] = 0.0
        return RecalibrationSums(slopes, curvature)

    def _rests_on_many(self, site: View, shift: float, slope: float) -> bool:
        """Return whether each recalibrated model by itself has its curvature in enough rows."""
        if site.training.loss.quadratic:
            return True
        models = zip(self.models.T, shift + slope * self.shifts, strict=True)
        return all(
            rests_on_many(shifted_curvature(site, b, own, slope), recalibration.EFFECTIVE_ROWS)
            for b, own in models
        )

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
    """Per twentieth of the risk: number of rows, sums of responses and of predictions.

    A site with few rows counts several twentieths in the middle one. `spread` is the sum of squared
    differences between each row's error and `ratio` times that without columns, `rank_spread` that
    of concordant pairs and `concordance` times the comparable ones. Both are rounded to a quarter
    power of two.
    """

    rows: Count[Array]
    observed: Array
    expected: Array
    spread: Positive[float]
    rank_spread: Positive[float]


class ScoreRanges(AboutFolds[ScoreCounts]):
    """Sums over ranks of the linear predictor at each site, cut by the number of rows alone.

    Cumulative sums are rounded to what more than one row adds. A `concordance` of zero asks for no
    spread of pairs.
    """

    discloses = Disclosure(
        "sums of responses and predictions over twentieths of a site's rows, ranked by models, at "
        "least 5 rows each and rounded to what more than one row adds; and roughly how far errors "
        "and ranks differ",
        held_out=True,
        ranks=True,
    )
    empty: Signed = 0.0
    ratio: float = 1.0
    concordance: float = 0.0

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("rows", "observed", "expected"), (SLOTS,))

    def answer(self, site: View) -> ScoreCounts:
        found = self.predict(site, self.empty)
        ends = rank_ends(site.rows, count_cells(site.rows, least_rows(site)))
        cells = list(weigh_ranks(found.scores, ends))
        covered = SLOTS // len(cells)
        rows = np.diff(ends)

        def add(values: Array) -> Array:
            sums = np.array([own @ values for own in cells])
            if np.isin(values, (0.0, 1.0)).all():
                return into_slots(round_counts(sums, EVENT_STEP, rows))
            return into_slots(round_sums(sums, rows, values))

        def into_slots(sums: Array) -> Array:
            slots = np.zeros(SLOTS)
            slots[covered // 2 :: covered] = sums
            return slots

        errors, empty = found.errors
        spread = round_roughly(float(((errors - self.ratio * empty) ** 2).sum()))
        ranked = 0.0
        if self.concordance > 0:
            comparable, concordant = found.enough_pairs()
            ranked = round_roughly(spread_pairs(comparable, concordant, self.concordance))
        return ScoreCounts(into_slots(rows), add(found.observed), add(found.means), spread, ranked)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        # Predictions are linear predictors, or no larger than slopes and responses.
        size = magnitudes.slopes if magnitudes.curved else self.size(magnitudes)
        sums = Bound(max(size, magnitudes.response) + magnitudes.rows + FURTHER)
        errors = Bound(4 * self.size(magnitudes, self.empty) + 2 * FURTHER)
        rows = rows_power(magnitudes)
        return {
            "rows": Bound(rows),
            "observed": sums,
            "expected": sums,
            "spread": errors,
            "rank_spread": Bound(3 * rows),
        }


class PairSums(Reply):
    """Pairs of rows with a known order, and those in the right order."""

    comparable: Positive[float]
    concordant: Positive[float]


class PairsAt(AboutFolds[PairSums]):
    """Concordance of linear predictors and responses within each site with rows of both classes."""

    discloses = Disclosure(
        "how many pairs of rows models have in the right order, at sites with at least 5 rows of "
        "either class or 5 events",
        held_out=True,
        ranks=True,
    )

    def expects(self, p: int) -> Shapes:
        return {}

    def answer(self, site: View) -> PairSums:
        comparable, concordant = (float(own.sum()) / 2 for own in self.predict(site).enough_pairs())
        return PairSums(comparable, concordant)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return dict.fromkeys(("comparable", "concordant"), Bound(2 * rows_power(magnitudes)))


class GroupSums(Reply):
    """Per third of the risk and interval of time: numbers of events, and of censored rows."""

    events: Positive[Array]
    censored: Positive[Array]


class GroupsAt(AboutFolds[GroupSums]):
    """Events over time of rows at low, middle and high risk: thirds of each site's rows.

    Intervals have the `length` rounded up to a power of two, and the last one is open. Rows that
    have left are counted in fives, and events in pairs.
    """

    discloses = Disclosure(
        "how many rows of thirds of a site's rows, ranked by models, had an event, or were "
        "censored, in each of some intervals of time, counted in fives and events in pairs",
        held_out=True,
        ranks=True,
    )
    length: float = 1.0

    def expects(self, p: int) -> Shapes:
        return dict.fromkeys(("events", "censored"), (THIRDS, STRETCHES))

    def answer(self, site: View) -> GroupSums:
        found = self.predict(site)
        least = least_rows(site)
        when = place_times(found.response.times, self.length)
        sums = np.zeros((2, THIRDS, STRETCHES))
        # Thirds of a few rows are not sent.
        if site.rows >= THIRDS * least:
            thirds = weigh_ranks(found.scores, rank_ends(site.rows, THIRDS))
            for third, own in enumerate(thirds):
                rows, events = (
                    np.bincount(when, own * kind, STRETCHES).astype(np.float64)
                    for kind in (np.ones(site.rows), found.response.events)
                )
                gone = round_counts(rows, float(least), np.full(STRETCHES, np.inf))
                known = round_counts(events, EVENT_STEP, even(gone), whole=False)
                sums[:, third] = known, gone - known
        return GroupSums(*sums)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return dict.fromkeys(("events", "censored"), Bound(rows_power(magnitudes), words=1))


def least_rows(site: View) -> int:
    """Return the minimum rows of a cell at a site: that of its policy, and never fewer than 5."""
    return max(CELL_ROWS, site.draw.cell_rows)
