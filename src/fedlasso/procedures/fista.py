r"""Distributed FISTA (Beck and Teboulle 2009) with gradient restart (O'Donoghue and Candes 2015).

.. math::
    x_{t+1} = S\{y_t - \nabla f(y_t) / L, \lambda / L\}, \qquad
    y_{t+1} = x_{t+1} + \frac{\theta_t - 1}{\theta_{t+1}} (x_{t+1} - x_t), \qquad
    \theta_{t+1} = \frac{1 + \sqrt{1 + 4 \theta_t^2}}{2},

with theta reset to one if :math:`\langle y_t - x_{t+1}, x_{t+1} - x_t \rangle > 0`. The server
needs sums of gradients only. L is :math:`\sum_j w_j L_j`, an upper bound on the pooled curvature.

For a loss without a largest curvature (counts, survival times) the L_j are those at b = 0, and a
line search increases L: :math:`x_{t+1}` is accepted if

.. math::
    f(x_{t+1}) \le f(y_t) + \langle \nabla f(y_t), x_{t+1} - y_t \rangle
      + \tfrac{L}{2} |x_{t+1} - y_t|^2,

else L grows. Sites send the loss and the gradient at :math:`y_t`, p + 1 numbers, and in a further
round the loss at :math:`x_{t+1}` with one slope, two numbers.
"""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from fedlasso.federation import Request
from fedlasso.numerics import Array, find_loss
from fedlasso.numerics.machine import ROUNDING
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import GradientAt, PartAt, WeightedEigenvalue


class Accelerated(State):
    """The model, the point of the next gradient, the momentum and L."""

    x: Array
    y: Array
    theta: float
    L: float


class Searching(Accelerated):
    """The same during the line search: loss and gradient at y, and the trial model.

    The trial is empty while loss and gradient at y are requested.
    """

    loss: float
    gradient: Array
    trial: Array


# Factor by which L grows if a step was too long; a trial costs two numbers.
GROWTH = 1.25


@dataclass(frozen=True)
class FISTA(Procedure[Accelerated]):
    """Accelerated proximal gradient on the pooled loss; ``epochs`` is not used."""

    name = "FISTA"
    losses = "any smooth"
    needs = ("prox",)
    first_question = WeightedEigenvalue

    def start(self, problem: Problem, prepared: Any) -> Accelerated:
        zero = np.zeros(problem.p)
        L = prepared.value / problem.m
        if np.isfinite(find_loss(problem.loss).smoothness):
            return Accelerated(zero, zero, 1.0, L)
        return Searching(zero, zero, 1.0, L, 0.0, zero, np.zeros(0))

    def request(self, problem: Problem, state: Accelerated) -> Request[Any]:
        if not isinstance(state, Searching):
            return GradientAt(state.y)
        if not state.trial.size:
            return PartAt(state.y, np.arange(0))
        return PartAt(state.trial, np.arange(1))

    def advance(self, problem: Problem, state: Accelerated, total: Any) -> Accelerated:
        state = replace(state, round=state.round + 1)
        if isinstance(state, Searching):
            return self._search(problem, state, total)
        x = self._step(problem, state, total.gradient / problem.m)
        return self._accept(state, x)

    def _step(self, problem: Problem, state: Accelerated, gradient: Array) -> Array:
        return problem.penalty.prox(state.y - gradient / state.L, 1 / state.L)

    def _accept(self, state: Accelerated, x: Array) -> Accelerated:
        """Accept a model and extrapolate."""
        moved = x - state.x
        theta = 1.0 if float((state.y - x) @ moved) > 0 else state.theta
        following = (1 + sqrt(1 + 4 * theta**2)) / 2
        y = x + (theta - 1) / following * moved
        return replace(state, x=x, y=y, theta=following)

    def _search(self, problem: Problem, state: Searching, total: Any) -> Accelerated:
        """Try a step once the gradient is known; accept it, or try a shorter one."""
        loss = total.loss / problem.m
        if not state.trial.size:
            gradient = total.gradient / problem.m
            x = self._step(problem, state, gradient)
            return replace(state, loss=loss, gradient=gradient, trial=x)
        d = state.trial - state.y
        promised = float(state.gradient @ d) + state.L * float(d @ d) / 2
        if loss <= state.loss + promised + ROUNDING * abs(state.loss):
            return self._accept(replace(state, trial=np.zeros(0)), state.trial)
        shorter = replace(state, L=GROWTH * state.L)
        return replace(shorter, trial=self._step(problem, shorter, state.gradient))

    def models(self, problem: Problem, state: Accelerated) -> Array:
        return state.x[:, None]
