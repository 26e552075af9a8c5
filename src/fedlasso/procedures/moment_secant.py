r"""Secant where columns are few: all directions are asked at once.

The second moments of p columns are (p + 2)(p + 3)/2 numbers, as many as about p/2 gradients, and
they are the products with all directions: Q = I and Y = G. The Lasso is then solved at the server.
Every further round measures the pooled gradient at that solution b, from residuals at the sites,

.. math:: g = X'(Xb - y)/m, \qquad c \leftarrow G b - g,

and solves again: iterative refinement, which repairs the digits that forming G loses.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlasso.federation import Request
from fedlasso.numerics import Secants
from fedlasso.numerics.moments import Moments, unpack
from fedlasso.procedures.procedure import Problem
from fedlasso.procedures.secant import Knowledge, Secant
from fedlasso.sites import FoldMoments, GradientAt, count_numbers


@dataclass(frozen=True)
class MomentSecant(Secant):
    """The pooled Lasso from second moments of all rows, and a gradient or two."""

    name = "Moments"
    first_question = None

    def start(self, problem: Problem, prepared: Any) -> Knowledge:
        zero = np.zeros(problem.p)
        none = np.empty((problem.p, 0))
        return Knowledge(zero, 0.0, none, none, 0.0, zero, zero)

    def request(self, problem: Problem, state: Knowledge) -> Request[Any]:
        return GradientAt(state.best) if state.round else FoldMoments()

    def upload(self, problem: Problem, state: Knowledge) -> int:
        return problem.p if state.round else count_numbers(problem.p)

    def advance(self, problem: Problem, state: Knowledge, total: Any) -> Knowledge:
        if state.round:
            known = state.secants.correct(state.best, total.gradient / problem.m)
        else:
            moments = Moments(unpack(total.moments[0], problem.p + 2))
            normal = moments.normal(centre=False, scale=False)
            known = Secants.all(normal.gram, normal.score, normal.variance)
        return self.go_on(problem, known, state.best, state.round + 1)

    def done(self, problem: Problem, state: Knowledge) -> bool:
        """No fit is claimed before its gradient was measured at the sites."""
        return state.round > 1 and self.arrived(problem, state)
