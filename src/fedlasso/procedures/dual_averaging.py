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

from fedlasso.federation import Disclosure, PerCandidate, Points, Steps
from fedlasso.numerics import Array, dual_steps
from fedlasso.procedures.procedure import AtRates, Average, Coefficients, Problem
from fedlasso.sites import Penalised, View, parts_of


@dataclass(frozen=True, eq=False)
class DualSteps(Penalised[Coefficients]):
    """E dual steps from every column of z, each with its own rate."""

    discloses = Disclosure("gradients added up along local steps, weighted by the rows")
    z: Points
    rates: PerCandidate
    first_step: int
    epochs: Steps

    def answer(self, site: View) -> Coefficients:
        f = site.training
        z = dual_steps(f, self.z, self.rates, self.penalty, self.first_step, self.epochs)
        return Coefficients.of(site, z, self.epochs * z.shape[1])


@dataclass(frozen=True)
class DualAveraging(AtRates):
    """Adapted FedDualAvg with ``epochs`` local steps per round and five client rates."""

    name = "DA"

    def request(self, problem: Problem, state: Average) -> DualSteps:
        return DualSteps(
            z=state.values,
            rates=state.scales,
            first_step=state.round * self.epochs,
            epochs=self.epochs,
            **parts_of(problem.penalty),
        )

    def models(self, problem: Problem, state: Average) -> Array:
        return problem.penalty.prox(state.values, state.scales * (state.round * self.epochs))
