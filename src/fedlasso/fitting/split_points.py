"""Points of several splits and of all rows: one round trip asks about models on all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedlasso.errors import RefusalCode, Refused
from fedlasso.federation import Prepared, Request
from fedlasso.fitting.dialogue import Dialogue
from fedlasso.fitting.fold_models import FoldModels
from fedlasso.fitting.points import Point, PointSet, Proposal
from fedlasso.fitting.validation import pool_errors
from fedlasso.numerics import Array, Penalty
from fedlasso.numerics.response import Places
from fedlasso.numerics.triangles import unpack
from fedlasso.sites import (
    INTERCEPT,
    CurvatureAt,
    DeviancesAt,
    EffectAt,
    HeldOutErrors,
    Scaling,
    TrialsAt,
    Viewed,
)

# Second derivatives of all columns up to so many, else of those in the model or almost steep
# enough for it: at most so many vectors of p numbers.
NARROW = 64
STEEP = 0.9
CURVATURE = 20
TINY = 1e-300


@dataclass(eq=False)
class JudgedSplit:
    """One split: points on its training rows, and the views of the rows it holds out.

    `judge` is that view without intercepts of the sites' own, and `effects`
    whether fits have those.
    """

    name: str
    points: PointSet
    judge: Viewed
    effects: bool
    scaling: Scaling = field(init=False)

    @property
    def rows(self) -> float:
        """How many rows it holds out."""
        return float(self.scaling.held_out[0])

    def shift(self, point: Point) -> Array:
        """Return a model for rows of no known site: with the mean of the sites' intercepts."""
        b = point.b
        ends_in_ones = self.judge.columns[-1] == INTERCEPT
        return np.append(b[:-1], point.effect) if ends_in_ones else b


@dataclass(frozen=True, eq=False)
class Asked:
    """Models (columns) to ask about on some rows.

    Second derivatives are asked in `columns`, if any, at the model `bent`.
    """

    points: PointSet
    models: Array
    columns: Places | None = None
    bent: int = 0

    @property
    def curved(self) -> Array:
        return np.ascontiguousarray(self.models[:, self.bent])


