"""A choice by rows held out once: a Lasso path, and then moments of the columns it points to.

The first validation samples choose the penalty of a Lasso path. Second moments of the columns that
the path and its gradients point to, over all rows, then show how likely each is to have an effect.
Where uploads do not suffice for that, the second validation samples choose among fits on the way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.federation import Federation, metered
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.evidence import PathPoint, SplitEvidence
from fedlasso.fitting.evidence.opening import PLAIN
from fedlasso.fitting.evidence.secant_evidence import SecantEvidence
from fedlasso.fitting.evidence.subset_evidence import TrialFit, ask_subset
from fedlasso.fitting.goals.adaptive import (
    judge_adaptive,
    judge_refits,
    largest_of,
    weigh_adaptively,
)
from fedlasso.fitting.paths import Errors, go_below, has_risen, log_grid
from fedlasso.fitting.result import Fit, How, Status, Tuned
from fedlasso.fitting.tuning import (
    SMALLEST_RATIO,
    CandidateErrors,
    curve_of,
    fit_down,
    judge_by_gradients,
)
from fedlasso.fitting.validation import Curve, Rule, validate

if TYPE_CHECKING:
    from fedlasso.fitting.goals.compared import ComparedGoal

# Certified relative gap of the Lasso fits on the way.
TOL = 0.01
# The Lasso's grid: penalties, and the last as a fraction of the first.
COUNT = 20
RATIO = 0.05


def choose_on_holdout(
    federation: Federation, goal: ComparedGoal, budget: Budget, rule: Rule, exact: bool
) -> Fit:
    """Choose a model for a goal on the sites' validation samples, within a budget."""
    ledger = metered(federation)
    before = ledger.costs
    uploads = int(budget.vectors)
    # One upload is left to the scalars: sizes, ||y||^2, three for every validated fit.
    evidence = SecantEvidence(ledger, budget.part(uploads - 1), PLAIN)
    rows = SplitEvidence({"": evidence}, np.ones(1), uploads, exact)
    grid = log_grid(evidence.largest_penalty, _count(uploads, COUNT), RATIO)
    fits = fit_down(rows, go_below(grid, SMALLEST_RATIO), [PLAIN], uploads // 2)
    ended = partial(_has_ended, grid=grid.size)
    # The path starts with the empty model, certified by the first gradient: it is never empty.
    lasso, cut = judge_by_gradients(rows, LASSO, fits, ended)
    best = _best(lasso)
    subset = ask_subset(evidence, best.coefficients, weigh=exact) if rule == "min" else None
    if subset is None:
        candidates = _walk_on(rows, lasso, goal, uploads)
    else:
        candidates = goal.use_subset(subset, best)
    models = np.column_stack([candidate.trained.coefficients for candidate in candidates])
    validation = validate(ledger, models, exact=exact)
    chosen = validation.select(rule)
    choice = candidates[chosen]
    how = {"min": How.VALIDATED, "1se": How.VALIDATED_SPARSEST}[rule]
    count: int | None = len(candidates)
    if subset is not None and count == 1:
        how = goal.expected
        count = None
    spent = round(evidence.budget.spent)
    return Fit.of_points(
        [candidate.final for candidate in candidates],
        chosen,
        evidence.problem,
        method=choice.name,
        costs=ledger.costs - before,
        rounds=spent,
        status=Status.CUT if cut else Status.CHOSEN,
        validation=validation,
        reason=Tuned(
            goal.name,
            choice.name,
            choice.final.active,
            how,
            count,
            uploads=(spent, uploads),
            all_rows=choice.final is not choice.trained,
        ),
        curve=_hide_errors(curve_of(lasso, int(lasso.error[0].argmin()), cut)),
    )


def _has_ended(errors: Errors, grid: int) -> bool:
    """Whether errors have long risen; below the grid, whether the last is not the smallest."""
    if has_risen(errors):
        return True
    # A fit that is good at the next penalty too has the same error, and says nothing yet.
    return len(errors) >= grid and min(errors[:-1]) < errors[-1]


def _count(uploads: int, most: int) -> int:
    """Penalties on a path: fewer when few uploads must do for all of them."""
    return max(3, min(most, uploads * most // 100))


def _best(judged: CandidateErrors) -> PathPoint:
    return judged.fits[int(judged.error[0].argmin())][0]


def _hide_errors(curve: Curve) -> Curve:
    """The curve without standard errors: those of a single sample are not shown beside folds'."""
    nothing = np.full(curve.penalties.shape, np.nan)
    return replace(curve, validation=replace(curve.validation, se=nothing))


def _walk_on(
    rows: SplitEvidence, lasso: CandidateErrors, goal: ComparedGoal, uploads: int
) -> list[TrialFit]:
    """Walk an adaptive path and refit its supports, where moments are out of reach."""
    judged = [lasso]
    filled = [k for k, (point,) in enumerate(lasso.fits) if point.active]
    if filled:
        best = min(filled, key=lambda k: lasso.error[0, k])
        path = goal.adaptive
        forms = weigh_adaptively(lasso.fits[best], path.power)
        grid = log_grid(largest_of(rows, forms), _count(uploads, path.count), path.ratio)
        adaptive = judge_adaptive(rows, grid.tolist(), forms, uploads // 5)
        judged += [adaptive, judge_refits(rows, adaptive)]
    last = judged[-1]
    if goal.refits_only and last is not lasso and last.fits:
        found = [(last, point) for (point,) in last.fits]
    else:
        found = [(one, _best(one)) for one in judged if one.fits]
    return [TrialFit(one.candidate.name, point, point) for one, point in found]
