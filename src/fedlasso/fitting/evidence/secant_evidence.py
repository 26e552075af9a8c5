"""Evidence for least squares: what a gradient says about the curvature holds at every penalty."""

from dataclasses import replace

import numpy as np

from fedlasso.federation import Ledger
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.evidence.evidence import PathPoint, Wanted
from fedlasso.fitting.evidence.gradient_evidence import GradientEvidence
from fedlasso.fitting.local_penalty import fix_penalty
from fedlasso.fitting.rounds import Asking, Run, after_rounds
from fedlasso.numerics import Array, Penalty, Secants
from fedlasso.procedures import Secant


class SecantEvidence(GradientEvidence):
    """The pooled curvature as far as gradients have shown it: many fits share every direction."""

    path_tol = 0.01
    path_penalties = 30

    def __init__(self, ledger: Ledger, budget: Budget, form: Penalty) -> None:
        self.ledger = ledger
        self.budget = budget
        self.form = form
        self.problem = fix_penalty(ledger, 0.0)
        run = Run(ledger, Secant(), self.problem)
        self.known: Secants = run.until(after_rounds(1)).secants
        budget.spend(1)

    @property
    def first_slopes(self) -> Array:
        return -self.known.c

    def asking(self, wanted: Wanted) -> Asking[PathPoint]:
        penalty = wanted.penalty
        best = np.zeros(self.problem.p)
        if wanted.start is not None:
            warm = np.where(np.isfinite(penalty.thresholds(self.problem.p)), wanted.start, 0.0)
            # Only a model in the span of what was asked has a known objective.
            if self.known.direction(warm) is None:
                best = warm
        if not self._point(best, penalty).arrived(wanted.tol):
            problem = replace(self.problem, penalty=penalty)
            secant = Secant(tol=wanted.tol)
            spent = round(self.budget.spent)
            state = secant.go_on(problem, self.known, best, spent)
            run = Run(self.ledger, secant, problem, state=state)
            state = yield from run.asking(after_rounds(int(self.budget.vectors) - wanted.reserve))
            self.known = state.secants
            self.budget.spend(state.round - spent)
            best = state.best
        return self._point(best, penalty)

    def _point(self, b: Array, penalty: Penalty) -> PathPoint:
        """A model in the span of what was asked, with its certificate."""
        rss = 2 * self.problem.m * self.known.loss(b)
        return PathPoint(penalty, b, rss, self.known.certificate(b, penalty), self.known.finest(b))
