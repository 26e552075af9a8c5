r"""Distributed FISTA (Beck and Teboulle 2009) with gradient restart (O'Donoghue and Candes 2015).

.. math::
    x_{t+1} = S\{y_t - \nabla f(y_t) / L, \lambda / L\}, \qquad
    y_{t+1} = x_{t+1} + \frac{\theta_t - 1}{\theta_{t+1}} (x_{t+1} - x_t), \qquad
    \theta_{t+1} = \frac{1 + \sqrt{1 + 4 \theta_t^2}}{2},

with theta back to one whenever :math:`\langle y_t - x_{t+1}, x_{t+1} - x_t \rangle > 0`. The server
needs sums of gradients only. L is :math:`\sum_j w_j L_j`, which bounds the pooled curvature.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from fedlasso.numerics import Array
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import GradientAt, WeightedEigenvalue


class Accelerated(State):
    """The model, the point whose gradient is asked next, the momentum and L."""

    x: Array
    y: Array
    theta: float
    L: float


@dataclass(frozen=True)
class FISTA(Procedure[Accelerated]):
    """Accelerated proximal gradient on the pooled loss; ``epochs`` is not used."""

    name = "FISTA"
    losses = "any smooth"
    penalties = "any"
    first_question = WeightedEigenvalue

    def start(self, problem: Problem, prepared: Any) -> Accelerated:
        zero = np.zeros(problem.p)
        return Accelerated(zero, zero, 1.0, prepared.value / problem.m)

    def request(self, problem: Problem, state: Accelerated) -> GradientAt:
        return GradientAt(state.y)

    def advance(self, problem: Problem, state: Accelerated, total: Any) -> Accelerated:
        gradient = total.gradient / problem.m
        x = problem.penalty.prox(state.y - gradient / state.L, 1 / state.L)
        moved = x - state.x
        theta = 1.0 if float((state.y - x) @ moved) > 0 else state.theta
        following = (1 + sqrt(1 + 4 * theta**2)) / 2
        y = x + (theta - 1) / following * moved
        return Accelerated(x, y, following, state.L, round=state.round + 1)

    def models(self, problem: Problem, state: Accelerated) -> Array:
        return state.x[:, None]
