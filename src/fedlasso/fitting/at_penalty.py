"""Fits at one penalty, by a procedure or for a goal, and the certificate of any model."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError, Refused
from fedlasso.federation import Federation, metered
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import SecantEvidence, SplitEvidence
from fedlasso.fitting.evidence.gradient_evidence import WIDE
from fedlasso.fitting.evidence.moment_evidence import vectors_of
from fedlasso.fitting.gradient_tuning import search_by_newton, search_penalty_curve
from fedlasso.fitting.joint_search import JointSearch
from fedlasso.fitting.local_penalty import choose_penalty, fix_penalty
from fedlasso.fitting.result import AtPenalty, Fit, Status
from fedlasso.fitting.rounds import Run, after_rounds, any_of, within_trips, within_uploads
from fedlasso.fitting.settings import Settings
from fedlasso.fitting.validation import Curve, Rule, validate
from fedlasso.numerics import (
    L1,
    Array,
    Certificate,
    Penalty,
    certify_loss,
    certify_stationary,
    duality_gap,
    feasible_scale,
)
from fedlasso.numerics.quadratic_lasso import solve_step
from fedlasso.procedures import Newton, Problem, Procedure, Secant, find_procedure
from fedlasso.procedures.newton_state import NewtonState
from fedlasso.procedures.secant import MomentSecant
from fedlasso.sites import DualAt, FitAt, LossAt
from fedlasso.sites.questions import FitSums

MOST_ROUNDS = 2000
# The smallest relative gap that sums of rounded numbers can certify for any loss.
FINEST_GAP = 1e-8
# Up to this one, rounding may be all that is left when such a fit ends by itself.
ROUNDED_GAP = 1e-6
# A fit at one penalty takes second moments up to so many vectors, and otherwise gradients.
MOST_MOMENTS = 25
POLISHING = 3
# Round trips for a certificate, and for errors or intercepts of the sites afterwards.
CERTIFYING = 3
# Round trips without which a fit at one penalty does not get far.
FIT_TRIPS = 6
HELD_OUT = "held-out rows"


def fit(
    federation: Federation,
    procedure: str | Procedure[Any] = "CD",
    *,
    penalty: float | Penalty | None = None,
    epochs: int = 1,
    rounds: int = 30,
    uploads: float = np.inf,
    rule: Rule = "min",
    keep_path: bool = False,
    certified: bool = True,
    tol: float = 1e-8,
    exact: bool = True,
    state: Any = None,
    sizes: Sequence[int] | None = None,
) -> Fit:
    """Fit one model across the sites of a federation by a procedure.

    Parameters
    ----------
    federation : the sites
    procedure : a name from the registry, or a procedure with its hyperparameters
    penalty : the common penalty; by default each site searches its own and the weighted mean of
        their choices is used
    epochs : local epochs per round, for a procedure given by name
    rounds : rounds of each path
    uploads : vectors of p numbers that a site may send for them
    rule : how the candidate is chosen on the second validation samples, ``"min"`` or ``"1se"``
    keep_path : keep every round's models
    certified : certify the fit, at one gradient and three scalars per site unless the procedure
        knows its certificate anyway
    tol : relative gap at which a certified fit counts as optimal
    exact : take standard errors from fourth powers of errors, as the paper does; sites with a
        policy do not send them
    state : where the procedure starts, if not at its own beginning
    sizes : training rows of each site, if known

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, fit
    >>> rng = np.random.default_rng(0)
    >>> sites = [Site(name, rng.standard_normal((30, 4)), rng.standard_normal(30)) for name in "ab"]
    >>> result = fit(InProcess(sites), "Secant", penalty=0.05)
    >>> result.status.name, result.costs.sites
    ('OPTIMAL', ('a', 'b'))
    """
    if isinstance(procedure, str):
        procedure = find_procedure(procedure)(epochs=epochs)
    if not isinstance(rounds, int | np.integer) or rounds < 1:
        raise FedLassoError(f"rounds is {rounds!r}; give a whole number, 1 or more")
    ledger = metered(federation)
    before = ledger.costs
    problem = choose_penalty(ledger) if penalty is None else fix_penalty(ledger, penalty, sizes)
    run = Run(ledger, procedure, problem, state=state)
    stop = any_of(after_rounds(rounds), within_uploads(uploads), within_trips(CERTIFYING))
    path = tuple(run.models for _ in run.rounds(stop)) if keep_path else None
    run.until(stop)
    candidates = run.models
    # A single model at a given penalty leaves nothing to choose, so nothing is asked or charged.
    chooses = penalty is None or candidates.shape[1] > 1
    validation = validate(ledger, candidates, exact=exact) if chooses else None
    chosen = validation.select(rule) if validation is not None else 0
    b = np.ascontiguousarray(candidates[:, chosen])
    certificate = procedure.certificate(problem, run.state) if certified else None
    if certified and certificate is None:
        certificate = certify(ledger, problem, b)
    status = Status.UNCERTIFIED
    if certificate is not None:
        best = Status.OPTIMAL if certificate.stationary is None else Status.STATIONARY
        arrived = certificate.reaches(tol, procedure.finest(problem, run.state))
        status = best if arrived else Status.SHORT
    return Fit(
        problem=problem,
        method=procedure.name,
        coefficients=b,
        certificate=certificate,
        costs=ledger.costs - before,
        rounds=run.state.round,
        status=status,
        candidates=candidates,
        chosen=chosen,
        settings=procedure.settings,
        validation=validation,
        path=path,
        state=run.state,
    )


def certify(federation: Federation, problem: Problem, b: Array) -> Certificate:
    """Certify a model by one gradient and a few scalars from every site.

    Least squares takes one question. For any other loss the dual value depends on how far the
    slopes must be scaled down to be feasible, so a second question follows. A penalty without a
    duality gap, such as a non-convex one, takes loss and gradient alone.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, certify
    >>> from fedlasso.fitting import fix_penalty
    >>> federation = InProcess([Site("a", np.eye(2), [1.0, 0.0])])
    >>> print(certify(federation, fix_penalty(federation, 1.0), np.zeros(2)))
    less than 0.000001% above the best possible objective
    """
    m = problem.m
    penalty = problem.penalty
    if problem.quadratic and penalty.certifiable:
        return _certify_squares(problem, b, federation.total(FitAt(b)))
    at = federation.total(LossAt(b))
    gradient = at.gradient / m
    if not penalty.certifiable:
        return certify_stationary(at.loss / m, b, gradient, penalty)
    dual = federation.total(DualAt(b, feasible_scale(b, gradient, penalty))).value / m
    return certify_loss(at.loss / m, dual, b, gradient, penalty)


def _certify_squares(problem: Problem, b: Array, fit: FitSums) -> Certificate:
    m = problem.m
    slopes = fit.gradient / m
    gap = duality_gap(fit.residual_ss, fit.residual_y, fit.y_ss, slopes, b, problem.penalty, m)
    return Certificate(fit.residual_ss / (2 * m) + problem.penalty.value(b), gap)


def solve_squares(
    view: Federation, problem: Problem, H: Array, score: Array, uploads: int, tol: float
) -> Fit:
    """Fit least squares by its second derivatives H and X'y / m, and certify that.

    Columns with an infinite penalty are left out. As long as a certificate shows rounding errors,
    its gradient corrects them; the best model is kept.
    """
    tol = max(tol, FINEST_GAP)
    ledger = metered(view)
    before = ledger.costs
    thresholds = problem.penalty.thresholds(problem.p)
    on = np.flatnonzero(np.isfinite(thresholds))
    H, thresholds = H[np.ix_(on, on)], thresholds[on]
    b = np.zeros(problem.p)
    b[on] = solve_step(H, -score[on], thresholds, b[on])[0]
    best: tuple[Certificate, Array] | None = None
    rounds = 0
    while rounds < uploads and (best is None or not best[0].reaches(tol)):
        rounds += 1
        total = ledger.total(FitAt(b))
        certificate = _certify_squares(problem, b, total)
        if best is None or certificate.gap < best[0].gap:
            best = certificate, b
        slopes = total.gradient[on] / problem.m + thresholds * np.sign(b[on])
        used = (b[on] != 0) | (thresholds == 0)
        step = np.linalg.lstsq(H[np.ix_(used, used)], slopes[used], rcond=None)[0]
        b = b.copy()
        b[on[used]] -= step
    assert best is not None
    certificate, b = best
    return Fit(
        problem=problem,
        method="least squares",
        coefficients=b,
        certificate=certificate,
        costs=ledger.costs - before,
        rounds=rounds,
        status=Status.OPTIMAL if certificate.reaches(tol) else Status.SHORT,
        candidates=b[:, None],
    )


def fit_exactly(view: Federation, penalty: float, uploads: int, tol: float) -> Fit:
    """Fit the pooled Lasso, by second moments if they are few and every site sends them.

    Second moments of p columns are about p/2 vectors; a gradient makes up for their rounding.
    """
    vectors = vectors_of(len(view.columns), 1) + POLISHING
    if vectors <= min(uploads, MOST_MOMENTS):
        try:
            return fit(view, MomentSecant(tol=tol), penalty=penalty, rounds=1 + POLISHING, tol=tol)
        except Refused:
            pass
    return fit_pooled(view, penalty, uploads, tol)


def fit_any_loss(
    view: Federation,
    penalty: Penalty,
    uploads: float,
    tol: float,
    state: NewtonState | None = None,
    sizes: Sequence[int] | None = None,
) -> Fit:
    """Fit any smooth loss to the rows of all sites, within so many uploads."""
    newton = Newton(tol=max(tol, FINEST_GAP))
    result = fit(
        view,
        newton,
        penalty=penalty,
        rounds=MOST_ROUNDS,
        uploads=uploads,
        tol=newton.tol,
        state=state,
        sizes=sizes,
    )
    assert isinstance(result.state, NewtonState)
    assert result.certificate is not None
    if result.state.step == "end" and result.certificate.reaches(ROUNDED_GAP):
        # It ended by itself: more rounds would not help.
        return replace(result, status=Status.OPTIMAL)
    return result


def finish(
    search: JointSearch,
    view: Federation,
    strength: float,
    uploads: float,
    tol: float,
    sizes: Sequence[int],
) -> Fit:
    """Complete the fit of a search to all rows at a penalty: by Newton, where it offers that."""
    penalty = search.form.at(strength)
    if not penalty.offers("thresholds"):
        search.complete(strength)
    search.refine(strength)
    if penalty.offers("thresholds"):
        return fit_any_loss(view, penalty, uploads, tol, search.state(strength), sizes)
    point = search.whole.best(penalty)
    return Fit(
        problem=replace(search.whole.problem, penalty=penalty),
        method=Newton.name,
        coefficients=point.b,
        certificate=point.certify(penalty),
        costs=search.whole.ledger.costs,
        rounds=search.trips,
        status=Status.OPTIMAL if search.has_arrived(strength) else Status.SHORT,
        candidates=point.b[:, None],
    )


def fit_pooled(view: Federation, penalty: float, uploads: int = 100, tol: float = 1e-6) -> Fit:
    """Fit the pooled Lasso to a relative gap."""
    if len(view.columns) <= WIDE:
        return fit(view, Secant(tol=tol), penalty=penalty, rounds=uploads, tol=tol)
    ledger = metered(view)
    before = ledger.costs
    evidence = SecantEvidence.open(ledger, Budget(ledger, uploads))
    point = evidence.fit(L1(penalty), tol=tol)
    return Fit.of_points(
        [point],
        0,
        evidence.problem,
        method=Secant.name,
        costs=ledger.costs - before,
        rounds=round(evidence.budget.spent),
        status=Status.OPTIMAL if point.arrived(tol) else Status.SHORT,
    )


def search_and_fit(
    context: Context, splits: tuple[str, ...], plan: str, judged_on: str = HELD_OUT
) -> Fit:
    """Let held-out rows choose the penalty, within two thirds of the budget, and fit there."""
    settings = context.settings
    budget = context.budget.part(context.budget.left * 2 // 3)
    if settings.plain:
        evidence = SplitEvidence.open(context.standardiser, splits, budget, context.form)
        judged_on = _count_splits(context, splits, evidence.splits, judged_on)
        curve = search_penalty_curve(evidence, settings.rule_in_force)
        return fit_at(context, curve.lam, curve, plan, judged_on)
    tol = np.inf if settings.procedure else max(settings.tol, FINEST_GAP)
    search = JointSearch.open(
        context.standardiser, splits, context.form, budget, tol, settings.rule_in_force
    )
    judged_on = _count_splits(context, splits, [own.name for own in search.splits], judged_on)
    curve = search.find_curve()
    curve = search_by_newton(context, splits, budget, curve) if search.stuck else curve
    own = None if settings.procedure else search
    return fit_at(context, curve.lam, curve, plan, judged_on, own)


def _count_splits(
    context: Context, splits: Sequence[str], used: Sequence[str], judged_on: str
) -> str:
    """Return what judges, and say if some folds cannot."""
    if not 1 < len(used) < len(splits):
        return judged_on
    context.notify(
        f"{len(splits) - len(used)} of {len(splits)} folds left out: no rows held out, or one kind "
        "of response among all others"
    )
    return f"{len(used)} of {judged_on}"


def fit_at(
    context: Context,
    strength: float,
    curve: Curve | None = None,
    plan: str = "",
    judged_on: str = HELD_OUT,
    search: JointSearch | None = None,
) -> Fit:
    """Fit all rows at one penalty: by a procedure, by second moments or by gradients.

    A fit by gradients goes on from the models of a `search`.
    """
    settings = context.settings
    if search is None:
        context.budget.require_trips(FIT_TRIPS, "a fit at a penalty")
    if search is None and settings.procedure is None and not settings.plain:
        tol = max(settings.tol, FINEST_GAP)
        rule = settings.rule_in_force
        search = JointSearch.open(context.standardiser, (), context.form, context.budget, tol, rule)
        search.complete(strength)
    view, scaling = context.standardise(settings.final_split)
    left = int(context.budget.left)
    if search is None or not search.has_arrived(strength):
        context.budget.require(left)
    penalty = context.form.scaled(scaling.factors).at(strength)
    if settings.procedure is not None:
        procedure = find_procedure(settings.procedure)(epochs=settings.epochs)
        rounds = max(1, left // procedure.paths)
        rule = settings.rule or "min"
        result = fit(view, procedure, penalty=penalty, rounds=rounds, rule=rule, exact=False)
    elif settings.plain:
        result = fit_exactly(view, strength, left, settings.tol)
    else:
        assert search is not None
        result = finish(search, view, strength, left, settings.tol, scaling.sizes)
    reason = _explain(settings, result, judged_on)
    return replace(result, reason=reason, curve=curve, plan=plan, view=view.view, scaling=scaling)


def _explain(settings: Settings, result: Fit, judged_on: str) -> AtPenalty:
    """Return why a fit at one penalty was made."""
    requested = settings.requested_goal.name
    # A goal that the loss or the penalty reduces to one penalty keeps its name.
    goal = settings.goal_by_name
    return AtPenalty(
        goal=goal,
        model=settings.name_with_family(settings.model_name),
        rule=None if settings.penalty is not None else settings.rule_in_force,
        error=settings.response_family.error,
        judged_on=judged_on,
        method=result.method,
        rounds=result.rounds,
        instead_of=requested if goal != requested else None,
        why_lasso=settings.why_lasso,
    )
