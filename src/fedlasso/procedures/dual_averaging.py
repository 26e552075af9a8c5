r"""DA: federated dual averaging (Yuan, Zaheer and Reddi 2021), adapted.

Full participation, full gradients, sample-size weights, server rate one. At round t, local step k:

.. math::
    b_{j,t,k} = S\{z_{j,t,k}, \eta (tE + k) \lambda\}, \qquad
    z_{j,t,k+1} = z_{j,t,k} - \eta \nabla f_j(b_{j,t,k}),

from z_{j,t,0} = z_t. The server averages, z_{t+1} = \sum_j w_j z_{j,t,E}, and its model is
S{z_{t+1}, \eta (t+1) E \lambda}. Rates are {0.03, 0.1, 0.3, 0.6, 1} / L_max.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Request
from fedlasso.numerics import Array, dual_steps, soft_threshold
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import LargestEigenvalue, Site


@dataclass(frozen=True, eq=False)
class DualSteps(Request[Coefficients]):
    """E dual steps from every column of z, each with its own rate."""

    z: Array
    rates: Array
    lam: float
    first_step: int
    epochs: int

    def answer(self, site: Site) -> Coefficients:
        z = dual_steps(site.training, self.z, self.rates, self.lam, self.first_step, self.epochs)
        steps = self.epochs * z.shape[1]
        return Coefficients(z, steps=steps, operations=site.operations(steps))


@dataclass(frozen=True, eq=False)
class Dual(State):
    """z_t, one column a rate, and the rates."""

    z: Array
    rates: Array


@dataclass(frozen=True)
class DualAveraging(Procedure[Dual]):
    """Adapted FedDualAvg with ``epochs`` local steps a round and five client rates."""

    name: ClassVar[str] = "DA"
    settings: tuple[float, ...] = (0.03, 0.1, 0.3, 0.6, 1.0)

    def prepare(self) -> LargestEigenvalue:
        return LargestEigenvalue()

    def start(self, problem: Problem, prepared: Sequence[Any]) -> Dual:
        L_max = max(reply.value for reply in prepared)
        return Dual(np.zeros((problem.p, self.paths)), np.array(self.settings) / L_max)

    def request(self, problem: Problem, state: Dual) -> DualSteps:
        first_step = state.round * self.epochs
        return DualSteps(state.z, state.rates, problem.lam, first_step, self.epochs)

    def advance(self, problem: Problem, state: Dual, replies: Sequence[Any]) -> Dual:
        z = problem.average([r.values for r in replies])
        return Dual(z, state.rates, round=state.round + 1)

    def models(self, problem: Problem, state: Dual) -> Array:
        return soft_threshold(state.z, state.rates * (state.round * self.epochs * problem.lam))
