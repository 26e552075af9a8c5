"""Fit one model across the sites of a federation by a procedure at one penalty, and certify it."""

from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.fitting.local_penalty import choose_penalty, fix_penalty
from fedlasso.fitting.result import Fit, Status
from fedlasso.fitting.rounds import Run, after_rounds, within_uploads
from fedlasso.fitting.validation import Rule, validate
from fedlasso.numerics import (
    Array,
    Certificate,
    Penalty,
    certify_loss,
    certify_stationary,
    duality_gap,
    feasible_scale,
)
from fedlasso.procedures import Problem, Procedure, find_procedure
from fedlasso.sites import DualAt, FitAt, LossAt


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
        policy do not tell them

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
    problem = choose_penalty(ledger) if penalty is None else fix_penalty(ledger, penalty)
    run = Run(ledger, procedure, problem)
    in_rounds = after_rounds(rounds)
    in_uploads = within_uploads(uploads)

    def stop(run: Run[Any]) -> bool:
        return in_rounds(run) or in_uploads(run)

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
    slopes must be scaled down to be feasible, so it is asked for once that is known. A penalty
    without a duality gap, such as a non-convex one, takes loss and gradient alone.

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
        fit = federation.total(FitAt(b))
        gap = duality_gap(
            fit.residual_ss, fit.residual_y, fit.y_ss, fit.gradient / m, b, penalty, m
        )
        return Certificate(fit.residual_ss / (2 * m) + penalty.value(b), gap)
    at = federation.total(LossAt(b))
    gradient = at.gradient / m
    if not penalty.certifiable:
        return certify_stationary(at.loss / m, b, gradient, penalty)
    dual = federation.total(DualAt(b, feasible_scale(b, gradient, penalty))).value / m
    return certify_loss(at.loss / m, dual, b, gradient, penalty)
