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
from typing import Any, ClassVar, Literal

import numpy as np

from fedlasso.federation import Disclosure, Models, PerCandidate, Steps
from fedlasso.numerics import Array, Penalty, Sample
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import LargestEigenvalue, Penalised, View, parts_of


def proximal_steps(f: Sample, x: Array, rate: float, penalty: Penalty, epochs: int) -> Array:
    """E proximal gradient steps on the local loss."""
    for _ in range(epochs):
        x = penalty.prox(x - rate * f.gradient(x), rate)
    return x


class ProximalSteps(Penalised[Coefficients]):
    """E proximal gradient steps from every column of x, each with its own rate."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "a site's own model after local steps, weighted by its rows"
    )
    x: Models
    rates: PerCandidate
    epochs: Steps

    def answer(self, site: View) -> Coefficients:
        f = site.training
        values = [
            proximal_steps(f, x, rate, self.penalty, self.epochs)
            for x, rate in zip(self.x.T, self.rates, strict=True)
        ]
        sums = f.m * np.column_stack(values)
        steps = self.epochs * len(values)
        return Coefficients(sums, steps=steps, operations=site.operations(steps))


class Mirror(State):
    """beta_t, one column per rate, and the rates."""

    beta: Array
    rates: Array


@dataclass(frozen=True)
class FedMid(Procedure[Mirror]):
    """Averaged proximal gradient with ``epochs`` local steps per round and five rates."""

    name: ClassVar[str] = "FedMid"
    losses: ClassVar[Literal["quadratic", "any smooth"]] = "any smooth"
    penalties: ClassVar[Literal["l1", "weighted l1", "any"]] = "any"
    settings: tuple[float, ...] = (0.03, 0.1, 0.3, 0.6, 1.0)
    server_prox: bool = False

    def prepare(self) -> LargestEigenvalue:
        return LargestEigenvalue()

    def start(self, problem: Problem, prepared: Any) -> Mirror:
        L_max = prepared.value
        return Mirror(np.zeros((problem.p, self.paths)), np.array(self.settings) / L_max)

    def request(self, problem: Problem, state: Mirror) -> ProximalSteps:
        return ProximalSteps(
            x=state.beta, rates=state.rates, epochs=self.epochs, **parts_of(problem.penalty)
        )

    def advance(self, problem: Problem, state: Mirror, total: Any) -> Mirror:
        beta = total.values / problem.m
        if self.server_prox:
            beta = problem.penalty.prox(beta, state.rates * self.epochs)
        return Mirror(beta, state.rates, round=state.round + 1)

    def models(self, problem: Problem, state: Mirror) -> Array:
        return state.beta
