"""Fit one model across the sites of a federation by a procedure at one penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.fitting.certify import certify
from fedlasso.fitting.results import Fit, Status
from fedlasso.fitting.rounds import Run, after_rounds
from fedlasso.fitting.tuning import Rule, choose_penalty, fix_penalty, validate
from fedlasso.numerics import Certificate, Penalty
from fedlasso.procedures import Procedure, find_procedure


def fit(
    federation: Federation,
    procedure: str | Procedure[Any] = "CD",
    *,
    penalty: float | Penalty | None = None,
    epochs: int = 1,
    rounds: int = 30,
    rule: Rule = "min",
    keep_path: bool = False,
    certified: bool = True,
    tol: float = 1e-8,
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
    rule : how the candidate is chosen on the second validation samples, ``"min"`` or ``"1se"``
    keep_path : keep every round's models
    certified : certify the fit, at one gradient and three scalars per site unless the procedure
        knows its certificate anyway
    tol : relative gap at which a certified fit counts as optimal

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
    stop = after_rounds(rounds)
    path = tuple(run.models for _ in run.rounds(stop)) if keep_path else None
    run.until(stop)
    candidates = run.models
    # A single model at a given penalty leaves nothing to choose, so nothing is asked or charged.
    chooses = penalty is None or candidates.shape[1] > 1
    validation = validate(ledger, candidates) if chooses else None
    chosen = validation.select(rule) if validation is not None else 0
    b = np.ascontiguousarray(candidates[:, chosen])
    certificate = procedure.certificate(problem, run.state) if certified else None
    if certified and certificate is None:
        certificate = certify(ledger, problem, b)
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
        status=_status(certificate, tol),
    )


def _status(certificate: Certificate | None, tol: float) -> Status:
    if certificate is None:
        return Status.UNCERTIFIED
    return Status.OPTIMAL if certificate.relative_gap <= tol else Status.SHORT
