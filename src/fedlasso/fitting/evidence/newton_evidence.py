"""Evidence for any smooth loss: working set, curvature and model of the last fit."""

from dataclasses import replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Ledger
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.evidence.evidence import PathPoint, Wanted
from fedlasso.fitting.evidence.gradient_evidence import GradientEvidence
from fedlasso.fitting.local_penalty import fix_penalty
from fedlasso.fitting.rounds import Asking, Run, within_uploads
from fedlasso.numerics import L1, Array, Certificate, Penalty
from fedlasso.procedures import Newton


class NewtonEvidence(GradientEvidence):
    """Fits of one loss at several penalties of one form, each from where the last one ended.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, open_evidence
    >>> X = np.random.default_rng(0).standard_normal((60, 4))
    >>> site = Site("a", X, (X[:, 0] > 0.3).astype(float), loss="binomial")
    >>> evidence = open_evidence(InProcess([site]), uploads=30)
    >>> evidence.fit(evidence.form.at(0.5 * evidence.largest_penalty)).active
    1
    """

    path_tol = 1e-3
    path_penalties = 20

    def __init__(self, ledger: Ledger, budget: Budget, form: Penalty) -> None:
        self.ledger = ledger
        self.budget = budget
        self.form = form
        p = len(ledger.columns)
        # All that pays is kept at zero: what is left is the model without any column.
        empty = L1(0.0, np.where(form.free(p), 0.0, np.inf), bounds=form.bounds)
        self.problem = fix_penalty(ledger, empty)
        run = Run(ledger, Newton(tol=self.path_tol), self.problem)
        out = within_uploads(budget.left)
        run.until(lambda run: run.state.step == "bound" or out(run))
        if run.state.step != "bound":
            raise FedLassoError(
                f"uploads is {budget.vectors:.0f}, too few for a model without any column; give "
                "more"
            )
        budget.spend(run.uploads)
        self.state = run.state
        self._first_slopes = run.state.slopes

    @property
    def first_slopes(self) -> Array:
        return self._first_slopes

    def asking(self, wanted: Wanted) -> Asking[PathPoint]:
        penalty = wanted.penalty
        problem = replace(self.problem, penalty=penalty)
        newton = Newton(tol=wanted.tol)
        run = Run(self.ledger, newton, problem, state=newton.go_on(problem, self.state))
        state = yield from run.asking(within_uploads(self.budget.left - wanted.reserve))
        self.budget.spend(run.uploads)
        self.state = state
        objective = state.loss + penalty.value(state.b)
        certificate = newton.certificate(problem, state) or Certificate(objective, np.inf)
        deviance = 2 * problem.m * state.loss
        return PathPoint(penalty, state.b, deviance, certificate, newton.finest(problem, state))
