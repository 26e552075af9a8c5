"""The one round loop, and what a fit is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs, Federation, Ledger, metered
from fedlasso.fitting.goals import Goal, pursue
from fedlasso.fitting.session import PathPoint
from fedlasso.fitting.tuning import Rule, Validation, choose_penalty, fix_penalty, validate
from fedlasso.numerics import Array, duality_gap
from fedlasso.numerics.certificate import Certificate
from fedlasso.procedures import Problem, Procedure, Secant, State, find_procedure
from fedlasso.sites import FitAt

S = TypeVar("S", bound=State)


def prepare(ledger: Ledger, procedure: Procedure[Any]) -> tuple[Any, ...]:
    """Replies to whatever the procedure asks before its first round."""
    question = procedure.prepare()
    return ledger.ask(question) if question is not None else ()


def begin(ledger: Ledger, procedure: Procedure[S], problem: Problem) -> S:
    """The first state, after that question."""
    return procedure.start(problem, prepare(ledger, procedure))


def iterate(ledger: Ledger, procedure: Procedure[S], problem: Problem, state: S) -> Iterator[S]:
    """Round after round until the procedure is done, or nobody takes the next state."""
    while not procedure.done(problem, state):
        replies = ledger.ask(procedure.request(problem, state))
        with ledger.clock("training"):
            state = procedure.advance(problem, state, replies)
        yield state


def certify(federation: Federation, problem: Problem, b: Array) -> Certificate:
    """Certify a model by one gradient and three scalars from every site."""
    sums = federation.ask(FitAt(b))
    gradient = np.sum([s.gradient for s in sums], axis=0) / problem.m
    rss = sum(s.residual_ss for s in sums)
    ry = sum(s.residual_y for s in sums)
    yy = sum(s.y_ss for s in sums)
    gap = duality_gap(rss, ry, yy, gradient, b, problem.lam, problem.m)
    objective = rss / (2 * problem.m) + problem.lam * float(np.abs(b).sum())
    return Certificate(objective, gap)


class Status(Enum):
    """How a fit ended; the text says what to do."""

    OPTIMAL = "The fit is the pooled Lasso to the tolerance asked for. Nothing to do."
    SHORT = (
        "The rounds are used up before the pooled Lasso was reached. Read the certificate; if it "
        "is too loose, give more rounds or another procedure."
    )
    CHOSEN = (
        "The model was chosen for the goal, not for one objective. Read `why`; the certificate is "
        "about the penalty, weights and support of the chosen candidate."
    )
    UNCERTIFIED = "No certificate was asked for. Fit with certify=True to know the distance."


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of a fit.

    Attributes
    ----------
    coefficients : the chosen model
    candidates : every candidate model, one a column
    chosen : index of the chosen candidate
    setting : its threshold, rate or (in a fit by goal) penalty
    validation : pooled validation errors, if there was anything to choose
    path : every round's candidate models, if asked for
    state : what a further round would start from
    costs : what passed between server and sites
    certificate : distance to the pooled Lasso, if asked for
    settings : thresholds, rates or penalties of the candidates
    why : in a fit by goal, what was chosen and why, in one line
    explored : in a fit by goal, the Lasso path with its errors on the first validation samples
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
    settings: tuple[float, ...]
    why: str = ""
    explored: tuple[tuple[PathPoint, float], ...] = ()

    @property
    def setting(self) -> float:
        """Threshold, rate or penalty of the chosen candidate."""
        return self.settings[self.chosen]


def fit(
    federation: Federation,
    procedure: str | Procedure[Any] | None = None,
    *,
    goal: Goal | None = None,
    uploads: int = 100,
    lam: float | None = None,
    epochs: int = 1,
    rounds: int = 30,
    rule: Rule = "min",
    keep_path: bool = False,
    certified: bool = True,
    tol: float = 1e-8,
) -> Fit:
    """Fit one Lasso across the sites of a federation.

    Say either which procedure to run (CD by default), or what the model is for.

    Parameters
    ----------
    federation : the sites
    procedure : a name from the registry, or a procedure with its hyperparameters
    goal : ``"prediction"`` or ``"selection"`` (penalty and candidates are chosen on the validation
        samples), or ``"objective"`` (the pooled Lasso at `lam`, by Secant until `tol`)
    uploads : with a goal: how many vectors of p numbers each site may send; never more are sent
    lam : the common penalty; by default each site searches its own and the weighted mean is used
    epochs : local epochs a round, for a procedure given by name
    rounds : rounds of each path; with a goal, `uploads` says it
    rule : how the candidate is chosen on the second validation samples, ``"min"`` or ``"1se"``
    keep_path : keep every round's models
    certified : certify the fit, at one gradient and three scalars per site unless the procedure
        knows its certificate anyway
    tol : relative gap at which a certified fit counts as optimal
    """
    if goal is not None:
        if procedure is not None:
            raise FedLassoError("give a procedure or a goal, not both; a goal picks its procedure")
        if goal != "objective":
            return _fit_for(metered(federation), goal, uploads, lam, rule)
        procedure, rounds = Secant(tol=tol), uploads
    elif procedure is None:
        procedure = "CD"
    if isinstance(procedure, str):
        procedure = find_procedure(procedure)(epochs=epochs)
    if not isinstance(rounds, int | np.integer) or rounds < 1:
        raise FedLassoError(f"rounds is {rounds!r}; give a whole number, 1 or more")
    ledger = metered(federation)
    before = ledger.costs
    problem = choose_penalty(ledger) if lam is None else fix_penalty(ledger, lam)
    first = state = begin(ledger, procedure, problem)
    path: list[Array] = []
    for state in islice(iterate(ledger, procedure, problem, first), rounds):
        if keep_path:
            path.append(procedure.models(problem, state))
    candidates = procedure.models(problem, state)
    # A single model at a given penalty leaves nothing to choose, so nothing is asked or charged.
    chooses = lam is None or candidates.shape[1] > 1
    validation = validate(ledger, candidates) if chooses else None
    chosen = validation.select(rule) if validation is not None else 0
    b = np.ascontiguousarray(candidates[:, chosen])
    certificate = procedure.certificate(problem, state) if certified else None
    if certified and certificate is None:
        certificate = certify(ledger, problem, b)
    return Fit(
        procedure=procedure,
        problem=problem,
        rounds=state.round,
        coefficients=b,
        candidates=candidates,
        chosen=chosen,
        validation=validation,
        path=tuple(path) if keep_path else None,
        state=state,
        costs=ledger.costs - before,
        certificate=certificate,
        status=_status(certificate, tol),
        settings=procedure.settings,
        why=_WHY_SECANT.format(state.round, uploads) if goal is not None else "",
    )


_WHY_SECANT = "goal 'objective': Secant, which needs few uploads and sums only ({} of {} used)"


def _fit_for(ledger: Ledger, goal: Goal, uploads: int, lam: float | None, rule: Rule) -> Fit:
    """A fit by goal, told as any other fit."""
    if lam is not None:
        raise FedLassoError(f"goal {goal!r} chooses its penalty; leave lam out, or fit 'objective'")
    before = ledger.costs
    pursuit = pursue(ledger, goal, uploads, rule)
    point = pursuit.points[pursuit.chosen]
    return Fit(
        procedure=Secant(),
        problem=replace(pursuit.explorer.problem, lam=point.lam),
        rounds=pursuit.explorer.spent,
        coefficients=point.coefficients,
        candidates=np.column_stack([p.coefficients for p in pursuit.points]),
        chosen=pursuit.chosen,
        validation=pursuit.validation,
        path=None,
        state=pursuit.explorer.state(point),
        costs=ledger.costs - before,
        certificate=point.certificate,
        status=Status.CHOSEN,
        settings=tuple(p.lam for p in pursuit.points),
        why=pursuit.why,
        explored=pursuit.lasso,
    )


def _status(certificate: Certificate | None, tol: float) -> Status:
    if certificate is None:
        return Status.UNCERTIFIED
    return Status.OPTIMAL if certificate.relative_gap <= tol else Status.SHORT


__all__ = [
    "Certificate",
    "Fit",
    "Status",
    "begin",
    "certify",
    "fit",
    "iterate",
    "prepare",
]
