"""A choice by gradients, on folds or on rows held out once, where moments are too many to send."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.federation import Federation, metered
from fedlasso.fitting.budget import GRADIENTS, Budget
from fedlasso.fitting.candidates import LASSO, REFITTED, refit_penalty
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import PathPoint, SecantEvidence, SplitEvidence
from fedlasso.fitting.evidence.gradient_evidence import PLAIN_LASSO
from fedlasso.fitting.evidence.subset_evidence import TrialFit, ask_subset
from fedlasso.fitting.fit_plan import FEW_ROWS, Gathered
from fedlasso.fitting.gradient_tuning import (
    REFIT_TOL,
    SMALLEST_RATIO,
    AdaptivePath,
    choose_by_gradients,
    curve_of,
    fit_down,
    judge_adaptive,
    judge_by_gradients,
    judge_lasso,
)
from fedlasso.fitting.paths import Errors, go_below, has_risen, log_grid, step_down
from fedlasso.fitting.result import Fit, How, Status, Tuned
from fedlasso.fitting.tuning import CandidateErrors
from fedlasso.fitting.validation import Rule, Validation, validate
from fedlasso.numerics import L1
from fedlasso.sites import folds

if TYPE_CHECKING:
    from fedlasso.fitting.goals.compared import ComparedGoal

# Certified relative gap of the Lasso fits on the way, and the smallest one of the last fit.
PATH_TOL = 0.01
FINAL_TOL = 1e-6
# The fraction of uploads that the Lasso's path leaves for the adaptive Lasso. With few rows that is
# seldom surely better.
RESERVE = 0.5
RESERVE_FEW_ROWS = 0.25
# The Lasso's grid on a holdout: penalties, and the last as a fraction of the first.
HOLDOUT_GRID = 20
HOLDOUT_RATIO = 0.05
# The Lasso replaces the expected effects if its error on held-out rows is smaller by this fraction
# of a standard error.
CLEARLY = 0.25


def fit_by_folds(goal: ComparedGoal, context: Context, gathered: Gathered) -> Fit:
    """Choose among the Lasso, the adaptive Lasso and its refits, and fit the choice to all rows."""
    ledger = context.ledger
    before = ledger.costs
    settings = context.settings
    splits = folds(gathered.plan.folds, settings.seed)
    left = int(context.budget.left)
    budget = context.budget.part(left - left // (len(splits) + 1))
    evidence = SplitEvidence.open(context.standardiser, splits, budget)
    few = evidence.rows.sum() < FEW_ROWS
    lasso, cut = judge_lasso(evidence, reserve=RESERVE_FEW_ROWS if few else RESERVE)
    best = lasso.validation.select("min")
    judged = [lasso]
    path = goal.adaptive
    if lasso.validation.active[best] > 0:
        penalties = partial(step_down, step=path.ratio ** (1 / (path.count - 1)), ratio=path.ratio)
        judged += judge_adaptive(evidence, lasso.fits[best], path, penalties, evidence.each // 5)
    rule = settings.rule_in_force
    one, at = choose_by_gradients(judged, (lasso, best), rule)
    spent = sum(part.budget.spent for part in evidence.parts.values())
    last = SecantEvidence.open(
        metered(gathered.view), context.budget.part(min(context.budget.left, GRADIENTS))
    )
    point = fit_all(last, float(lasso.penalties[best]), one, at, path)
    how = {"min": How.SMALLEST, "1se": How.SPARSEST}[rule]
    count = sum(each.penalties.size for each in judged)
    name = one.candidate.name
    curve = curve_of(lasso, at if one is lasso else best, cut)
    return Fit.of_points(
        [point],
        0,
        last.problem,
        method=name,
        costs=ledger.costs - before,
        rounds=round(spent + last.budget.spent),
        status=Status.CHOSEN if point.arrived(PATH_TOL) and not cut else Status.CUT,
        validation=one.validation.take(at),
        reason=Tuned(goal.name, name, point.active, how, count, folds=len(splits), all_rows=True),
        curve=replace(curve, fold_models=evidence.fold_models(one.fits[at])),
        **gathered.described,
    )


def fit_all(
    evidence: SecantEvidence, lam: float, judged: CandidateErrors, at: int, path: AdaptivePath
) -> PathPoint:
    """Fit the chosen candidate to all rows; an adaptive one takes its weights from the Lasso."""
    chosen = float(judged.penalties[at])
    if judged.candidate is LASSO:
        return evidence.fit(L1(chosen), tol=FINAL_TOL)
    lasso = evidence.fit(L1(lam), tol=PATH_TOL)
    if not lasso.active:
        return lasso
    (form,) = path.forms([lasso])
    refits = judged.candidate is REFITTED
    tol = PATH_TOL if refits else FINAL_TOL
    adaptive = evidence.fit(form.at(chosen), lasso.coefficients, tol)
    if refits and adaptive.active:
        b = adaptive.coefficients
        return evidence.fit(refit_penalty(b, evidence.largest_penalty), b, REFIT_TOL)
    return adaptive


def choose_on_holdout(
    federation: Federation,
    goal: ComparedGoal,
    budget: Budget,
    rule: Rule,
    exact: bool,
    all_rows: bool = True,
) -> Fit:
    """Choose a model for a goal on the sites' validation samples, within a budget.

    The first samples choose the penalty of a Lasso path. Second moments of the columns that the
    path and its gradients point to, over all rows, then show how likely each is to have an effect.
    If uploads do not suffice for that, the second samples choose among fits on the way. Without
    `all_rows` the model is the one that was judged, fitted to the training rows.
    """
    ledger = metered(federation)
    before = ledger.costs
    uploads = int(budget.vectors)
    # One upload is left to the scalars: sizes, ||y||^2, three for every validated fit.
    evidence = SecantEvidence.open(ledger, budget.part(uploads - 1))
    rows = SplitEvidence({"": evidence}, np.ones(1), uploads, exact)
    grid = log_grid(evidence.largest_penalty, _count(uploads, HOLDOUT_GRID), HOLDOUT_RATIO)
    fits = fit_down(rows, go_below(grid, SMALLEST_RATIO), [PLAIN_LASSO], uploads // 2)
    # The path starts with the empty model, certified by the first gradient: it is never empty.
    lasso, cut = judge_by_gradients(rows, LASSO, fits, partial(_has_ended, grid=grid.size))
    best = _best(lasso)
    subset = None
    if rule == "min":
        subset = ask_subset(evidence, best.coefficients, exact, all_rows)
    if subset is None:
        candidates = _walk_on(rows, lasso, goal, uploads)
    else:
        candidates = goal.use_subset(subset, best)
    models = np.column_stack([candidate.trained.coefficients for candidate in candidates])
    validation = validate(ledger, models, exact=exact)
    chosen = validation.select(rule) if subset is None else _prefer_last(validation)
    points = [candidate.final if all_rows else candidate.trained for candidate in candidates]
    name, final = candidates[chosen].name, points[chosen]
    how = {"min": How.VALIDATED, "1se": How.VALIDATED_SPARSEST}[rule]
    count: int | None = len(candidates)
    if subset is not None and chosen == len(candidates) - 1:
        how = goal.expected
        count = None
    spent = round(evidence.budget.spent)
    used_all = final is not candidates[chosen].trained
    curve = curve_of(lasso, int(lasso.error[0].argmin()), cut)
    # Standard errors of a single sample are not shown beside those of folds.
    errors = replace(curve.validation, se=np.full(curve.penalties.shape, np.nan))
    return Fit.of_points(
        points,
        chosen,
        evidence.problem,
        method=name,
        costs=ledger.costs - before,
        rounds=spent,
        status=Status.CUT if cut else Status.CHOSEN,
        validation=validation,
        reason=Tuned(
            goal.name, name, final.active, how, count, uploads=(spent, uploads), all_rows=used_all
        ),
        curve=replace(curve, validation=errors),
    )


def _prefer_last(validation: Validation) -> int:
    """Return the last candidate, that of the probabilities, unless another is clearly better."""
    best = validation.select()
    last = validation.error.size - 1
    clearly = validation.error[last] - validation.error[best] > CLEARLY * validation.se[best]
    return best if clearly else last


def _has_ended(errors: Errors, grid: int) -> bool:
    """Return whether errors have risen; below the grid, whether the last is not the smallest."""
    if has_risen(errors):
        return True
    # A fit that also suits the next penalty has the same error there, which shows nothing yet.
    return len(errors) >= grid and min(errors[:-1]) < errors[-1]


def _count(uploads: int, most: int) -> int:
    """Return the number of penalties on a path, which is smaller if uploads are few."""
    return max(3, min(most, uploads * most // 100))


def _best(judged: CandidateErrors) -> PathPoint:
    return judged.fits[int(judged.error[0].argmin())][0]


def _walk_on(
    rows: SplitEvidence, lasso: CandidateErrors, goal: ComparedGoal, uploads: int
) -> list[TrialFit]:
    """Walk an adaptive path and refit its supports, where moments are out of reach."""
    judged = [lasso]
    filled = [k for k, (point,) in enumerate(lasso.fits) if point.active]
    if filled:
        best = min(filled, key=lambda k: lasso.error[0, k])
        path = goal.adaptive

        def penalties(largest: float) -> Iterator[float]:
            yield from log_grid(largest, _count(uploads, path.count), path.ratio).tolist()

        judged += judge_adaptive(rows, lasso.fits[best], path, penalties, uploads // 5)
    last = judged[-1]
    if goal.refits_only and last is not lasso and last.fits:
        points = [(last, point) for (point,) in last.fits]
    else:
        points = [(one, _best(one)) for one in judged if one.fits]
    return [TrialFit(one.candidate.name, point, point) for one, point in points]
