"""Fit one model across the sites of a federation by a procedure at one penalty, and certify it."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs, Federation, metered
from fedlasso.fitting.rounds import Run, after_rounds, within_uploads
from fedlasso.fitting.tuning import Rule, Validation, choose_penalty, fix_penalty, validate
from fedlasso.numerics import (
    Array,
    Certificate,
    Penalty,
    certify_loss,
    duality_gap,
    feasible_scale,
)
from fedlasso.procedures import Problem, Procedure, State, find_procedure
from fedlasso.sites import DualAt, FitAt, LossAt


class Status(Enum):
    """How a fit ended; the text says what to do.

    Examples
    --------
    >>> from fedlasso import Status
    >>> print(Status.OPTIMAL.value)
    The fit is the pooled Lasso to the tolerance asked for, or as far as rounding allows.
    """

    OPTIMAL = (
        "The fit is the pooled Lasso to the tolerance asked for, or as far as rounding allows."
    )
    SHORT = (
        "The rounds are used up before the pooled Lasso was reached. Read the certificate; if it "
        "is too loose, give more rounds or another procedure."
    )
    CHOSEN = (
        "The model was chosen for the goal, not for one objective. Read `why`; the certificate is "
        "about the penalty, weights and support of the chosen candidate."
    )
    CUT = (
        "The uploads ended before the search did, so another penalty may do better. Give more "
        "uploads, or fewer folds."
    )
    UNCERTIFIED = "No certificate was asked for. Fit with certified=True to know the distance."


@dataclass(frozen=True, eq=False)
class Fit:
    """What a procedure made of one problem.

    Attributes
    ----------
    procedure, problem : what was run, and on what
    rounds : how many rounds were run
    coefficients : the chosen model
    candidates : every candidate model, one per column
    chosen : index of the chosen candidate
    validation : pooled validation errors, if there was anything to choose
    path : every round's candidate models, if asked for
    state : what a further round would start from
    costs : what passed between server and sites
    certificate : distance to the best possible objective, if asked for
    status : how the fit ended

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, fit
    >>> result = fit(InProcess([Site("a", np.eye(3), [3.0, 2.0, 0.1])]), "CD", penalty=0.5)
    >>> result.coefficients
    array([1.5, 0.5, 0. ])
    """

    procedure: Procedure[Any]
    problem: Problem
    rounds: int
    coefficients: Array
    candidates: Array
    chosen: int
    validation: Validation | None
    path: tuple[Array, ...] | None
    state: State
    costs: Costs
    certificate: Certificate | None
    status: Status

    @property
    def penalty(self) -> Penalty:
        """The penalty of the model."""
        return self.problem.penalty

    @property
    def method(self) -> str:
        """Name of the procedure."""
        return self.procedure.name

    @property
    def setting(self) -> float:
        """Threshold or rate of the chosen candidate."""
        return self.procedure.settings[self.chosen]


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
        arrived = certificate.relative_gap <= tol
        arrived = arrived or certificate.gap <= procedure.finest(problem, run.state)
        status = Status.OPTIMAL if arrived else Status.SHORT
    return Fit(
        procedure=procedure,
        problem=problem,
        rounds=run.state.round,
        coefficients=b,
        candidates=candidates,
        chosen=chosen,
        validation=validation,
        path=path,
        state=run.state,
        costs=ledger.costs - before,
        certificate=certificate,
        status=status,
    )


def certify(federation: Federation, problem: Problem, b: Array) -> Certificate:
    """Certify a model by one gradient and a few scalars from every site.

    Least squares takes one question. For any other loss the dual value depends on how far the
    slopes must be scaled down to be feasible, so it is asked for once that is known.

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
    if problem.loss == "quadratic":
        fit = federation.total(FitAt(b))
        gap = duality_gap(
            fit.residual_ss, fit.residual_y, fit.y_ss, fit.gradient / m, b, penalty, m
        )
        return Certificate(fit.residual_ss / (2 * m) + penalty.value(b), gap)
    at = federation.total(LossAt(b))
    gradient = at.gradient / m
    dual = federation.total(DualAt(b, feasible_scale(b, gradient, penalty))).value / m
    return certify_loss(at.loss / m, dual, b, gradient, penalty)
