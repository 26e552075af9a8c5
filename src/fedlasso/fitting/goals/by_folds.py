"""A choice by cross-validation with gradients, where second moments are too many.

The Lasso, the adaptive Lasso and its least-squares refits are fitted on the training rows of all
splits, penalty by penalty, and judged on the rows that each has not seen. The chosen one is then
fitted to all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedlasso.federation import metered
from fedlasso.fitting.candidates import LASSO, REFITTED, relaxed
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import PathPoint, SplitEvidence
from fedlasso.fitting.evidence.opening import PLAIN
from fedlasso.fitting.evidence.secant_evidence import SecantEvidence
from fedlasso.fitting.fit_plan import Gathered
from fedlasso.fitting.goals.adaptive import (
    REFIT_TOL,
    AdaptivePath,
    judge_adaptive,
    judge_refits,
    largest_of,
    weigh_adaptively,
)
from fedlasso.fitting.goals.holdout import TOL
from fedlasso.fitting.paths import step_down
from fedlasso.fitting.result import Fit, How, Status, Tuned
from fedlasso.fitting.tuning import CandidateErrors, choose_by_gradients, curve_of, judge_lasso
from fedlasso.numerics import L1
from fedlasso.sites import folds

if TYPE_CHECKING:
    from fedlasso.fitting.goals.compared import ComparedGoal

# The last fit, to all rows, is made as exact as uploads allow, up to this relative gap.
FINAL_TOL = 1e-6


def fit_by_folds(goal: ComparedGoal, context: Context, gathered: Gathered) -> Fit:
    """Choose among the Lasso, the adaptive Lasso and its refits, and fit the choice to all rows."""
    ledger = context.ledger
    before = ledger.costs
    settings = context.settings
    splits = folds(gathered.plan.folds, settings.seed)
    left = int(context.budget.left)
    budget = context.budget.part(left - left // (len(splits) + 1))
    evidence = SplitEvidence.open(ledger, splits, budget, PLAIN, **settings.scaling)
    lasso, cut = judge_lasso(evidence, reserve=0.5)
    best = lasso.validation.select("min")
    judged = [lasso]
    if lasso.validation.active[best] > 0:
        path = goal.adaptive
        forms = weigh_adaptively(lasso.fits[best], path.power)
        largest = largest_of(evidence, forms)
        step = path.ratio ** (1 / (path.count - 1))
        penalties = step_down(largest, step, path.ratio)
        adaptive = judge_adaptive(evidence, penalties, forms, evidence.each // 5)
        judged += [adaptive, judge_refits(evidence, adaptive)]
    rule = settings.rule_in_force
    one, at = choose_by_gradients(judged, (lasso, best), rule)
    spent = sum(part.budget.spent for part in evidence.parts.values())
    last = SecantEvidence(metered(gathered.view), context.budget.part(context.budget.left), PLAIN)
    point = fit_all(last, float(lasso.penalties[best]), one, at, goal.adaptive)
    arrived = point.arrived(TOL)
    return Fit.of_points(
        [point],
        0,
        last.problem,
        method=one.candidate.name,
        costs=ledger.costs - before,
        rounds=round(spent + last.budget.spent),
        status=Status.CHOSEN if arrived and not cut else Status.CUT,
        validation=one.validation.take(at),
        reason=Tuned(
            goal.name,
            one.candidate.name,
            point.active,
            {"min": How.SMALLEST, "1se": How.SPARSEST}[rule],
            sum(each.penalties.size for each in judged),
            folds=len(splits),
            all_rows=True,
        ),
        curve=curve_of(lasso, at if one is lasso else best, cut),
        plan=gathered.plan.words,
        view=gathered.view.view,
        scaling=gathered.scaling,
    )


def fit_all(
    evidence: SecantEvidence, lam: float, judged: CandidateErrors, at: int, path: AdaptivePath
) -> PathPoint:
    """Fit the chosen candidate to all rows; an adaptive one takes its weights from the Lasso."""
    chosen = float(judged.penalties[at])
    if judged.candidate is LASSO:
        return evidence.fit(L1(chosen), tol=FINAL_TOL)
    lasso = evidence.fit(L1(lam), tol=TOL)
    if not lasso.active:
        return lasso
    (form,) = weigh_adaptively([lasso], path.power)
    refits = judged.candidate is REFITTED
    tol = TOL if refits else FINAL_TOL
    adaptive = evidence.fit(form.at(chosen), lasso.coefficients, tol)
    if refits and adaptive.active:
        b = adaptive.coefficients
        return evidence.fit(relaxed(b, evidence.largest_penalty), b, REFIT_TOL)
    return adaptive
