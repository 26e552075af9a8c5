"""Fits from second moments: sites answer once, and the server does all the choosing and fitting."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedlasso.federation import Costs, Federation, metered
from fedlasso.fitting.choosing import Choice, choose, mean_error
from fedlasso.fitting.families import BLENDS, REFIT, Folded, average, solve_at
from fedlasso.fitting.goals import Goal, GoalFit
from fedlasso.fitting.session import PathPoint
from fedlasso.fitting.tuning import Curve, Rule, Validation, fix_penalty
from fedlasso.numerics import L1, one_thread
from fedlasso.numerics.moment_path import solve_path
from fedlasso.numerics.moments import Moments, Normal, unpack
from fedlasso.procedures import Problem
from fedlasso.sites import FoldMoments, deal


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
    folded = Folded(tuple(fold for fold in found if fold.rows), centre, scale, seed)
    return Gathered(folded, problem, ledger.costs - before)


@one_thread()
def fit_by_moments(gathered: Gathered, goal: Goal = "prediction", rule: Rule = "min") -> GoalFit:
    """Choose among families by cross-validation, and fit the choice to all rows.

    Prediction: the Lasso, an elastic net and the adaptive Lasso, each also relaxed. Selection: the
    Lasso, relaxed or not. Objective: the Lasso.

    Parameters
    ----------
    gathered : moments of the folds
    goal : what the model is for
    rule : the smallest error; or, for the objective, the largest penalty whose error is within
        one standard error of the smallest, and for other goals the columns that fits to half of
        the folds use, relaxed where that predicts better
    """
    folded = gathered.folded
    whole = folded.whole.normal(centre=False, scale=False)
    chosen = choose(folded, goal, rule)
    lasso = chosen.lasso
    choice = chosen.choice
    points = tuple(fit_choice(whole, each) for each in chosen.candidates)
    point = points[chosen.place]
    models = solve_path(whole, lasso.penalties).lasso
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
            f"{tell_how(choice, rule)} on {len(folded.folds)} folds, fitted to all rows"
        ),
    )


def tell_how(choice: Choice, rule: Rule) -> str:
    """Say in words how a choice was made."""
    if choice.support is not None:
        return f"{choice.named_by}, judged"
    if rule == "min" and choice.error > choice.judged.error[0].min():
        return "the smallest error to be sure of"
    how = {"min": "the smallest error", "1se": "the sparsest Lasso within one standard error"}
    return how[rule]


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
        errors.append(mean_error(fold, normal, b))
        active.append(float(np.count_nonzero(b)))
    error, se = average(np.array(errors), folded.rows)
    return Validation(np.array([error]), np.array([se]), np.array([np.mean(active)]))


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
    return PathPoint.by_moments(whole, b, penalty)
