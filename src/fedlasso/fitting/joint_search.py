"""A search for the penalty on all splits at once: one round trip asks about many models.

Penalties go down by halves from the largest useful one. Every round trip tries the next few of them
on every split, each from the best point so far, and asks for held-out errors too. A fit counts as
soon as its duality gap is small against what decides: the standard error of the held-out error, or
the decrease of the error at this penalty. Second derivatives are asked of all rows, every other
round trip, and gradients correct them for the splits. When the error rises, the penalties beside
the best one are tried, and the fit to all rows at the chosen penalty is completed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fedlasso.errors import CannotFit, Refused, SameResponse
from fedlasso.federation import Prepared, Request, ask_together, metered
from fedlasso.fitting.budget import LAST_TRIPS, Budget
from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.fold_models import FoldModels
from fedlasso.fitting.gradient_tuning import curve_of
from fedlasso.fitting.points import Point, PointSet, Proposal
from fedlasso.fitting.tuning import CandidateErrors, average_folds
from fedlasso.fitting.validation import TOO_FEW, Curve, Rule, pool_errors
from fedlasso.numerics import Array, Penalty, find_loss, one_thread
from fedlasso.numerics.response import Places
from fedlasso.numerics.triangles import unpack
from fedlasso.procedures import Newton, Problem
from fedlasso.procedures.newton_state import NewtonState
from fedlasso.sites import (
    INTERCEPT,
    CurvatureAt,
    DeviancesAt,
    EffectAt,
    HeldOutErrors,
    Scaling,
    Standardiser,
    TrialsAt,
    Viewed,
    with_shared_intercept,
)

# Ratio of one penalty of the path to the one before, and of the last to the first.
STEP = 0.5
SMALLEST = 1e-4
# Penalties that a round trip tries on each split, and on all rows.
WINDOW = 3
AHEAD = 2
# A fit counts if its gap, on the scale of errors, is at most this fraction of the standard error;
# or, where nothing is decided, of the decrease of the error.
CLOSE = 0.2
DECIDED = 0.1
DROP = 0.3
# Mean gap of all splits; a single one may be so many times as large.
WORST = 4.0
# A path ends after so many errors above the smallest, or if the last two penalties lower it by less
# than this fraction of its standard error.
RISEN = 2
FLAT = 0.05
# Second derivatives of all columns up to so many, else of those in the model or almost steep
# enough for it: at most so many vectors of p numbers.
NARROW = 64
STEEP = 0.9
CURVATURE = 20
# Slopes of unpenalised columns that the first models may have, against the steepest of all.
EMPTY = 0.02
# Penalties closer than this ratio have none between them.
BETWEEN = 0.6
# Round trips that complete the fit to all rows before it is left to Newton, after a search and
# without one.
POLISHED = 6
COMPLETED = 12
TINY = 1e-300
# Round trips at one penalty after which the path ends there, and of a search in all.
STUCK = 6
MOST_TRIPS = 60
# What progress shows: round trips of a usual search, and those after the error has risen. Fewer
# than the least cannot choose.
USUAL = 12
AT_THE_END = 3
JOINT_TRIPS = 12
Send = Callable[[Sequence[Prepared]], tuple[Any, ...]]


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
    """Models (columns) to ask about on some rows, and columns for second derivatives, if any."""

    points: PointSet
    models: Array
    columns: Places | None

    @property
    def second(self) -> int:
        """Place of the model whose second derivatives are asked: the second, or the only one."""
        return min(1, int(self.models.shape[1]) - 1)

    @property
    def curved(self) -> Array:
        return np.ascontiguousarray(self.models[:, self.second])


@dataclass(eq=False)
class JointSearch:
    """A search under way.

    Attributes
    ----------
    splits : the splits that choose, none where the penalty is given
    whole : points on all rows that are fitted in the end
    form : the penalty at strength one
    budget : what each site may send
    tol : relative gap of the fit to all rows
    rule : how the penalty is chosen
    trips, cut, risen : round trips so far, and whether what may be sent or a rising error ended
        the search
    largest : the smallest useless penalty
    """

    splits: list[JudgedSplit]
    whole: PointSet
    form: Penalty
    budget: Budget
    tol: float
    rule: Rule
    trips: int = 0
    cut: bool = False
    risen: bool = False
    largest: float = 0.0
    # Penalties of the path, and those between them that are tried beside the chosen one.
    _grid: list[float] = field(default_factory=list)
    _between: set[float] = field(default_factory=set)

    @classmethod
    def open(
        cls,
        standardiser: Standardiser,
        names: Sequence[str],
        form: Penalty,
        budget: Budget,
        tol: float,
        rule: Rule,
    ) -> JointSearch:
        """Define the views of splits and of all rows, and ask about the model without columns."""
        federation = standardiser.federation
        if names:
            budget.require_trips(JOINT_TRIPS, "choosing a penalty")
        before = standardiser.vectors
        measured = standardiser.measure([*names, ""], shared=True)
        budget.spend(standardiser.vectors - before)
        views = {split: view for split, view in measured.items() if isinstance(view, Viewed)}
        judges = {split: with_shared_intercept(view) for split, view in views.items() if split}
        if "" not in views or (names and not judges):
            raise next(same for same in measured.values() if isinstance(same, SameResponse))
        problem = Problem(
            form, federation.sites, standardiser.sizes, len(federation.columns), federation.loss
        )
        points = {split: PointSet(metered(view), problem) for split, view in views.items()}
        splits = [
            JudgedSplit(name, points[name], judge, bool(views[name].site_effects))
            for name, judge in judges.items()
        ]
        scaled = form.scaled(views[""].view.factors)
        search = cls(splits, points[""], scaled, budget, tol, rule)

        def define(questions: Sequence[Prepared]) -> tuple[Any, ...]:
            answers = standardiser.define([*views.values(), *judges.values()], questions)
            for split, own in points.items():
                own.problem = replace(problem, sizes=standardiser.scaling(views[split]).sizes)
            for one in splits:
                one.scaling = standardiser.scaling(views[one.name])
            return answers

        search._start({split: standardiser.response_mean(split) for split in views}, define)
        return search

    @property
    def _everywhere(self) -> list[PointSet]:
        return [*(split.points for split in self.splits), self.whole]

    @property
    def _fractions(self) -> Array:
        rows = np.array([split.rows for split in self.splits])
        return np.asarray(rows / rows.sum())

    def _start(
        self,
        means: Mapping[str, float],
        define: Send,
    ) -> None:
        """Ask about the model of the unpenalised columns, until it is solved well enough.

        `means` are mean responses by split; `define` asks first questions, and defines their views.
        """
        p = self.whole.problem.p
        free = np.flatnonzero(self.form.free(p))
        names = [*(split.name for split in self.splits), ""]
        models = [np.zeros(p) for _ in names]
        if self.whole.ledger.columns[-1] == INTERCEPT and p - 1 in free:
            loss = find_loss(self.whole.problem.loss)
            for b, name in zip(models, names, strict=True):
                b[-1] = loss.link(means[name])
        send = define
        while True:
            asked = [
                Asked(points, b[:, None], None)
                for points, b in zip(self._everywhere, models, strict=True)
            ]
            asked[-1] = replace(asked[-1], columns=self._columns_of([]))
            found = [own[0] for own in self._ask(asked, send)]
            send = ask_together
            for points, point in zip(self._everywhere, found, strict=True):
                points.known.append(point)
            steep = [np.abs(point.slopes) for point in found]
            left = max(float(own[free].max(initial=0.0) - EMPTY * own.max()) for own in steep)
            if left <= 0 or self.trips >= STUCK:
                break
            models = [self._solve_free(point, found[-1], free) for point in found]
        # With few rows a fold may be empty.
        given = len(self.splits)
        self.splits = [split for split in self.splits if split.rows]
        if given and not self.splits:
            raise CannotFit(f"the rows are {TOO_FEW}")
        self.largest = max(
            self.form.largest(points.known[-1].slopes) for points in self._everywhere
        )

    def _solve_free(self, point: Point, whole: Point, free: Places) -> Array:
        """Return a Newton step in the unpenalised columns, with second derivatives of all rows."""
        assert whole.H is not None
        assert whole.columns is not None
        at = np.searchsorted(whole.columns, free)
        block = whole.H[np.ix_(at, at)]
        b = point.b.copy()
        b[free] -= np.linalg.lstsq(block, point.slopes[free], rcond=None)[0]
        return b if self.form.bounds is None else self.form.bounds.clip(b)

    def find_curve(self) -> Curve:
        """Return the held-out error along the penalties, and the choice."""
        if self.form.free(self.whole.problem.p).all():
            raise CannotFit(
                "no column is penalised, so held-out rows cannot choose a penalty; give any "
                "penalty, which changes nothing"
            )
        judged = self._search()
        at = judged.validation.select(self.rule)
        curve = curve_of(judged, at, self.cut)
        return replace(curve, fold_models=self.fold_models(curve.lam), risen=self.risen)

    @one_thread()
    def complete(self, strength: float) -> NewtonState:
        """Fit all rows at a penalty, and return the state from which Newton goes on if needed."""
        for _ in range(COMPLETED):
            if self._has_arrived(strength) or not self._may_go_on():
                break
            self._try([], [], curved=True, whole=[strength])
        return self.state(strength)

    @one_thread()
    def _search(self) -> CandidateErrors:
        """Try penalties until the error has risen, and the chosen one is sure."""
        count = 1 + int(np.ceil(np.log(SMALLEST) / np.log(STEP)))
        self._grid = [self.largest * STEP**k for k in range(count)] if self.largest > 0 else [0.0]
        waited = 0
        front = 0
        ahead = WINDOW
        polished: dict[float, int] = {}
        while True:
            before, front = front, max(front, self._front())
            waited = waited + 1 if front == before else 0
            judged = self._judged(front)
            self.risen = self._has_risen(front)
            ended = front == len(self._grid) or self.risen
            if not ended and not ahead:
                ended = self.cut = True
            if not ended and (waited >= STUCK or self.budget.trips_left <= LAST_TRIPS):
                ended = True
                self.cut = front == 0 or not self._turns(front)
            self.whole.ledger.expect(AT_THE_END if ended else max(USUAL - self.trips, AT_THE_END))
            near: list[float] = []
            whole: list[float] | None = None
            if front and (ended or self._turns(front)):
                near = self._surround(judged)
                chosen = float(judged.penalties[judged.validation.select(self.rule)])
                polished[chosen] = polished.get(chosen, 0) + 1
                done = self._has_arrived(chosen) or polished[chosen] > POLISHED
                whole = [] if done else [chosen]
            if ended and not near and not whole:
                break
            if not self._may_go_on():
                self.cut = self.cut or not ended
                break
            window = [] if ended else self._grid[front : front + ahead]
            # Every other round trip asks second derivatives of all rows.
            curved = bool(whole) or self.trips % 2 == 1
            try:
                self._try(window, near, curved, window[:AHEAD] if whole is None else whole)
            except Refused:
                # Sites refuse models that are too steep: those far ahead first.
                if not window or not front:
                    raise
                ahead = 1 if ahead > 1 else 0
        return judged

    def _front(self) -> int:
        """Return the place of the first penalty of the path that is not settled."""
        unsettled = (k for k, strength in enumerate(self._grid) if not self._is_settled(strength))
        return next(unsettled, len(self._grid))

    def _may_go_on(self) -> bool:
        return self.trips < MOST_TRIPS and self.budget.left > 0 and self.budget.trips_left > 0

    def _errors(self, strength: float) -> tuple[float, float]:
        """Return the mean error of the best points so far, and its standard error."""
        penalty = self.form.at(strength)
        best = [split.points.best(penalty) for split in self.splits]
        if len(best) == 1:
            return best[0].error, best[0].se
        each = np.array([[point.error] for point in best])
        error, se = average_folds(each, self._fractions)
        return float(error[0]), float(se[0])

    def _allowed(self, strength: float, strictly: bool = False) -> float:
        """Return the gap that fits at a penalty may have; `strictly` if they may decide."""
        error, se = self._errors(strength)
        # An error is twice a loss.
        if strictly:
            return DECIDED * se / 2
        above = [other for other in self._grid if other > strength]
        drop = self._errors(min(above))[0] - error if above else 0.0
        return max(CLOSE * se, DROP * drop) / 2

    @property
    def _curved(self) -> list[Point]:
        """Points on all rows with second derivatives."""
        return [point for point in self.whole.known if point.H is not None]

    def _is_settled(self, strength: float, strictly: bool = False) -> bool:
        """Return whether the fits at a penalty are close enough."""
        penalty = self.form.at(strength)
        allowed = self._allowed(strength, strictly)
        gaps = np.array([split.points.gap(penalty) for split in self.splits])
        return bool(gaps @ self._fractions <= allowed and gaps.max() <= WORST * allowed)

    def _has_risen(self, front: int) -> bool:
        """Return whether the settled errors have passed their minimum, or hardly change."""
        errors = [self._errors(strength)[0] for strength in self._grid[:front]]
        if not errors:
            return False
        best = int(np.argmin(errors))
        after = errors[best + 1 :] + self._errors_ahead(front)
        if len(after) >= RISEN and min(after) > errors[best]:
            return True
        se = self._errors(self._grid[front - 1])[1]
        return front > 3 and abs(errors[-3] - errors[-1]) < FLAT * se

    def _turns(self, front: int) -> bool:
        """Return whether the error seems to rise."""
        least = min(self._errors(strength)[0] for strength in self._grid[:front])
        ahead = self._errors_ahead(front)
        return least < self._errors(self._grid[front - 1])[0] or least < min(ahead, default=least)

    def _errors_ahead(self, front: int) -> list[float]:
        """Return errors at penalties that are tried and not settled.

        Such fits have seen less of the rows that they train on. If their error is above the
        minimum, so it will be once they are settled.
        """
        return [
            self._errors(strength)[0]
            for above, strength in pairwise(self._grid[front - 1 : front + RISEN])
            if all(split.points.differ(self.form, above, strength) for split in self.splits)
        ]

    def _surround(self, judged: CandidateErrors) -> list[float]:
        """Return unsettled penalties beside the chosen one, new ones half way to others included.

        Beside the one with the smallest error too: the choice may depend on it.
        """
        near: set[float] = set()
        known = judged.penalties.tolist()
        for rule in {self.rule, "min"}:
            place = judged.validation.select(rule)
            around = known[max(place - 1, 0) : place + 2]
            new = {float(np.sqrt(a * b)) for a, b in pairwise(around) if b < BETWEEN * a}
            self._between |= new
            near |= {*around, *new}
        return [s for s in sorted(near, reverse=True) if not self._is_settled(s, strictly=True)]

    def _has_arrived(self, strength: float) -> bool:
        """Return whether the fit to all rows at a penalty is complete."""
        problem = replace(self.whole.problem, penalty=self.form.at(strength))
        return Newton(tol=self.tol).arrived(problem, self.state(strength))

    def _judged(self, front: int) -> CandidateErrors:
        """Return the errors of the penalties that are settled."""
        between = [strength for strength in self._between if self._is_settled(strength)]
        settled = sorted([*self._grid[: max(front, 1)], *between], reverse=True)
        fits = [
            [split.points.best(self.form.at(strength)) for split in self.splits]
            for strength in settled
        ]
        each = np.array([[point.error for point in own] for own in fits])
        ends_in_ones = self.whole.ledger.columns[-1] == INTERCEPT
        return CandidateErrors(
            LASSO,
            np.array(settled),
            each.reshape(len(settled), len(self.splits)).T[:, None, :],
            np.array([split.rows for split in self.splits]),
            fits=tuple(
                tuple(
                    point.as_fit(self.form.at(strength), split.points.problem.m, ends_in_ones)
                    for point, split in zip(own, self.splits, strict=True)
                )
                for strength, own in zip(settled, fits, strict=True)
            ),
            single_se=np.array([own[0].se for own in fits]) if len(self.splits) == 1 else None,
        )

    def fold_models(self, strength: float) -> FoldModels | None:
        """Return the fits at a penalty as models of folds, if the splits are all folds."""
        penalty = self.form.at(strength)
        models = []
        for split in self.splits:
            point = split.points.best(penalty)
            coefficients, intercept = split.scaling.original(point.b)
            models.append((coefficients, intercept + point.effect))
        return FoldModels.of_splits([split.name for split in self.splits], models)

    def state(self, strength: float) -> NewtonState:
        """Return the fit to all rows at a penalty, as a state from which Newton goes on."""
        penalty = self.form.at(strength)
        point = self.whole.best(penalty)
        trial = self.whole.propose(penalty)
        columns, H = trial.columns, trial.H
        low = point.objective(penalty) - point.certify(penalty).gap
        return NewtonState(
            A=columns,
            b=point.b,
            loss=point.loss,
            slopes=point.slopes,
            H=H,
            curved=columns.size,
            trial=point.b,
            low=low,
            aim=self.tol,
            step="bound",
            round=self.trips,
        )

    def _try(
        self,
        window: Sequence[float],
        near: Sequence[float],
        curved: bool,
        whole: Sequence[float],
    ) -> None:
        """Try penalties on the splits that have not settled them, and `whole` on all rows.

        Fits at `near` decide. `curved` asks for second derivatives of all rows.
        """
        strictly = dict.fromkeys(window, False) | dict.fromkeys(near, True)
        allowed = {strength: self._allowed(strength, own) for strength, own in strictly.items()}
        trials: list[list[Proposal]] = []
        asked: list[Asked] = []
        for points in self._everywhere:
            if points is self.whole:
                wanted = list(whole)
            else:
                gaps = {strength: points.gap(self.form.at(strength)) for strength in allowed}
                wanted = [strength for strength in allowed if gaps[strength] > allowed[strength]]
            if not wanted:
                continue
            own = [points.propose(self.form.at(strength), self._curved) for strength in wanted]
            trials.append(own)
            models = np.column_stack([trial.b for trial in own])
            bends = curved and points is self.whole
            asked.append(Asked(points, models, self._columns_of(own) if bends else None))
        for own, found in zip(trials, self._ask(asked), strict=True):
            for trial, point in zip(own, found, strict=True):
                trial.points.add(trial, point)

    def _split_of(self, points: PointSet) -> JudgedSplit:
        return next(split for split in self.splits if split.points is points)

    def _columns_of(self, trials: Sequence[Proposal]) -> Places:
        """Return the columns whose second derivatives are asked."""
        p = self.whole.problem.p
        # Rows must be at least twice the columns, at every site.
        most = max(min(self.whole.problem.sizes) // 2, 1)
        if p <= min(NARROW, most) and len(trials) != 1:
            return np.arange(p)
        most = min(most, int(np.sqrt(2 * CURVATURE * p)))
        free = self.form.free(p)
        if not trials:
            return np.flatnonzero(free)[:most]
        trial = trials[min(1, len(trials) - 1)]
        thresholds = trial.penalty.thresholds(p)
        steep = np.abs(trial.base.slopes) / np.maximum(thresholds, TINY)
        rank = np.where(trial.b != 0, 1.0 + np.abs(trial.b), np.minimum(steep, 1.0))
        rank = np.where(free, np.inf, rank)
        wanted = np.flatnonzero((rank >= STEEP) & np.isfinite(thresholds))
        steepest = wanted[np.argsort(-rank[wanted], kind="stable")]
        return np.sort(steepest[:most])

    def _ask(self, asked: Sequence[Asked], send: Send = ask_together) -> list[list[Point]]:
        """Ask about models on several sets of rows, in one round trip."""
        questions: list[Any] = []
        for one in asked:
            questions.append((one.points.ledger, TrialsAt(one.models)))
            if one.columns is not None:
                questions.append((one.points.ledger, CurvatureAt(one.curved, one.columns, 0)))
            if one.points is self.whole:
                continue
            split = self._split_of(one.points)
            if split.effects:
                ledger = one.points.ledger
                questions += [(ledger, EffectAt(b.copy())) for b in one.models.T]
            else:
                questions.append((split.judge, self._ask_errors(one.models)))
        answers = iter(self._exchange(questions, send))
        found = [self._read(one, answers) for one in asked]
        owed = [
            (self._split_of(one.points), own)
            for one, own in zip(asked, found, strict=True)
            if one.points is not self.whole and self._split_of(one.points).effects
        ]
        if owed:
            # Predictions for new rows have the mean of the sites' intercepts, known only now.
            later = [
                (split.judge, self._ask_errors(np.column_stack([split.shift(p) for p in own])))
                for split, own in owed
            ]
            for (split, own), sums in zip(owed, self._exchange(later), strict=True):
                self._take_errors(split, own, sums)
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
            point = own[one.second]
            point.columns = one.columns
            point.H = unpack(next(answers).block / m, one.columns.size, lower=True)
        if one.points is self.whole:
            return own
        split = self._split_of(one.points)
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

    def _exchange(self, questions: Sequence[Any], send: Send = ask_together) -> tuple[Any, ...]:
        before = self.budget.numbers
        answers = send([federation.prepare(request) for federation, request in questions])
        self.trips += 1
        self.budget.spend((self.budget.numbers - before) / self.whole.problem.p)
        return answers
