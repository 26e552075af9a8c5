"""Evidence from gradients on one set of rows: secants for least squares, Newton for any loss."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, Ledger, metered
from fedlasso.fitting.budget import LAST_TRIPS, Budget
from fedlasso.fitting.evidence.evidence import Evidence, PathPoint, Wanted
from fedlasso.fitting.local_penalty import fix_penalty
from fedlasso.fitting.paths import log_grid
from fedlasso.fitting.rounds import (
    Asking,
    Run,
    after_rounds,
    any_of,
    run_together,
    within_trips,
    within_uploads,
)
from fedlasso.numerics import L1, Array, Certificate, Penalty, Secants, find_loss
from fedlasso.procedures import Newton, Problem, Secant
from fedlasso.procedures.newton_state import NewtonState
from fedlasso.sites import INTERCEPT

PLAIN_LASSO = L1(1.0)
# With more columns than this, a fit from zero goes down a path: at a small penalty, a model of the
# curvature from a few gradients has thousands of active columns and takes minutes to solve.
WIDE = 500
SMALLEST = 1e-6
# Held-out errors take one more round trip.
SEARCHING = within_trips(LAST_TRIPS + 1)


class GradientEvidence(Evidence):
    """Evidence that grows with every gradient, so that each fit starts from those before it.

    Attributes
    ----------
    ledger, problem : the sites, and the pooled problem
    budget : what each site may send
    form : the penalty at strength one
    path_tol, path_penalties : relative gap of the fits on a path, and the size of its grid
    """

    path_tol: ClassVar[float]
    path_penalties: ClassVar[int]
    problem: Problem

    def __init__(
        self,
        ledger: Ledger,
        budget: Budget,
        form: Penalty = PLAIN_LASSO,
        sizes: Sequence[int] | None = None,
    ) -> None:
        self.ledger = ledger
        self.budget = budget
        self.form = form
        self.problem = fix_penalty(ledger, self._first_penalty, sizes)

    @classmethod
    def open(cls, ledger: Ledger, budget: Budget, form: Penalty = PLAIN_LASSO) -> Self:
        """Return evidence with its first gradients."""
        evidence = cls(ledger, budget, form)
        run_together([evidence.opening()])
        return evidence

    @property
    @abstractmethod
    def _first_penalty(self) -> Penalty:
        """The penalty of the model of the unpenalised columns alone."""

    @abstractmethod
    def opening(self) -> Asking[None]:
        """Ask for the first gradients, as one of several whose questions go out together."""

    @property
    @abstractmethod
    def first_slopes(self) -> Array:
        """The mean gradient of the loss at the model of the unpenalised columns alone."""

    @property
    def largest_penalty(self) -> float:
        """The smallest penalty at which every penalised coefficient is zero."""
        return self.form.largest(self.first_slopes)

    @property
    def stalled(self) -> bool:
        """Whether the last fit ended because of rounding errors, with uploads left."""
        return False

    @abstractmethod
    def asking(self, wanted: Wanted) -> Asking[PathPoint]:
        """Make one fit, as one of several whose questions go out together."""

    def fit_many(self, wanted: Sequence[Wanted]) -> tuple[PathPoint, ...]:
        """Make fits to the same rows one after another: each learns from those before."""
        return tuple(run_together([self.asking(one)])[0] for one in wanted)

    def grid(self, count: int = 20, ratio: float = 0.05) -> list[Penalty]:
        """Return penalties from the largest useful one down to a fraction of it, log-spaced."""
        return [self.form.at(lam) for lam in log_grid(self.largest_penalty, count, ratio).tolist()]

    def path(self, penalties: Sequence[Penalty], tol: float = 0.01) -> tuple[PathPoint, ...]:
        """Fit at decreasing penalties, each from the fit before, while uploads last."""
        points: list[PathPoint] = []
        for penalty in penalties:
            start = points[-1].coefficients if points else None
            point = self.fit(penalty, start, tol)
            if not point.arrived(tol):
                break
            points.append(point)
        return tuple(points)


class SecantEvidence(GradientEvidence):
    """The curvature of least squares along the gradients so far, which holds at every penalty."""

    path_tol = 0.01
    path_penalties = 30

    known: Secants

    @property
    def _first_penalty(self) -> Penalty:
        return L1(0.0)

    def opening(self) -> Asking[None]:
        state = yield from Run(self.ledger, Secant(), self.problem).asking(after_rounds(1))
        self.known = state.secants
        self.budget.spend(1)

    @property
    def first_slopes(self) -> Array:
        return -self.known.c

    def asking(self, wanted: Wanted) -> Asking[PathPoint]:
        penalty = wanted.penalty
        best = np.zeros(self.problem.p)
        if wanted.start is not None:
            warm = np.where(np.isfinite(penalty.thresholds(self.problem.p)), wanted.start, 0.0)
            # Only a model in the span of the directions so far has a known objective.
            if self.known.direction(warm) is None:
                best = warm
        if self.problem.p > WIDE and not best.any():
            largest = penalty.largest(self.first_slopes)
            lam = largest / 2
            while lam > max(penalty.lam, SMALLEST * largest):
                best = yield from self._approach(penalty.at(lam), best, wanted)
                lam /= 2
        best = yield from self._approach(penalty, best, wanted, wanted.tol)
        return self._point(best, penalty)

    def _approach(
        self, penalty: Penalty, best: Array, wanted: Wanted, tol: float = path_tol
    ) -> Asking[Array]:
        """Return a model within the tolerance, or the best that the uploads allow."""
        if self._point(best, penalty).arrived(tol):
            return best
        problem = replace(self.problem, penalty=penalty)
        secant = Secant(tol=tol)
        spent = round(self.budget.spent)
        state = secant.go_on(problem, self.known, best, spent)
        run = Run(self.ledger, secant, problem, state=state)
        rounds = int(self.budget.vectors) - wanted.reserve
        state = yield from run.asking(any_of(after_rounds(rounds), SEARCHING))
        self.known = state.secants
        self.budget.spend(state.round - spent)
        return state.best

    def _point(self, b: Array, penalty: Penalty) -> PathPoint:
        """Certify a model in the span of the directions so far."""
        rss = 2 * self.problem.m * self.known.loss(b)
        return PathPoint(penalty, b, rss, self.known.certificate(b, penalty), self.known.finest(b))


class NewtonEvidence(GradientEvidence):
    """Working set, curvature and model of the last fit, for any smooth loss."""

    path_tol = 1e-3
    path_penalties = 20

    state: NewtonState
    _first_slopes: Array

    @property
    def _first_penalty(self) -> Penalty:
        # Infinite weights leave the unpenalised columns alone.
        weights = np.where(self.form.free(len(self.ledger.columns)), 0.0, np.inf)
        return L1(0.0, weights, bounds=self.form.bounds)

    def opening(self) -> Asking[None]:
        run = Run(self.ledger, Newton(tol=self.path_tol), self.problem)
        out = within_uploads(self.budget.left)
        yield from run.asking(lambda run: run.state.step == "bound" or out(run))
        if run.state.step != "bound":
            raise FedLassoError(
                f"uploads is {self.budget.vectors:.0f}, too few for a model without any column; "
                "give more"
            )
        self.budget.spend(run.uploads)
        self.state = run.state
        self._first_slopes = run.state.slopes

    @property
    def first_slopes(self) -> Array:
        return self._first_slopes

    @property
    def stalled(self) -> bool:
        return self.state.step == "end"

    def asking(self, wanted: Wanted) -> Asking[PathPoint]:
        penalty = wanted.penalty
        problem = replace(self.problem, penalty=penalty)
        newton = Newton(tol=wanted.tol)
        run = Run(self.ledger, newton, problem, state=newton.go_on(problem, self.state))
        uploads = self.budget.left - wanted.reserve
        state = yield from run.asking(any_of(within_uploads(uploads), SEARCHING))
        self.budget.spend(run.uploads)
        self.state = state
        objective = state.loss + penalty.value(state.b)
        certificate = newton.certificate(problem, state) or Certificate(objective, np.inf)
        deviance = 2 * problem.m * state.loss
        finest = newton.finest(problem, state)
        ends_in_ones = self.ledger.columns[-1] == INTERCEPT
        return PathPoint(penalty, state.b, deviance, certificate, finest, ends_in_ones)


def open_evidence(
    federation: Federation, uploads: int = 100, form: Penalty = PLAIN_LASSO
) -> GradientEvidence:
    """Return evidence by gradients for the sites' loss and a form of penalty.

    Parameters
    ----------
    federation : the sites
    uploads : vectors of p numbers that each site may send in all
    form : the penalty at strength one

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, open_evidence
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 8))
    >>> site = Site("a", X, X[:, 0] + 0.1 * rng.standard_normal(50))
    >>> evidence = open_evidence(InProcess([site]), uploads=30)
    >>> path = evidence.path(evidence.grid(5))
    >>> [point.active for point in path][0], evidence.budget.spent <= 30
    (0, True)
    """
    return open_within(federation, Budget(metered(federation), uploads), form)


def open_within(
    federation: Federation, budget: Budget, form: Penalty = PLAIN_LASSO
) -> GradientEvidence:
    """Return evidence by gradients within a budget."""
    evidence = make_evidence(metered(federation), budget, form)
    run_together([evidence.opening()])
    return evidence


def make_evidence(
    ledger: Ledger, budget: Budget, form: Penalty, sizes: Sequence[int] | None = None
) -> GradientEvidence:
    """Return evidence that is yet to be opened; sites report their `sizes` if these are unknown."""
    plain = find_loss(ledger.loss).quadratic and form.plain
    kind = SecantEvidence if plain else NewtonEvidence
    return kind(ledger, budget, form, sizes)
