"""The fit at one penalty, and the penalty that settings specify."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.errors import FedLassoError, Refused
from fedlasso.federation import Federation
from fedlasso.fitting.evidence.moment_evidence import vectors_of
from fedlasso.fitting.evidence.split_evidence import SplitEvidence
from fedlasso.fitting.goal import lasso_goal
from fedlasso.fitting.procedure_fit import fit
from fedlasso.fitting.result import AtPenalty, Fit
from fedlasso.fitting.settings import Settings
from fedlasso.fitting.tuning import search_penalty_curve
from fedlasso.fitting.validation import Curve
from fedlasso.numerics import L1, Bounds, ElasticNet, Penalty
from fedlasso.procedures import Newton, Secant, find_procedure
from fedlasso.procedures.secant import MomentSecant
from fedlasso.sites import INTERCEPT

if TYPE_CHECKING:
    from fedlasso.fitting.context import Context

MOST_ROUNDS = 2000
FINEST = 1e-8
# A fit at one penalty asks for second moments up to so many vectors, and then for gradients.
MOST_MOMENTS = 25
POLISHING = 3
# Vectors that each site may send by default.
GRADIENTS = 300
HELD_OUT = "held-out rows"


def penalty_of(settings: Settings, columns: Sequence[str]) -> Penalty:
    """Return the penalty that settings specify over the sites' columns, at strength one.

    Bounds are those of coefficients on the original scale.
    """
    check_names("keep", settings.keep, columns)
    check_names("bound", settings.bounds, columns)
    check_names("give an interval to", settings.named, columns)
    weights = np.array([float(name not in (*settings.keep, INTERCEPT)) for name in columns])
    bounds = None
    if settings.bounds:
        ends = [settings.bounds.get(name, (None, None)) for name in columns]
        lower = np.array([-np.inf if low is None else low for low, _ in ends], np.float64)
        upper = np.array([np.inf if high is None else high for _, high in ends], np.float64)
        bounds = Bounds(lower, upper)
    own = None if weights.all() else weights
    if settings.l1_ratio == 1.0:
        return L1(1.0, own, bounds=bounds)
    return ElasticNet(1.0, own, settings.l1_ratio, bounds=bounds)


def check_names(what: str, names: Iterable[str], columns: Sequence[str]) -> None:
    """Refuse a name that no column has."""
    known = [column for column in columns if column != INTERCEPT]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "name a column of the sites"
            raise FedLassoError(f"no column to {what} is called {name!r}; {hint}")


def search_and_fit(
    context: Context, splits: tuple[str, ...], plan: str, judged_on: str = HELD_OUT
) -> Fit:
    """Let held-out rows choose the penalty, within two thirds of the budget, and fit there."""
    settings = context.settings
    budget = context.budget.part(context.budget.left * 2 // 3)
    evidence = SplitEvidence.open(context.ledger, splits, budget, context.form, **settings.scaling)
    curve = search_penalty_curve(evidence, settings.rule_in_force)
    return fit_at(context, curve.lam, curve, plan, judged_on)


def fit_at(
    context: Context,
    strength: float,
    curve: Curve | None = None,
    plan: str = "",
    judged_on: str = HELD_OUT,
) -> Fit:
    """Fit all rows at one penalty: by a procedure, by second moments or by gradients."""
    settings = context.settings
    view, scaling = context.standardise(settings.final_split)
    left = int(context.budget.left)
    context.budget.require(left)
    penalty = context.form.scaled(scaling.factors).at(strength)
    if settings.procedure is not None:
        procedure = find_procedure(settings.procedure)(epochs=settings.epochs)
        rounds = max(1, left // procedure.paths)
        chooses = settings.rule or "min"
        result = fit(view, procedure, penalty=penalty, rounds=rounds, rule=chooses, exact=False)
    elif settings.plain:
        result = fit_exactly(view, strength, left, settings.tol)
    else:
        result = fit_curved(view, penalty, left, settings.tol)
    reason = _explain(settings, result, judged_on)
    return replace(result, reason=reason, curve=curve, plan=plan, view=view.view, scaling=scaling)


def _explain(settings: Settings, result: Fit, judged_on: str) -> AtPenalty:
    """Why a fit at one penalty is what it is."""
    lasso = lasso_goal().name
    # Whatever the loss or the penalty leaves of a goal goes by its name.
    asked = settings.goal if settings.procedure is None and not settings.plain else None
    return AtPenalty(
        goal=asked or lasso,
        model=settings.name_with_family(settings.model_name),
        rule=None if settings.penalty is not None else settings.rule_in_force,
        error=settings.response_family.error,
        judged_on=judged_on,
        method=result.method,
        rounds=result.rounds,
        instead_of=settings.goal if settings.goal not in (None, lasso, asked) else None,
    )


def fit_exactly(view: Federation, penalty: float, uploads: int, tol: float) -> Fit:
    """Fit the Lasso of all sites' rows together, in few rounds where its columns are few.

    Second moments of p columns are about p/2 vectors, and a gradient makes up for their rounding.
    Where that is too much, or a site does not send them, gradients do without.
    """
    vectors = vectors_of(len(view.columns), 1) + POLISHING
    if vectors <= min(uploads, MOST_MOMENTS):
        try:
            return fit(view, MomentSecant(tol=tol), penalty=penalty, rounds=1 + POLISHING, tol=tol)
        except Refused:
            pass
    return fit_pooled(view, penalty, uploads, tol)


def fit_curved(view: Federation, penalty: Penalty, uploads: float, tol: float) -> Fit:
    """Fit any smooth loss of all sites' rows together, within so many uploads."""
    # A certificate is no finer than sums of rounded numbers allow.
    newton = Newton(tol=max(tol, FINEST))
    return fit(view, newton, penalty=penalty, rounds=MOST_ROUNDS, uploads=uploads, tol=newton.tol)


def fit_pooled(view: Federation, penalty: float, uploads: int = 100, tol: float = 1e-6) -> Fit:
    """Fit the Lasso of all sites' rows together, to a relative gap."""
    return fit(view, Secant(tol=tol), penalty=penalty, rounds=uploads, tol=tol)
