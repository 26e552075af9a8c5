r"""Distributed FISTA (Beck and Teboulle 2009) with gradient restart (O'Donoghue and Candes 2015).

.. math::
    x_{t+1} = S\{y_t - \nabla f(y_t) / L, \lambda / L\}, \qquad
    y_{t+1} = x_{t+1} + \frac{\theta_t - 1}{\theta_{t+1}} (x_{t+1} - x_t), \qquad
    \theta_{t+1} = \frac{1 + \sqrt{1 + 4 \theta_t^2}}{2},

with theta back to one whenever :math:`\langle y_t - x_{t+1}, x_{t+1} - x_t \rangle > 0`. The server
needs sums of gradients only. L is :math:`\sum_j w_j L_j`, which bounds the pooled curvature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import GradientAt, LargestEigenvalue
from fedlasso.lasso import Array, soft_threshold
from fedlasso.lasso.least_squares import one_thread
from fedlasso.procedures.procedure import Problem, Procedure, State


@dataclass(frozen=True, eq=False)
class Accelerated(State):
    """The model, the point whose gradient is asked next, the momentum and L."""

    x: Array
    y: Array
    theta: float
    L: float


@dataclass(frozen=True)
class FISTA(Procedure[Accelerated]):
    """Accelerated proximal gradient on the pooled loss; ``epochs`` is not used."""

    name: ClassVar[str] = "FISTA"

    def prepare(self) -> LargestEigenvalue:
        return LargestEigenvalue()

    def start(self, problem: Problem, prepared: Sequence[Any]) -> Accelerated:
        zero = np.zeros(problem.p)
        L = float(problem.average([np.array(r.value) for r in prepared]))
        return Accelerated(zero, zero, 1.0, L)

    def request(self, problem: Problem, state: Accelerated) -> GradientAt:
        return GradientAt(state.y)

    @one_thread()
    def advance(self, problem: Problem, state: Accelerated, replies: Sequence[Any]) -> Accelerated:
        gradient = np.sum([r.gradient for r in replies], axis=0) / problem.m
        x = soft_threshold(state.y - gradient / state.L, problem.lam / state.L)
        moved = x - state.x
        theta = 1.0 if float((state.y - x) @ moved) > 0 else state.theta
        following = (1 + sqrt(1 + 4 * theta**2)) / 2
        y = x + (theta - 1) / following * moved
        return Accelerated(x, y, following, state.L, round=state.round + 1)

    def models(self, problem: Problem, state: Accelerated) -> Array:
        return state.x[:, None]
