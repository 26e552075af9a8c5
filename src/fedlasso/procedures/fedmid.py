r"""FedMid: local proximal gradient steps, averaged (Yuan, Zaheer and Reddi 2021).

E times at every site, then one average:

.. math::
    x_j \leftarrow S\{x_j - \eta \nabla f_j(x_j), \eta \lambda\}, \qquad
    \beta_{t+1} = \sum_j w_j x_j.

With ``server_prox`` the server also thresholds the average by :math:`\eta E \lambda`, as their
mirror-descent server step does. Rates are {0.03, 0.1, 0.3, 0.6, 1} / L_max, each a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Request
from fedlasso.numerics import Array, LeastSquares, soft_threshold
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import LargestEigenvalue, Site


def proximal_steps(f: LeastSquares, x: Array, rate: float, lam: float, epochs: int) -> Array:
    """E proximal gradient steps on the local loss."""
    for _ in range(epochs):
        x = soft_threshold(x - rate * f.gradient(x), rate * lam)
    return x


@dataclass(frozen=True, eq=False)
class ProximalSteps(Request[Coefficients]):
    """E proximal gradient steps from every column of x, each with its own rate."""

    x: Array
    rates: Array
    lam: float
    epochs: int

    def answer(self, site: Site) -> Coefficients:
        values = [
            proximal_steps(site.training, x, rate, self.lam, self.epochs)
            for x, rate in zip(self.x.T, self.rates, strict=True)
        ]
        steps = self.epochs * len(values)
        return Coefficients(np.column_stack(values), steps=steps, operations=site.operations(steps))


@dataclass(frozen=True, eq=False)
class Mirror(State):
    """beta_t, one column a rate, and the rates."""

    beta: Array
    rates: Array


@dataclass(frozen=True)
class FedMid(Procedure[Mirror]):
    """Averaged proximal gradient with ``epochs`` local steps a round and five rates."""

    name: ClassVar[str] = "FedMid"
    settings: tuple[float, ...] = (0.03, 0.1, 0.3, 0.6, 1.0)
    server_prox: bool = False

    def prepare(self) -> LargestEigenvalue:
        return LargestEigenvalue()

    def start(self, problem: Problem, prepared: Sequence[Any]) -> Mirror:
        L_max = max(reply.value for reply in prepared)
        return Mirror(np.zeros((problem.p, self.paths)), np.array(self.settings) / L_max)

    def request(self, problem: Problem, state: Mirror) -> ProximalSteps:
        return ProximalSteps(state.beta, state.rates, problem.lam, self.epochs)

    def advance(self, problem: Problem, state: Mirror, replies: Sequence[Any]) -> Mirror:
        beta = problem.average([r.values for r in replies])
        if self.server_prox:
            beta = soft_threshold(beta, state.rates * (self.epochs * problem.lam))
        return Mirror(beta, state.rates, round=state.round + 1)

    def models(self, problem: Problem, state: Mirror) -> Array:
        return state.beta
