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

    `judge` is that view without intercepts of the sites' own, and `effects` whether fits have
    those: their mean at the first model is about `effect`. The errors of `guessed` points are of
    models with a guess of it.
    """

    name: str
    points: PointSet
    judge: Viewed
    effects: bool
    scaling: Scaling = field(init=False)
    effect: float = 0.0
    guessed: list[Point] = field(default_factory=list)

    @property
    def rows(self) -> float:
        """How many rows it holds out."""
        return float(self.scaling.held_out[0])

    def shift(self, b: Array, effect: float) -> Array:
        """Return a model for rows of no known site: with the mean of the sites' intercepts."""
        ends_in_ones = self.judge.columns[-1] == INTERCEPT
        return np.append(b[:-1], effect) if ends_in_ones else b

    def guess_effect(self, b: Array) -> float:
        """Return the mean of the sites' intercepts at the nearest model."""
        known = self.points.known
        if not known:
            return self.effect
        return min(known, key=lambda point: float(np.abs(point.b - b).sum())).effect


@dataclass(frozen=True, eq=False)
class Asked:
    """Models (columns) to ask about on some rows.

    `blocks` has the columns of second derivatives, by the place of the model that they are asked
    at.
    """

    points: PointSet
    models: Array
    blocks: Mapping[int, Places] = field(default_factory=dict)


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
    def guessed(self) -> bool:
        """Whether any error is of a model with a guess of the mean of the sites' intercepts."""
        return any(split.guessed for split in self.splits)

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
        self, wanted: Mapping[int, Sequence[Penalty]], bent: Sequence[int], all_columns: bool
    ) -> Dialogue[None]:
        """Ask about the next models at penalties, wanted for sets of points by their place.

        Second derivatives of all rows are asked at their models `bent`.
        """
        trials: list[list[Proposal]] = []
        asked: list[Asked] = []
        for place, penalties in wanted.items():
            points = self.everywhere[place]
            own = [points.propose(penalty, self.curved) for penalty in penalties]
            trials.append(own)
            one = Asked(points, np.column_stack([trial.b for trial in own]))
            if points is self.whole and not self.no_moments:
                blocks = {}
                for at in bent:
                    columns = self.choose_columns(own[at], all_columns)
                    self.bent = np.union1d(self.bent, columns)
                    if columns.size:
                        blocks[at] = columns
                one = replace(one, blocks=blocks)
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
            bent = any(one.blocks for one in asked)
            if refusal.code is not RefusalCode.NO_MOMENTS or not bent:
                raise
        self.no_moments = True
        return (yield from self._ask_once([replace(one, blocks={}) for one in asked]))

    def _ask_once(self, asked: Sequence[Asked]) -> Dialogue[list[list[Point]]]:
        questions: list[Prepared] = []
        for one in asked:
            ledger = one.points.ledger
            questions.append(ledger.prepare(TrialsAt(one.models)))
            for at, columns in one.blocks.items():
                b = np.ascontiguousarray(one.models[:, at])
                questions.append(ledger.prepare(CurvatureAt(b, columns, 0)))
            split = self._split_of(one.points)
            if split is not None and split.effects:
                questions += [ledger.prepare(EffectAt(b.copy())) for b in one.models.T]
        judged = [split for split in self.splits if self._models_to_judge(split, asked)]
        for split in judged:
            models = np.column_stack(self._models_to_judge(split, asked))
            questions.append(split.judge.prepare(self._ask_errors(models)))
        answers = iter((yield questions))
        found = [self._read(one, answers) for one in asked]
        for split in judged:
            new = [
                point
                for one, own in zip(asked, found, strict=True)
                if one.points is split.points
                for point in own
            ]
            self._take_errors(split, [*new, *split.guessed], next(answers))
            split.guessed = new if split.effects else []
        return found

    def _models_to_judge(self, split: JudgedSplit, asked: Sequence[Asked]) -> list[Array]:
        """Return the models whose held-out errors are asked: new ones, and those only guessed.

        Predictions for new rows have the mean of the sites' intercepts. That is known one round
        trip later, and until then it is about that of the nearest model.
        """
        new = [b for one in asked if one.points is split.points for b in one.models.T]
        if not split.effects:
            return new
        guesses = [split.shift(b, split.guess_effect(b)) for b in new]
        return [*guesses, *(split.shift(point.b, point.effect) for point in split.guessed)]

    def _read(self, one: Asked, answers: Iterator[Any]) -> list[Point]:
        """Return the points that answers describe."""
        m = one.points.problem.m
        sums = next(answers)
        each = zip(one.models.T, sums.losses, sums.gradient.T, sums.duals.T, strict=True)
        own = [
            Point(b.copy(), float(loss) / m, slopes / m, duals / m)
            for b, loss, slopes, duals in each
        ]
        for at, columns in one.blocks.items():
            own[at].columns = columns
            own[at].H = unpack(next(answers).block / m, columns.size, lower=True)
        split = self._split_of(one.points)
        for point in own if split is not None and split.effects else ():
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
