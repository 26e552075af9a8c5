r"""Secant: the pooled Lasso in a handful of uploads.

The pooled loss is quadratic, f(b) = b'Gb/2 - c'b + const, so a pooled gradient at s q gives the
product G q exactly (at 0 it gives c). With the orthonormal directions Q so far, Y = G Q and
M = Q'Y, the model

.. math:: B = Y M^+ Y' + \mu (I - Q Q')

satisfies B Q = G Q, and the next iterate is that model's own Lasso,

.. math:: b_{t+1} = \arg\min_b \tfrac12 b'Bb - c'b + \lambda |b|_1 .

A round measures the product with the new direction of b_{t+1} only: G b_{t+1}, and so the pooled
objective, gradient and duality gap at b_{t+1}, are then known exactly. mu is 1.1 times the new
curvature along the last direction, and at most halved in one round.

There are no step sizes, local epochs or candidates; the server needs sums over the sites only.

With few columns, `MomentSecant` requests all directions at once. The second moments of p columns
are (p + 2)(p + 3)/2 numbers, as many as about p/2 gradients: Q = I and Y = G. The server then
solves the Lasso. Every further round measures the pooled gradient at that solution b, from
residuals at the sites,

.. math:: g = X'(Xb - y)/m, \qquad c \leftarrow G b - g,

and solves again: iterative refinement, which restores the digits that are lost in forming G.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from fedlasso.federation import Request
from fedlasso.numerics import Array, Certificate, Penalty, Secants
from fedlasso.numerics.moments import Moments
from fedlasso.numerics.triangles import unpack
from fedlasso.procedures.procedure import Problem, State, UntilCertified
from fedlasso.sites import FoldMoments, GradientAt, ResponseSquares

# How often the model's Lasso is solved again without a new product.
POLISHED = 5


class Knowledge(State):
    """The fields of `Secants`, the best model so far, and the next trial."""

    c: Array
    y_ms: float
    Q: Array
    Y: Array
    mu: float
    best: Array
    trial: Array

    def __post_init__(self) -> None:
        # Received arrays may be unaligned; sums must not depend on that.
        for name in ("c", "Q", "Y", "best", "trial"):
            object.__setattr__(self, name, np.require(getattr(self, name), requirements=["C", "A"]))

    @property
    def secants(self) -> Secants:
        return Secants(self.c, self.y_ms, self.Q, self.Y, self.mu)

    @property
    def stuck(self) -> bool:
        """Whether the trial adds no new direction."""
        return self.secants.direction(self.trial) is None


K = TypeVar("K", bound=Knowledge)


@dataclass(frozen=True)
class BySecants(UntilCertified[K]):
    """A procedure that continues while there are new directions."""

    first_question: ClassVar[type[Request[Any]] | None] = ResponseSquares

    def done(self, problem: Problem, state: K) -> bool:
        return state.round > 0 and (self.arrived(problem, state) or state.stuck)

    def finest(self, problem: Problem, state: K) -> float:
        return state.secants.finest(state.best) if state.round else 0.0


@dataclass(frozen=True)
class Secant(BySecants[Knowledge]):
    """Secant, the pooled Lasso in a handful of uploads: a round is one pooled gradient."""

    name = "Secant"
    needs = ("thresholds", "ridgeless", "unbounded")

    def start(self, problem: Problem, prepared: Any) -> Knowledge:
        zero = np.zeros(problem.p)
        none = np.empty((problem.p, 0))
        y_ms = 0.0 if prepared is None else prepared.value / problem.m
        return Knowledge(zero, y_ms, none, none, 0.0, zero, zero)

    def go_on(self, problem: Problem, known: Secants, best: Array, round: int) -> Knowledge:
        """Return the state from which a fit at this problem's penalty continues."""
        known, best, trial = next_trial(known, problem.penalty, best)
        return Knowledge(known.c, known.y_ms, known.Q, known.Y, known.mu, best, trial, round=round)

    def request(self, problem: Problem, state: Knowledge) -> Request[Any]:
        """Request the gradient along the trial's new direction, at the trial's norm."""
        q = state.secants.direction(state.trial)
        at = np.zeros(problem.p) if q is None else float(np.linalg.norm(state.trial)) * q
        return GradientAt(at)

    def advance(self, problem: Problem, state: Knowledge, total: Any) -> Knowledge:
        gradient = total.gradient / problem.m
        if state.round == 0:
            first = Secants.first(-gradient, state.y_ms)
            return self.go_on(problem, first, state.best, 1)
        known = state.secants
        q = known.direction(state.trial)
        if q is not None:
            known = known.learn(q, (gradient + known.c) / np.linalg.norm(state.trial))
        best = better(known, problem.penalty, state.best, state.trial)
        return self.go_on(problem, known, best, state.round + 1)

    def models(self, problem: Problem, state: Knowledge) -> Array:
        return state.best[:, None]

    def certificate(self, problem: Problem, state: Knowledge) -> Certificate | None:
        return state.secants.certificate(state.best, problem.penalty) if state.round else None


@dataclass(frozen=True)
class MomentSecant(Secant):
    """The pooled Lasso from second moments of all rows, and one or two gradients."""

    name = "Moments"
    first_question = None

    def request(self, problem: Problem, state: Knowledge) -> Request[Any]:
        return GradientAt(state.best) if state.round else FoldMoments()

    def advance(self, problem: Problem, state: Knowledge, total: Any) -> Knowledge:
        if state.round:
            known = state.secants.correct(state.best, total.gradient / problem.m)
        else:
            moments = Moments(unpack(total.moments[0], problem.p + 2))
            normal = moments.normal(centre=False, scale=False)
            known = Secants.all(normal.gram, normal.score, normal.variance)
        return self.go_on(problem, known, state.best, state.round + 1)

    def done(self, problem: Problem, state: Knowledge) -> bool:
        """A fit counts only once its gradient was measured at the sites."""
        return state.round > 1 and self.arrived(problem, state)


def next_trial(known: Secants, penalty: Penalty, best: Array) -> tuple[Secants, Array, Array]:
    """Return the updated knowledge, the best model and the next trial.

    A trial in the span of Q needs no further round: the model is exact there.
    """
    if not known.positive:
        known = known.restart(best)
    for _ in range(POLISHED):
        trial = known.propose(penalty, best)
        if known.direction(trial) is not None:
            break
        improved = better(known, penalty, best, trial)
        if improved is best:
            break
        best = improved
    return known, best, trial


def better(known: Secants, penalty: Penalty, b: Array, other: Array) -> Array:
    """Return the model with the smaller pooled objective or, if equal to rounding, smaller gap."""
    change = known.objective(other, penalty) - known.objective(b, penalty)
    if abs(change) <= known.finest(b):
        change = known.gap(other, penalty) - known.gap(b, penalty)
    return other if change < 0 else b
