r"""FedMid: local proximal gradient steps, averaged (Yuan, Zaheer and Reddi 2021).

E times at every site, then one average:

.. math::
    x_j \leftarrow S\{x_j - \eta \nabla f_j(x_j), \eta \lambda\}, \qquad
    \beta_{t+1} = \sum_j w_j x_j.

With ``server_prox`` the server also thresholds the average by :math:`\eta E \lambda`, as their
mirror-descent server step does. Rates are {0.03, 0.1, 0.3, 0.6, 1} / L_max, each a path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedlasso.federation import Disclosure, Models, PerCandidate, Steps
from fedlasso.numerics import Array
from fedlasso.procedures.procedure import AtRates, Average, Coefficients, Problem
from fedlasso.sites import Penalised, View, parts_of


@dataclass(frozen=True, eq=False)
class ProximalSteps(Penalised[Coefficients]):
    """E proximal gradient steps from every column of x, each with its own rate."""

    discloses = Disclosure("a site's own model after local steps, weighted by its rows")
    x: Models
    rates: PerCandidate
    epochs: Steps

    def answer(self, site: View) -> Coefficients:
        f = site.training
        penalty = self.penalty
        columns = []
        for x, rate in zip(self.x.T, self.rates, strict=True):
            for _ in range(self.epochs):
                x = penalty.prox(x - rate * f.gradient(x), rate)
            columns.append(x)
        return Coefficients.of(site, np.column_stack(columns), self.epochs * len(columns))


@dataclass(frozen=True)
class FedMid(AtRates):
    """Averaged proximal gradient with ``epochs`` local steps per round and five rates."""

    name = "FedMid"
    server_prox: bool = False

    def request(self, problem: Problem, state: Average) -> ProximalSteps:
        penalty = parts_of(problem.penalty)
        return ProximalSteps(x=state.values, rates=state.scales, epochs=self.epochs, **penalty)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        if self.server_prox:
            return problem.penalty.prox(average, state.scales * self.epochs)
        return average