@dataclass(eq=False)
class SplitPoints:
    """Points on the training rows of splits and on all rows.

    Attributes
    ----------
    splits : the splits that hold out rows
    whole : points on all rows
    form : the penalty at strength one
    others : points on rows of which none are held out
    bent : columns of which second derivatives were asked
    no_moments : whether a site refuses any further second derivatives
    """

    splits: list[JudgedSplit]
    whole: PointSet
    form: Penalty
    others: list[PointSet] = field(default_factory=list)
    bent: Places = field(default_factory=lambda: np.arange(0), init=False)
    no_moments: bool = field(default=False, init=False)

    @property
    def everywhere(self) -> list[PointSet]:
        return [*(split.points for split in self.splits), *self.others, self.whole]

    @property
    def curved(self) -> list[Point]:
        """Points on all rows with second derivatives."""
        return [point for point in self.whole.known if point.H is not None]

    @property
    def fractions(self) -> Array:
        """Fractions of the held-out rows that each split holds out."""
        rows = np.array([split.rows for split in self.splits])
        return np.asarray(rows / rows.sum())

    def best(self, strength: float) -> list[Point]:
        """Return the best point of every split at a penalty."""
        penalty = self.form.at(strength)
        return [split.points.best(penalty) for split in self.splits]

    def fold_models(self, strength: float) -> FoldModels | None:
        """Return the fits at a penalty as models of folds, if the splits are all folds."""
        models = []
        for split, point in zip(self.splits, self.best(strength), strict=True):
            coefficients, intercept = split.scaling.original(point.b)
            models.append((coefficients, intercept + point.effect))
        return FoldModels.of_splits([split.name for split in self.splits], models)

    def try_at(
        self, wanted: Mapping[int, Sequence[Penalty]], bent: int | None, all_columns: bool
    ) -> Dialogue[None]:
        """Ask about the next models at penalties, wanted for sets of points by their place.

        Second derivatives of all rows are asked at their model `bent`, unless that is None.
        """
        trials: list[list[Proposal]] = []
        asked: list[Asked] = []
        for place, penalties in wanted.items():
            points = self.everywhere[place]
            own = [points.propose(penalty, self.curved) for penalty in penalties]
            trials.append(own)
            one = Asked(points, np.column_stack([trial.b for trial in own]))
            if points is self.whole and bent is not None and not self.no_moments:
                columns = self.choose_columns(own[bent], all_columns)
                self.bent = np.union1d(self.bent, columns)
                one = replace(one, columns=columns if columns.size else None, bent=bent)
            asked.append(one)
        found = yield from self.ask(asked)
        for own, points_found in zip(trials, found, strict=True):
            for trial, point in zip(own, points_found, strict=True):
                trial.points.add(trial, point)

    @property
    def half_the_rows(self) -> int:
        """Half the rows of the smallest site: rows must be twice the columns of second derivatives.

        At least one column is asked everywhere.
        """
        return max(min(self.whole.problem.sizes) // 2, 1)

    @property
    def most_columns(self) -> int:
        """Maximum number of columns of second derivatives, unless all columns are few."""
        return min(self.half_the_rows, int(np.sqrt(2 * CURVATURE * self.whole.problem.p)))

    def choose_columns(self, trial: Proposal | None, all_columns: bool = True) -> Places:
        """Return the columns whose second derivatives are asked.

        Those of few columns are all asked, if wanted; otherwise those in the model or near it.
        """
        p = self.whole.problem.p
        if p <= min(NARROW, self.half_the_rows) and all_columns:
            return np.arange(p)
        most = self.most_columns
        free = self.form.free(p)
        if trial is None:
            return self._within_room(np.flatnonzero(free)[:most])
        steep = trial.penalty.steepness(trial.base.slopes)
        rank = np.where(trial.b != 0, 1.0 + np.abs(trial.b), np.minimum(steep, 1.0))
        rank = np.where(free, np.inf, rank)
        wanted = np.flatnonzero(rank >= STEEP)
        steepest = wanted[np.argsort(-rank[wanted], kind="stable")]
        return np.sort(self._within_room(steepest[:most]))

    def _within_room(self, columns: Places) -> Places:
        """Leave out the last columns if with all asked before they are more than half the rows."""
        new = ~np.isin(columns, self.bent)
        return columns[~new | (np.cumsum(new) <= self.half_the_rows - self.bent.size)]

    def _split_of(self, points: PointSet) -> JudgedSplit | None:
        return next((split for split in self.splits if split.points is points), None)

    def ask(self, asked: Sequence[Asked]) -> Dialogue[list[list[Point]]]:
        """Ask about models on several sets of rows, in one round trip.

        Sites that have sent second moments of other columns before may refuse further ones; the fit
        then goes on by gradients.
        """
        try:
            return (yield from self._ask_once(asked))
        except Refused as refusal:
            bent = any(one.columns is not None for one in asked)
            if refusal.code is not RefusalCode.NO_MOMENTS or not bent:
                raise
        self.no_moments = True
        return (yield from self._ask_once([replace(one, columns=None) for one in asked]))

    def _ask_once(self, asked: Sequence[Asked]) -> Dialogue[list[list[Point]]]:
        questions: list[Prepared] = []
        owed: list[tuple[JudgedSplit, int]] = []
        for place, one in enumerate(asked):
            ledger = one.points.ledger
            questions.append(ledger.prepare(TrialsAt(one.models)))
            if one.columns is not None:
                questions.append(ledger.prepare(CurvatureAt(one.curved, one.columns, 0)))
            split = self._split_of(one.points)
            if split is None:
                continue
            if split.effects:
                owed.append((split, place))
                questions += [ledger.prepare(EffectAt(b.copy())) for b in one.models.T]
            else:
                questions.append(split.judge.prepare(self._ask_errors(one.models)))
        answers = iter((yield questions))
        found = [self._read(one, answers) for one in asked]
        if owed:
            # Predictions for new rows have the mean of the sites' intercepts, known only now.
            later = [
                split.judge.prepare(
                    self._ask_errors(np.column_stack([split.shift(p) for p in found[place]]))
                )
                for split, place in owed
            ]
            sums = yield later
            for (split, place), own in zip(owed, sums, strict=True):
                self._take_errors(split, found[place], own)
        return found

    def _read(self, one: Asked, answers: Iterator[Any]) -> list[Point]:
        """Return the points that answers describe."""
        m = one.points.problem.m
        sums = next(answers)
        each = zip(one.models.T, sums.losses, sums.gradient.T, sums.duals.T, strict=True)
        own = [
            Point(b.copy(), float(loss) / m, slopes / m, duals / m)
            for b, loss, slopes, duals in each
        ]
        if one.columns is not None:
            point = own[one.bent]
            point.columns = one.columns
            point.H = unpack(next(answers).block / m, one.columns.size, lower=True)
        split = self._split_of(one.points)
        if split is None:
            return own
        if not split.effects:
            self._take_errors(split, own, next(answers))
            return own
        for point in own:
            sent = next(answers)
            point.effect = float(sent.effects / sent.weight) if sent.weight else 0.0
        return own

    def _ask_errors(self, models: Array) -> Request[Any]:
        """Return the question for held-out errors; a single split needs their spread as well."""
        if len(self.splits) == 1:
            return HeldOutErrors(models, "penalty")
        return DeviancesAt(models, "penalty")

    def _take_errors(self, split: JudgedSplit, points: Sequence[Point], sums: Any) -> None:
        for point, total in zip(points, sums.errors, strict=True):
            point.error = float(total) / max(split.rows, 1.0)
        if len(self.splits) == 1:
            spread = pool_errors(sums, np.zeros(len(points))).se
            for point, se in zip(points, spread, strict=True):
                point.se = float(se)
