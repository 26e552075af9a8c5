r"""ProxSkip, or Scaffnew, with the l1 penalty (Mishchenko et al. 2022).

Local steps corrected by a control variate h_j, and a proximal step only when models meet. Here
they meet after exactly E steps instead of with probability 1/E:

.. math::
    E \times:\ x_j &\leftarrow x_j - \gamma (\nabla f_j(x_j) - h_j), \\
    z^+ &= S\Bigl\{\sum_j w_j (x_j - \gamma E h_j), \gamma E \lambda\Bigr\}, \qquad
    h_j^+ = h_j + (z^+ - x_j) / (\gamma E).

A site sends :math:`v_j = x_j - \gamma E h_j` and keeps it: its next control variate is
:math:`(z^+ - v_j) / (\gamma E)`. Rates are {0.1, 0.3, 1} / L_max, each a path: the
largest is best at few local steps, a smaller one where E is large. At E = 1 this is the pooled
proximal gradient method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fedlasso.federation import Disclosure, PerCandidate, Points, Request, Steps
from fedlasso.numerics import Array, Sample
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import LargestEigenvalue, View


def corrected_steps(f: Sample, z: Array, h: Array, rate: float, epochs: int) -> Array:
    """E gradient steps on the local loss tilted by h."""
    for _ in range(epochs):
        z = z - rate * (f.gradient(z) - h)
    return z


class CorrectedSteps(Request[Coefficients]):
    """E corrected steps from every column of z, with control variates from the site's memory."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "a site's own model after local steps, weighted by its rows"
    )
    z: Points
    rates: PerCandidate
    epochs: Steps
    fit: str
    round: int

    def answer(self, site: View) -> Coefficients:
        f = site.training
        memory = site.memory.recall(self.fit, self.round)
        reach = self.rates * self.epochs
        h = (self.z - memory["v"]) / reach if memory else np.zeros_like(self.z)
        x = [
            corrected_steps(f, z, h_k, rate, self.epochs)
            for z, h_k, rate in zip(self.z.T, h.T, self.rates, strict=True)
        ]
        v = np.column_stack(x) - reach * h
        site.memory.store(self.fit, self.round + 1, {"v": v})
        steps = self.epochs * len(x)
        return Coefficients(f.m * v, steps=steps, operations=site.operations(steps))


class Corrected(State):
    """z, one column per rate, and the rates."""

    z: Array
    rates: Array


@dataclass(frozen=True)
class ProxSkip(Procedure[Corrected]):
    """Scaffnew with ``epochs`` local steps per round and three rates."""

    name: ClassVar[str] = "ProxSkip"
    losses: ClassVar[Literal["quadratic", "any smooth"]] = "any smooth"
    penalties: ClassVar[Literal["l1", "weighted l1", "any"]] = "any"
    settings: tuple[float, ...] = (0.1, 0.3, 1.0)

    def prepare(self) -> LargestEigenvalue:
        return LargestEigenvalue()

    def start(self, problem: Problem, prepared: Any) -> Corrected:
        L_max = prepared.value
        return Corrected(np.zeros((problem.p, self.paths)), np.array(self.settings) / L_max)

    def request(self, problem: Problem, state: Corrected) -> CorrectedSteps:
        fit = f"{self!r} {problem!r}"
        return CorrectedSteps(state.z, state.rates, self.epochs, fit, state.round)

    def advance(self, problem: Problem, state: Corrected, total: Any) -> Corrected:
        v = total.values / problem.m
        z = problem.penalty.prox(v, state.rates * self.epochs)
        return Corrected(z, state.rates, round=state.round + 1)

    def models(self, problem: Problem, state: Corrected) -> Array:
        return state.z
