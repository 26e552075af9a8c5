r"""DA: federated dual averaging (Yuan, Zaheer and Reddi 2021), adapted.

Full participation, full gradients, sample-size weights, server rate one. At round t, local step k:

.. math::
    b_{j,t,k} = S\{z_{j,t,k}, \eta (tE + k) \lambda\}, \qquad
    z_{j,t,k+1} = z_{j,t,k} - \eta \nabla f_j(b_{j,t,k}),

from z_{j,t,0} = z_t. The server averages, z_{t+1} = \sum_j w_j z_{j,t,E}, and its model is
S{z_{t+1}, \eta (t+1) E \lambda}. Rates are {0.03, 0.1, 0.3, 0.6, 1} / L_max.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fedlasso.federation import Disclosure, PerCandidate, Points, Steps
from fedlasso.numerics import Array, dual_steps
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import LargestEigenvalue, Penalised, View, parts_of


class DualSteps(Penalised[Coefficients]):
    """E dual steps from every column of z, each with its own rate."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "gradients added up along local steps, weighted by the rows"
    )
    z: Points
    rates: PerCandidate
    first_step: int
    epochs: Steps

    def answer(self, site: View) -> Coefficients:
        f = site.training
        z = dual_steps(f, self.z, self.rates, self.penalty, self.first_step, self.epochs)
        steps = self.epochs * z.shape[1]
        return Coefficients(f.m * z, steps=steps, operations=site.operations(steps))


class Dual(State):
    """z_t, one column per rate, and the rates."""

    z: Array
    rates: Array


@dataclass(frozen=True)
class DualAveraging(Procedure[Dual]):
    """Adapted FedDualAvg with ``epochs`` local steps per round and five client rates."""

    name: ClassVar[str] = "DA"
    losses: ClassVar[Literal["quadratic", "any smooth"]] = "any smooth"
    penalties: ClassVar[Literal["l1", "weighted l1", "any"]] = "any"
    settings: tuple[float, ...] = (0.03, 0.1, 0.3, 0.6, 1.0)

    def prepare(self) -> LargestEigenvalue:
        return LargestEigenvalue()

    def start(self, problem: Problem, prepared: Any) -> Dual:
        L_max = prepared.value
        return Dual(np.zeros((problem.p, self.paths)), np.array(self.settings) / L_max)

    def request(self, problem: Problem, state: Dual) -> DualSteps:
        return DualSteps(
            z=state.z,
            rates=state.rates,
            first_step=state.round * self.epochs,
            epochs=self.epochs,
            **parts_of(problem.penalty),
        )

    def advance(self, problem: Problem, state: Dual, total: Any) -> Dual:
        z = total.values / problem.m
        return Dual(z, state.rates, round=state.round + 1)

    def models(self, problem: Problem, state: Dual) -> Array:
        return problem.penalty.prox(state.z, state.rates * (state.round * self.epochs))
