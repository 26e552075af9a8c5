"""Fits from second moments: sites answer once, and the server does all the choosing and fitting."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation import Costs, Federation, metered
from fedlasso.fitting.families import (
    BLENDS,
    ELASTIC,
    LASSO,
    REFIT,
    SURE,
    Folded,
    Judged,
    adaptive,
    average,
    judge,
    solve_at,
    training,
)
from fedlasso.fitting.goals import Goal, GoalFit
from fedlasso.fitting.session import PathPoint
from fedlasso.fitting.tuning import Curve, Rule, Validation, fix_penalty
from fedlasso.numerics import L1, Array, one_thread
from fedlasso.numerics.moment_path import solve_path
from fedlasso.numerics.moments import Moments, Normal, residuals, unpack
from fedlasso.procedures import Problem
from fedlasso.sites import FoldMoments, deal

# Share of the fits without one fold that must use a column for it to be selected.
VOTES = 0.9


@dataclass(frozen=True, eq=False)
class Gathered:
    """Moments of all folds as the sites added them up, the problem, and what asking cost."""

    folded: Folded
    problem: Problem
    costs: Costs


def gather(view: Federation, folds: int, seed: int = 0, *, centre: bool, scale: bool) -> Gathered:
    """Ask the sites for the second moments of every fold of their rows."""
    ledger = metered(view)
    before = ledger.costs
    problem = fix_penalty(ledger, 0.0)
    total = ledger.total(FoldMoments(deal(folds, seed)))
    found = [Moments(unpack(packed, problem.p + 2)) for packed in total.moments]
    # With few rows a fold may be empty.
    folded = Folded(tuple(fold for fold in found if fold.rows), centre, scale)
    return Gathered(folded, problem, ledger.costs - before)


@dataclass(frozen=True, eq=False)
class Choice:
    """A model of one family at one penalty.

    Attributes
    ----------
    judged : the family and its penalties
    share : place of the share of shrinkage that a fit on the support keeps
    at : place of the penalty
    each : array (folds,) of mean squared errors
    support : columns that may be used, where a vote has named them; else the path's own
    """

    judged: Judged
    share: int
    at: int
    each: Array
    support: NDArray[np.bool_] | None = None

    @classmethod
    def on_path(cls, judged: Judged, share: int, at: int) -> Choice:
        """Return the model that the path itself has at a place."""
        return cls(judged, share, at, judged.each[:, share, at])

    @property
    def error(self) -> float:
        """Its mean squared error."""
        return float(average(self.each, self.judged.rows)[0])

    @property
    def se(self) -> float:
        """The standard error of that."""
        return float(average(self.each, self.judged.rows)[1])

    @property
    def name(self) -> str:
        """Its family, and whether it is relaxed."""
        family = self.judged.family.name
        return family if BLENDS[self.share] == 1.0 else f"relaxed {family}"


@dataclass(frozen=True, eq=False)
class Chosen:
    """What cross-validation made of the families.

    Attributes
    ----------
    lasso : the Lasso's errors, relaxed or not
    candidates : the best of every family
    place : which of them was chosen
    """

    lasso: Judged
    candidates: tuple[Choice, ...]
    place: int

    @property
    def choice(self) -> Choice:
        """The chosen candidate."""
        return self.candidates[self.place]


def choose(folded: Folded, goal: Goal, rule: Rule) -> Chosen:
    """Cross-validate the families that serve a goal, and choose by a rule."""
    shares = 1 if goal == "objective" else len(BLENDS)
    judged = [judge(folded, LASSO, shares)]
    if goal == "prediction" and rule == "min":
        weights_at = float(judged[0].penalties[np.argmin(judged[0].error[0])])
        judged += [judge(folded, family) for family in (ELASTIC, adaptive(weights_at))]
    if rule == "1se" and goal == "objective":
        candidates = [Choice.on_path(judged[0], 0, judged[0].sparsest)]
    elif rule == "1se":
        candidates = [_one_standard_error(folded, judged[0])]
    else:
        candidates = [Choice.on_path(family, *family.best) for family in judged]
    plain = Choice.on_path(judged[0], 0, int(np.argmin(judged[0].error[0])))
    if rule == "min":
        candidates = [plain, *(each for each in candidates if _surely_better(each, plain))]
    place = min(range(len(candidates)), key=lambda i: candidates[i].error)
    return Chosen(judged[0], tuple(candidates), place)


def _surely_better(choice: Choice, plain: Choice) -> bool:
    """Whether a choice beats the plain Lasso by more than the luck of the folds, paired."""
    error, se = average(choice.each - plain.each, plain.judged.rows)
    return bool(error < -SURE * se)


@one_thread()
def fit_by_moments(gathered: Gathered, goal: Goal = "prediction", rule: Rule = "min") -> GoalFit:
    """Choose among families by cross-validation, and fit the choice to all rows.

    Prediction: the Lasso, an elastic net and the adaptive Lasso, each also relaxed. Selection: the
    Lasso, relaxed or not. Objective: the Lasso.

    Parameters
    ----------
    gathered : moments of the folds
    goal : what the model is for
    rule : the smallest error, or the largest penalty of the Lasso whose error is within one
        standard error of its smallest; but for the objective, with the columns that most fits
        without one fold use, and relaxed where that predicts better
    """
    folded = gathered.folded
    whole = folded.whole.normal(centre=False, scale=False)
    chosen = choose(folded, goal, rule)
    lasso = chosen.lasso
    choice = chosen.choice
    points = tuple(fit_choice(whole, each) for each in chosen.candidates)
    point = points[chosen.place]
    models = solve_path(whole, lasso.penalties).lasso
    how = {"min": "the smallest error", "1se": "the sparsest Lasso within one standard error"}
    return GoalFit(
        goal=goal,
        problem=replace(gathered.problem, penalty=point.penalty),
        method=choice.name,
        rounds=1,
        points=points,
        chosen=chosen.place,
        validation=Validation(
            np.array([each.error for each in chosen.candidates]),
            np.array([each.se for each in chosen.candidates]),
            np.array([float(each.active) for each in points]),
        ),
        curve=Curve(
            lasso.penalties,
            models,
            Validation(lasso.error[0], lasso.se[0], (models != 0).sum(axis=0).astype(np.float64)),
            choice.at if choice.judged is lasso else lasso.best[1],
        ),
        costs=gathered.costs,
        why=(
            f"goal {goal!r}: {choice.name} with {point.active} active coefficients, "
            f"{how[rule]} on {len(folded.folds)} folds, fitted to all rows"
        ),
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
        b = fit_choice(normal, choose(inner, goal, rule).choice).coefficients
        errors.append(_mean_error(fold, normal, b))
        active.append(float(np.count_nonzero(b)))
    error, se = average(np.array(errors), folded.rows)
    return Validation(np.array([error]), np.array([se]), np.array([np.mean(active)]))


def _mean_error(rows: Moments, normal: Normal, b: Array) -> float:
    """Return the mean squared error of a model on some rows."""
    V = residuals(*normal.original(b[:, None]))
    return max(float(rows.between(V, V)[0]), 0.0) / rows.rows


def _one_standard_error(folded: Folded, lasso: Judged) -> Choice:
    """The largest penalty within one standard error, and the columns that most folds agree on.

    A column is used when the share `VOTES` of the fits without one fold use it, unless the columns
    that are left predict worse than one standard error allows. Relaxed where that predicts better.
    """
    best = int(np.argmin(lasso.error[0]))
    limit = float(lasso.error[0, best] + lasso.se[0, best])
    at = lasso.sparsest
    voted = lasso.votes[:, at] >= VOTES
    own = Choice.on_path(lasso, int(np.argmin(lasso.error[:, at])), at)
    if not voted.any():
        return own
    choices = [_judge_support(folded, lasso, share, at, voted) for share in range(len(BLENDS))]
    choice = min(choices, key=lambda each: each.error)
    return choice if choice.error <= limit else own


def _judge_support(
    folded: Folded, lasso: Judged, share: int, at: int, support: NDArray[np.bool_]
) -> Choice:
    """Cross-validate the Lasso on given columns, with a share of its shrinkage."""
    penalty = L1(BLENDS[share] * float(lasso.penalties[at]), np.where(support, 1.0, np.inf))
    each = [
        _mean_error(fold, normal, solve_at(normal, penalty)) for fold, normal in training(folded)
    ]
    return Choice(lasso, share, at, np.array(each), support)


def fit_choice(whole: Normal, choice: Choice) -> PathPoint:
    """Fit a choice to all rows, exactly."""
    judged = choice.judged
    family = judged.family
    weights = family.weigh(whole)
    steady = whole.steadied(family.ridge) if family.ridge else whole
    lam = float(judged.penalties[choice.at])
    share = BLENDS[choice.share]
    support = choice.support
    if support is None:
        b = solve_at(steady, L1(lam, weights))
        support = b != 0
    if share < 1.0 or choice.support is not None:
        own = np.ones(whole.p) if weights is None else weights
        weights = np.where(support, own, np.inf)
        lam = max(share * lam, REFIT * whole.weighted(weights).largest_penalty)
        b = solve_at(steady, L1(lam, weights))
    penalty = family.penalty(lam, weights)
    (certificate,) = whole.certificates(b[:, None], [penalty])
    residual = max(whole.variance - 2 * float(b @ whole.score) + float(b @ whole.gram @ b), 0.0)
    return PathPoint(penalty, b, whole.rows * residual, certificate)
