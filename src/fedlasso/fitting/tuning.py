"""Tuning by second moments: held-out errors of candidates on folds, and the choice by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation import Costs
from fedlasso.fitting.candidates import Candidate
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import Folded, PathPoint
from fedlasso.fitting.evidence.moment_evidence import REFIT, certify_point, solve_at
from fedlasso.fitting.fit_plan import Gathered
from fedlasso.fitting.goal import Goal
from fedlasso.fitting.paths import grid_and_decades, walk_down
from fedlasso.fitting.result import Fit, How, Status, Tuned
from fedlasso.fitting.validation import Curve, Rule, Validation
from fedlasso.numerics import L1, Array, one_thread
from fedlasso.numerics.moment_path import Walk, solve_path
from fedlasso.numerics.moments import Moments, Normal, residuals
from fedlasso.procedures import Problem

# Fractions of the Lasso's shrinkage that a relaxed fit keeps; one is the Lasso itself. Without any,
# a refit of nearly dependent columns sometimes predicts badly.
BLENDS = (1.0, 0.75, 0.5, 0.25)
# Penalties of a grid; its end as a fraction of its start, where rows outnumber columns and where
# they do not; and the smallest penalty that is tried while the best is the last.
GRID_PENALTIES = 100
RATIO_MANY_ROWS = 1e-4
RATIO_FEW_ROWS = 1e-2
SMALLEST_BY_MOMENTS = 1e-6
# A candidate replaces the plain Lasso when it is better by this many standard errors of the
# difference, paired by fold.
SURE_BY = 2.0
# Errors are cut at this many times the response's sum of squares.
HOPELESS = 1e6
# Beyond the end of a path the error must fall to this fraction: rows that differ a little from
# those seen are predicted badly there, and no fold shows it.
BEYOND = 0.25


def average_folds(each: Array, rows: Array, assignments: int = 1) -> tuple[Array, Array]:
    """Return the mean error over all rows and its standard error, from the means of folds.

    Several assignments of the same rows carry no more information than one.
    """
    fraction = rows / rows.sum()
    error = np.tensordot(fraction, each, axes=1)
    spread = np.tensordot(fraction, (each - error) ** 2, axes=1)
    return error, np.sqrt(spread / max(len(rows) / assignments - 1, 1))


@dataclass(frozen=True, eq=False)
class CandidateErrors:
    """Held-out errors of one candidate, at every fraction of shrinkage and penalty.

    Attributes
    ----------
    candidate : what was fitted
    penalties : array (L,)
    each : array (splits, fractions, L): mean error on the rows that every split holds out
    rows : array (splits,): those rows
    assignments : number of fold assignments among the splits
    fits : for each penalty, the fits on all splits, where they were made one by one
    single_se : standard errors over the rows of a single split
    """

    candidate: Candidate
    penalties: Array
    each: Array
    rows: Array
    assignments: int = 1
    fits: tuple[tuple[PathPoint, ...], ...] = ()
    single_se: Array | None = None

    def average(self, each: Array) -> tuple[Array, Array]:
        """Return the mean over all rows and its standard error, from the means of folds."""
        return average_folds(each, self.rows, self.assignments)

    @cached_property
    def error(self) -> Array:
        """Mean errors, an array (fractions, L)."""
        return self.average(self.each)[0]

    @cached_property
    def se(self) -> Array:
        """The standard errors of those."""
        return self.average(self.each)[1]

    @cached_property
    def validation(self) -> Validation:
        """Unrelaxed errors along the penalties, where the fits were made one by one."""
        active = np.array([np.mean([fit.active for fit in own]) for own in self.fits])
        se = self.se[0] if self.single_se is None else self.single_se
        return Validation(self.error[0], se, active)

    @property
    def limit(self) -> float:
        """The smallest unrelaxed error plus one standard error."""
        best = int(np.argmin(self.error[0]))
        return float(self.error[0, best] + self.se[0, best])

    @property
    def sparsest(self) -> int:
        """Index of the largest penalty whose unrelaxed error is within one standard error."""
        return int(np.flatnonzero(self.error[0] <= self.limit)[0])

    def largest_within(self, fraction: float) -> int:
        """Return the index of the largest penalty that costs at most this fraction of error."""
        error = self.error[0]
        return int(np.flatnonzero(error <= error.min() * (1 + fraction))[0])

    @property
    def allowed(self) -> Array:
        """Errors, infinite for relaxed fits at larger penalties than the sparsest within one SE.

        The few columns of such a fit too often differ from those of other rows.
        """
        allowed = self.error.copy()
        allowed[1:, : self.sparsest] = np.inf
        return allowed

    @property
    def best(self) -> tuple[int, int]:
        """Fraction and penalty with the smallest error; a tie goes to the larger penalty."""
        allowed = self.allowed
        blend, at = np.unravel_index(int(np.argmin(allowed)), allowed.shape)
        return int(blend), int(at)

    def surely_better(self, each: Array, plain: Array, sure_by: float = SURE_BY) -> bool:
        """Return whether errors beat the plain Lasso's by so many standard errors, paired."""
        error, se = self.average(each - plain)
        return bool(error < -sure_by * se)


