"""The choice of a candidate, its penalty and its columns from second moments of folds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation import Costs
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence.evidence import PathPoint
from fedlasso.fitting.evidence.moment_evidence import (
    REFIT,
    Folded,
    certify_point,
    mean_error,
    solve_at,
)
from fedlasso.fitting.fit_plan import Gathered
from fedlasso.fitting.goal import Goal
from fedlasso.fitting.result import Fit, How, Status, Tuned
from fedlasso.fitting.tuning import BLENDS, CandidateErrors, average, is_surely_better
from fedlasso.fitting.validation import Curve, Rule, Validation
from fedlasso.numerics import L1, Array, one_thread
from fedlasso.numerics.moment_path import solve_path
from fedlasso.numerics.moments import Normal
from fedlasso.procedures import Problem

# Beyond the end of a path only a large gain counts, an error of at most this fraction: rows that
# are a little unlike those seen are predicted badly there, and no fold shows it.
BEYOND = 0.25


@dataclass(frozen=True, eq=False)
class Choice:
    """One candidate at one penalty.

    Attributes
    ----------
    judged : the candidate and its penalties
    blend : place of the fraction of shrinkage that a fit on the support keeps
    at : place of the penalty
    each : array (folds,) of mean squared errors
    how : what it is chosen for
    support : columns that may be used, where some were named; else the path's own
    """

    judged: CandidateErrors
    blend: int
    at: int
    each: Array
    how: How = How.SMALLEST
    support: NDArray[np.bool_] | None = None

    @classmethod
    def on_path(
        cls, judged: CandidateErrors, blend: int, at: int, how: How = How.SMALLEST
    ) -> Choice:
        """Return the model that the path itself has at a place."""
        return cls(judged, blend, at, judged.each[:, blend, at], how)

    @property
    def error(self) -> float:
        """Its mean squared error."""
        return float(self.judged.average(self.each)[0])

    @property
    def se(self) -> float:
        """The standard error of that."""
        return float(self.judged.average(self.each)[1])

    @property
    def name(self) -> str:
        """Its candidate, and whether it is relaxed."""
        name = self.judged.candidate.name
        return name if BLENDS[self.blend] == 1.0 else f"relaxed {name}"


@dataclass(frozen=True, eq=False)
class Chosen:
    """What cross-validation made of the candidates.

    Attributes
    ----------
    lasso : the Lasso's errors, relaxed or not
    candidates : the best of every candidate
    """

    lasso: CandidateErrors
    candidates: tuple[Choice, ...]

    @property
    def place(self) -> int:
        """Which of them is chosen: the one with the smallest error."""
        return min(range(len(self.candidates)), key=lambda i: self.candidates[i].error)

    @property
    def choice(self) -> Choice:
        """The chosen candidate."""
        return self.candidates[self.place]


def choose_smallest(judged: list[CandidateErrors], end: int | None = None) -> Chosen:
    """Choose the smallest error; what is not the plain Lasso must surely beat that.

    `end` is the place of the penalty from which on only a large gain counts.
    """
    lasso = judged[0]
    smallest = int(np.argmin(lasso.error[0]))
    end = smallest if end is None else end
    further = Choice.on_path(lasso, 0, smallest)
    plain = Choice.on_path(lasso, 0, int(np.argmin(lasso.error[0, : end + 1])))
    best = [Choice.on_path(one, *one.best) for one in judged]
    most = plain.error * (BEYOND if smallest > end else 1.0)
    better = [one for one in (further, *best) if is_surely_better(one.each, plain.each, lasso)]
    found = [plain, *(one for one in better if one.error <= most)]
    return Chosen(lasso, tuple(map(_tell_sure, found)))


def _tell_sure(choice: Choice) -> Choice:
    """The same, noting where some error on its path is smaller but not surely so."""
    if choice.error > choice.judged.error[0].min():
        return replace(choice, how=How.SURE)
    return choice


def fit_gathered(goal: Goal, context: Context, gathered: Gathered) -> Fit:
    """Choose for a goal from what was gathered, and fit the choice to all rows."""
    assert gathered.folded is not None
    problem = gathered.problem
    fit = fit_by_moments(goal, context.settings.rule_in_force, gathered.folded, problem)
    return replace(
        fit,
        costs=context.ledger.costs,
        plan=gathered.plan.words,
        view=gathered.view.view,
        scaling=gathered.scaling,
    )


@one_thread()
def fit_by_moments(goal: Goal, rule: Rule, folded: Folded, problem: Problem) -> Fit:
    """Choose among a goal's candidates by cross-validation, and fit the choice to all rows."""
    whole = folded.whole.normal(centre=False, scale=False)
    chosen = goal.choose(folded, rule)
    lasso = chosen.lasso
    choice = chosen.choice
    points = [fit_choice(whole, each) for each in chosen.candidates]
    active = points[chosen.place].active
    models = solve_path(whole, lasso.penalties).lasso
    in_models = (models != 0).sum(axis=0).astype(np.float64)
    return Fit.of_points(
        points,
        chosen.place,
        problem,
        method=choice.name,
        costs=Costs(),
        rounds=1,
        status=Status.CHOSEN,
        validation=Validation(
            np.array([each.error for each in chosen.candidates]),
            np.array([each.se for each in chosen.candidates]),
            np.array([float(each.active) for each in points]),
        ),
        reason=Tuned(
            goal.name, choice.name, active, choice.how, folds=len(folded.folds), all_rows=True
        ),
        curve=Curve(
            lasso.penalties,
            models,
            Validation(lasso.error[0], lasso.se[0], in_models),
            choice.at if choice.judged is lasso else lasso.best[1],
        ),
        evidence=folded,
    )


@one_thread()
def nested_error(folded: Folded, goal: Goal, rule: Rule) -> Validation:
    """Return the error of the whole way of choosing, on rows that took no part in it.

    Every fold is predicted by a model that was chosen and fitted on the others.
    """
    errors = []
    active = []
    for fold in folded.folds:
        others = tuple(part for part in folded.folds if part is not fold)
        inner = replace(folded, folds=others)
        normal = inner.normal(inner.whole)
        b = fit_choice(normal, goal.choose(inner, rule).choice).coefficients
        errors.append(mean_error(fold, normal, b))
        active.append(float(np.count_nonzero(b)))
    error, se = average(np.array(errors), folded.rows)
    return Validation(np.array([error]), np.array([se]), np.array([np.mean(active)]))


def fit_choice(whole: Normal, choice: Choice) -> PathPoint:
    """Fit a choice to all rows, exactly."""
    judged = choice.judged
    candidate = judged.candidate
    weights = candidate.weigh(whole)
    steady = whole.steadied(candidate.ridge) if candidate.ridge else whole
    lam = float(judged.penalties[choice.at])
    blend = BLENDS[choice.blend]
    support = choice.support
    if support is None:
        b = solve_at(steady, L1(lam, weights))
        support = b != 0
    if blend < 1.0 or choice.support is not None:
        own = np.ones(whole.p) if weights is None else weights
        weights = np.where(support, own, np.inf)
        lam = max(blend * lam, REFIT * whole.weighted(weights).largest_penalty)
        b = solve_at(steady, L1(lam, weights))
    return certify_point(whole, b, candidate.penalty(lam, weights))
