"""A search for the penalty on all splits at once: one round trip asks about many models.

Penalties go down from the largest useful one. Every round trip tries the next few of them
on every split, each from the best point so far, and asks for held-out errors too. A fit counts as
soon as its duality gap is small against what decides: the standard error of the held-out error, or
the decrease of the error at this penalty. Second derivatives are asked of all rows, every other
round trip, and gradients correct them for the splits. When the error rises, the penalties beside
the best one are tried, and the fit to all rows at the chosen penalty is completed meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from fedlasso.errors import CannotFit, Refused, SameResponse
from fedlasso.federation import Prepared, ask_together, metered
from fedlasso.fitting.budget import LAST_TRIPS, Budget
from fedlasso.fitting.dialogue import Dialogue, Send, drive
from fedlasso.fitting.error_path import ErrorPath, Stall
from fedlasso.fitting.gradient_tuning import curve_of
from fedlasso.fitting.points import Point, PointSet
from fedlasso.fitting.split_points import NARROW, Asked, JudgedSplit, SplitPoints
from fedlasso.fitting.tuning import CandidateErrors
from fedlasso.fitting.validation import TOO_FEW, Curve, Rule
from fedlasso.numerics import Array, Penalty, find_loss, one_thread
from fedlasso.numerics.response import Places
from fedlasso.procedures import Newton, Problem
from fedlasso.procedures.newton_state import NewtonState
from fedlasso.sites import INTERCEPT, Standardiser, Viewed, with_shared_intercept

# Ratio of one penalty of the path to the one before, and of the last to the first.
STEP = 0.4
SMALLEST = 1e-4
# Penalties that a round trip tries on each split, and on all rows.
WINDOW = 3
AHEAD = 2
# Every so many round trips ask second derivatives of all rows.
BENDS = 2
# Slopes of unpenalised columns that the first models may have, against the steepest of all.
EMPTY = 0.02
# Round trips that complete the fit to all rows before it is left to Newton, after a search and
# without one.
POLISHED = 6
COMPLETED = 12
# Round trips that refine a certified fit at most, until the next step would change coefficients of
# standardised columns by at most this fraction of the largest one: the gap of an elastic net is
# about the square of their errors.
REFINED = 2
NEAR = 1e-7
# Round trips for the models of the unpenalised columns.
START = 3
# Round trips without progress at one penalty after which second derivatives are asked there, after
# which the path ends there, and round trips of a search in all.
STALLED = 2
STUCK = 6
MOST_TRIPS = 60
# Models of folds at the chosen penalty, which are assessed, are completed to a gap of this fraction
# of the loss, as long as other questions are open, and in one round trip more.
FINE = 3e-3
FINE_TRIPS = 1
# So many penalties of a round trip take steps longer than those of quadratic models.
LONG = 2
# What progress shows: round trips of a usual search, and those after the error has risen. Fewer
# than the least cannot choose.
USUAL = 12
AT_THE_END = 3
JOINT_TRIPS = 12
T = TypeVar("T")


@dataclass(eq=False)
class JointSearch:
    """A search under way.

    Attributes
    ----------
    points : points on the splits that choose, none where the penalty is given, and on all rows
    budget : what each site may send
    tol : relative gap of the fit to all rows
    rule : how the penalty is chosen
    trips, cut, risen : round trips so far, and whether what may be sent or a rising error ended
        the search
    largest : the smallest useless penalty
    """

    points: SplitPoints
    budget: Budget
    tol: float
    rule: Rule
    trips: int = 0
    cut: bool = False
    risen: bool = False
    largest: float = 0.0

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
        sets = {split: PointSet(metered(view), problem) for split, view in views.items()}
        splits = [
            JudgedSplit(name, sets[name], judge, bool(views[name].site_effects))
            for name, judge in judges.items()
        ]
        points = SplitPoints(splits, sets[""], form.scaled(views[""].view.factors))
        search = cls(points, budget, tol, rule)

        def define(questions: Sequence[Prepared]) -> tuple[Any, ...]:
            answers = standardiser.define([*views.values(), *judges.values()], questions)
            for split, own in sets.items():
                own.problem = replace(problem, sizes=standardiser.scaling(views[split]).sizes)
            for one in splits:
                one.scaling = standardiser.scaling(views[one.name])
            return answers

        search._start({split: standardiser.response_mean(split) for split in views}, define)
        return search

    @property
    def splits(self) -> list[JudgedSplit]:
        return self.points.splits

    @property
    def whole(self) -> PointSet:
        return self.points.whole

    @property
    def form(self) -> Penalty:
        return self.points.form

    def _start(self, means: Mapping[str, float], define: Send) -> None:
        """Ask about the model of the unpenalised columns, until it is solved well enough.

        `means` are mean responses by split; `define` asks first questions, and defines their views.
        """
        everywhere = self.points.everywhere
        p = self.whole.problem.p
        free = np.flatnonzero(self.form.free(p))
        names = [*(split.name for split in self.splits), ""]
        models = [np.zeros(p) for _ in names]
        loss = find_loss(self.whole.problem.loss)
        for split in self.splits:
            split.effect = float(loss.link(means[split.name])) if split.effects else 0.0
        if self.whole.ledger.columns[-1] == INTERCEPT and p - 1 in free:
            for b, name in zip(models, names, strict=True):
                b[-1] = loss.link(means[name])
        send = define
        while True:
            asked = [Asked(own, b[:, None]) for own, b in zip(everywhere, models, strict=True)]
            asked[-1] = replace(asked[-1], blocks={0: self.points.choose_columns(None)})
            found = [own[0] for own in self._drive(self.points.ask(asked), send)]
            send = ask_together
            for points, point in zip(everywhere, found, strict=True):
                points.known.append(point)
            steep = [np.abs(point.slopes) for point in found]
            left = max(float(own[free].max(initial=0.0) - EMPTY * own.max()) for own in steep)
            if left <= 0 or self.trips >= START:
                break
            models = [self._solve_free(point, found[-1], free) for point in found]
        # With few rows a fold may be empty.
        self.points.splits = [split for split in self.splits if split.rows]
        if len(everywhere) > 1 and not self.splits:
            raise CannotFit(f"the rows are {TOO_FEW}")
        self.largest = max(
            self.form.largest(points.known[-1].slopes) for points in self.points.everywhere
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
        return replace(curve, fold_models=self.points.fold_models(curve.lam), risen=self.risen)

    @property
    def stuck(self) -> bool:
        """Whether a search has ended early by its own limits, and sites may be asked any more.

        Sites with atoms have rules, which limit what they send.
        """
        limited = self.budget.trips_left < np.inf or self.budget.left <= 0
        rules = bool(self.whole.ledger.atoms)
        return self.cut and not limited and not rules and self.form.offers("thresholds")

    @one_thread()
    def complete(self, strength: float) -> None:
        """Fit all rows at a penalty, in so many round trips that Newton hardly has to go on."""
        for _ in range(COMPLETED):
            if self.has_arrived(strength) or not self._may_go_on():
                break
            self._try({}, [strength], bent=(0,), all_columns=False)

    @one_thread()
    def refine(self, strength: float) -> None:
        """Bring the coefficients of a certified fit nearer to the optimum, if they are not."""
        for _ in range(REFINED):
            if not (self.has_arrived(strength) and self._may_go_on()):
                break
            trial = self.whole.propose(self.form.at(strength))
            if np.abs(trial.b - trial.base.b).max() <= NEAR * np.abs(trial.b).max():
                break
            self._try({}, [strength], bent=(), all_columns=False)

    @one_thread()
    def _search(self) -> CandidateErrors:
        """Try penalties until the error has risen, and the chosen one is sure."""
        count = 1 + int(np.ceil(np.log(SMALLEST) / np.log(STEP)))
        grid = [self.largest * STEP**k for k in range(count)] if self.largest > 0 else [0.0]
        path = ErrorPath(self.points, grid, self.rule)
        stall = Stall()
        tries = 0
        front = 0
        ahead = WINDOW
        polished: dict[float, int] = {}
        while True:
            front = max(front, path.front())
            stall.count(front, path.excess(front))
            judged = path.judge(front)
            self.risen = path.has_risen(front)
            ended = front == len(grid) or self.risen
            # Sites refuse even the next penalty, fits hardly come closer, or few trips are left.
            stopped = not ahead or stall.trips >= STUCK or self.budget.trips_left <= LAST_TRIPS
            if not ended and stopped:
                ended = True
                self.cut = front == 0 or not path.turns(front)
            self.whole.ledger.expect(AT_THE_END if ended else max(USUAL - self.trips, AT_THE_END))
            near: list[float] = []
            chosen: float | None = None
            polish = False
            if front and (ended or path.turns(front)):
                near = path.surround(judged)
                chosen = float(judged.penalties[judged.validation.select(self.rule)])
                polished[chosen] = polished.get(chosen, 0) + 1
                polish = not self.has_arrived(chosen) and polished[chosen] <= POLISHED
            # Models of folds are assessed, so those at the chosen penalty are completed too.
            rough = (
                ended
                and chosen is not None
                and polished[chosen] <= FINE_TRIPS
                and self._are_rough(chosen)
            )
            if ended and not near and not polish and not rough and not self.points.guessed:
                break
            if not self._may_go_on():
                self.cut = self.cut or not ended
                break
            window = [] if ended else grid[front : front + ahead]
            allowed = {s: path.allowed(s) for s in window}
            allowed |= {s: path.allowed(s, strictly=True) for s in near}
            if chosen is not None and rough:
                allowed[chosen] = min(allowed.get(chosen, np.inf), self._fine(chosen))
            curved = tries % BENDS == 0
            tries += 1
            whole = [*window[:AHEAD], *(path.beside_lowest(front + len(window)) if window else ())]
            bent = range(1, 2) if curved and len(whole) > 1 else range(1 if curved and whole else 0)
            if chosen is not None:
                # Others may be chosen once their errors are known better.
                whole = [*([chosen] if polish else []), *(s for s in near if s != chosen)]
                few = ended and self.whole.problem.p <= NARROW
                bent = range(len(whole) if few else min(1, len(whole)))
            if window and stall.trips >= STALLED:
                # Second derivatives there may differ from those that the fits rely on.
                whole = [window[0], *(s for s in whole if s != window[0])]
                bent = range(1)
            for own in self.points.everywhere if len(window) > LONG else ():
                own.usual_below = window[LONG - 1]
            path.count(window, near)
            try:
                self._try(allowed, whole, bent, all_columns=bool(window))
            except Refused:
                # Sites refuse models that are too steep: those far ahead first.
                if not window or not front:
                    raise
                ahead = 1 if ahead > 1 else 0
        return judged

    def _fine(self, strength: float) -> float:
        """Return the gap of a model of a fold at a penalty that is good enough to assess it."""
        return FINE * min(point.loss for point in self.points.best(strength))

    def _are_rough(self, strength: float) -> bool:
        """Return whether some model of a fold at a penalty is not good enough to assess it."""
        penalty = self.form.at(strength)
        fine = self._fine(strength)
        return any(split.points.gap(penalty, fine) > fine for split in self.splits)

    def _try(
        self,
        allowed: Mapping[float, float],
        whole: Sequence[float],
        bent: Sequence[int],
        all_columns: bool,
    ) -> None:
        """Try penalties on the splits whose gaps exceed the allowed ones, and `whole` on all rows.

        Second derivatives of all rows are asked at their models `bent`.
        """
        places = self.points.everywhere
        wanted: dict[int, list[Penalty]] = {}
        for place, split in enumerate(self.splits):
            gaps = {s: split.points.gap(self.form.at(s), own) for s, own in allowed.items()}
            wanted[place] = [self.form.at(s) for s, own in allowed.items() if gaps[s] > own]
        wanted[len(places) - 1] = [self.form.at(strength) for strength in whole]
        left = {place: penalties for place, penalties in wanted.items() if penalties}
        self._drive(self.points.try_at(left, bent, all_columns))

    def _may_go_on(self) -> bool:
        return self.trips < MOST_TRIPS and self.budget.left > 0 and self.budget.trips_left > 0

    def _drive(self, steps: Dialogue[T], send: Send = ask_together) -> T:
        """Let points ask, within the budget."""

        def count(questions: Sequence[Prepared]) -> tuple[Any, ...]:
            nonlocal send
            before = self.budget.numbers
            answers = send(questions)
            send = ask_together
            self.trips += 1
            self.budget.spend((self.budget.numbers - before) / self.whole.problem.p)
            return answers

        return drive(steps, count)

    def has_arrived(self, strength: float) -> bool:
        """Return whether the fit to all rows at a penalty is complete."""
        problem = replace(self.whole.problem, penalty=self.form.at(strength))
        return Newton(tol=self.tol).arrived(problem, self.state(strength))

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