def judge_by_moments(
    folded: Folded, candidate: Candidate, fractions: int = len(BLENDS)
) -> CandidateErrors:
    """Cross-validate over penalties that reach beyond the one with the smallest error."""
    whole = folded.normal(folded.whole)
    largest = candidate.adapt(whole).largest_penalty
    ratio = RATIO_MANY_ROWS if whole.rows > whole.p else RATIO_FEW_ROWS
    walks = [(fold, Walk(candidate.adapt(normal))) for fold, normal in folded.training()]
    empty = np.empty((len(walks), fractions, 0))
    judged = CandidateErrors(candidate, np.empty(0), empty, folded.rows, folded.assignments)

    def visit(penalties: Array) -> Array:
        nonlocal judged
        errors = [_follow(fold, walk, penalties)[:fractions] for fold, walk in walks]
        judged = replace(
            judged,
            penalties=np.append(judged.penalties, penalties),
            each=np.concatenate([judged.each, errors], axis=2),
        )
        return np.asarray(judged.allowed.min(axis=0))

    blocks = grid_and_decades(largest, GRID_PENALTIES, ratio, SMALLEST_BY_MOMENTS)
    walk_down(blocks, visit, lambda errors: judged.best[1] < len(errors) - 1)
    return judged


def _follow(fold: Moments, walk: Walk, penalties: Array) -> Array:
    """Return mean squared errors on a fold along a path, an array (fractions of shrinkage, L)."""
    path = walk.follow(penalties)
    lasso = residuals(*walk.normal.original(path.lasso))
    refit = residuals(*walk.normal.original(path.refits))
    both = fold.between(lasso, lasso)
    mixed = fold.between(lasso, refit)
    alone = fold.between(refit, refit)
    sums = [g**2 * both + 2 * g * (1 - g) * mixed + (1 - g) ** 2 * alone for g in BLENDS]
    return np.clip(sums, 0.0, HOPELESS * fold.products[-1, -1]) / fold.rows


@dataclass(frozen=True, eq=False)
class Choice:
    """A candidate at the penalty with the index `at` and the fraction of shrinkage `blend`.

    `each` are its mean squared errors on the folds, `how` is the criterion, and `support` the
    columns that may be used; by default those of the path.
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
        """Return the model of the path at an index."""
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
    """The result of cross-validation: the Lasso's errors, and the best of every candidate."""

    lasso: CandidateErrors
    candidates: tuple[Choice, ...]

    @property
    def place(self) -> int:
        """Index of the chosen one: that with the smallest error."""
        return min(range(len(self.candidates)), key=lambda i: self.candidates[i].error)

    @property
    def choice(self) -> Choice:
        """The chosen candidate."""
        return self.candidates[self.place]


def choose_smallest(judged: Sequence[CandidateErrors], end: int | None = None) -> Chosen:
    """Choose the smallest error among the plain Lasso and what is surely better.

    From the penalty with the index `end` on, only a large gain counts.
    """
    lasso = judged[0]
    smallest = int(np.argmin(lasso.error[0]))
    end = smallest if end is None else end
    further = Choice.on_path(lasso, 0, smallest)
    plain = Choice.on_path(lasso, 0, int(np.argmin(lasso.error[0, : end + 1])))
    best = [Choice.on_path(one, *one.best) for one in judged]
    limit = plain.error * (BEYOND if smallest > end else 1.0)
    better = [one for one in (further, *best) if lasso.surely_better(one.each, plain.each)]
    candidates = [plain, *(one for one in better if one.error <= limit)]
    for k, one in enumerate(candidates):
        # Some error on its path is smaller, but not surely so.
        if one.judged.error[one.blend, one.at] > one.judged.error[0].min():
            how = How.SMALLEST_BEFORE_END if one is plain else How.SURE
            candidates[k] = replace(one, how=how)
    return Chosen(lasso, tuple(candidates))


def fit_gathered(goal: Goal, context: Context, gathered: Gathered) -> Fit:
    """Choose for a goal from the gathered moments, and fit the choice to all rows."""
    assert gathered.folded is not None
    rule = context.settings.rule_in_force
    fit = fit_by_moments(goal, rule, gathered.folded, gathered.problem)
    return replace(fit, costs=context.ledger.costs, **gathered.described)


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
    counts = (models != 0).sum(axis=0).astype(np.float64)
    errors = Validation(lasso.error[0], lasso.se[0], counts)
    at = choice.at if choice.judged is lasso else lasso.best[1]
    count = len(folded.folds)
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
        reason=Tuned(goal.name, choice.name, active, choice.how, folds=count, all_rows=True),
        curve=Curve(lasso.penalties, models, errors, at),
        evidence=folded,
    )


def fit_choice(whole: Normal, choice: Choice) -> PathPoint:
    """Fit a choice to all rows, exactly."""
    candidate = choice.judged.candidate
    weights = candidate.weights(whole)
    steady = whole.steadied(candidate.ridge) if candidate.ridge else whole
    lam = float(choice.judged.penalties[choice.at])
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
