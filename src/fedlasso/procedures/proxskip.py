r"""ProxSkip, or Scaffnew, with the l1 penalty (Mishchenko et al. 2022).

Local steps corrected by a control variate h_j, and a proximal step only when models meet. Here
they meet after exactly E steps instead of with probability 1/E:

.. math::
    E \times:\ x_j &\leftarrow x_j - \gamma (\nabla f_j(x_j) - h_j), \\
    z^+ &= S\Bigl\{\sum_j w_j (x_j - \gamma E h_j), \gamma E \lambda\Bigr\}, \qquad
    h_j^+ = h_j + (z^+ - x_j) / (\gamma E).

A site sends :math:`v_j = x_j - \gamma E h_j` and keeps it: its next control variate is
:math:`(z^+ - v_j) / (\gamma E)`. The rate is 1 / L_max, the largest that their theory allows and
the best; at E = 1 this is the pooled proximal gradient method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import LargestEigenvalue, Request, Site
from fedlasso.lasso import Array, soft_threshold
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State


@dataclass(frozen=True, eq=False)
class CorrectedSteps(Request[Coefficients]):
    """E corrected gradient steps from z, with the control variate in the site's memory."""

    z: Array
    rate: float
    epochs: int
    fit: str
    round: int

    def answer(self, site: Site) -> Coefficients:
        memory = site.memory.recall(self.fit, self.round)
        reach = self.rate * self.epochs
        h = (self.z - memory["v"]) / reach if memory else np.zeros_like(self.z)
        x = self.z
        for _ in range(self.epochs):
            x = x - self.rate * (site.training.gradient(x) - h)
        v = x - reach * h
        site.memory.store(self.fit, self.round + 1, {"v": v})
        return Coefficients(v, steps=self.epochs, operations=site.operations(self.epochs))


@dataclass(frozen=True, eq=False)
class Corrected(State):
    """z and the rate."""

    z: Array
    rate: float


@dataclass(frozen=True)
class ProxSkip(Procedure[Corrected]):
    """Scaffnew with ``epochs`` local steps a round."""

    name: ClassVar[str] = "ProxSkip"
    rate: float = 1.0

    def prepare(self) -> LargestEigenvalue:
        return LargestEigenvalue()

    def start(self, problem: Problem, prepared: Sequence[Any]) -> Corrected:
        L_max = max(reply.value for reply in prepared)
        return Corrected(np.zeros(problem.p), self.rate / L_max)

    def request(self, problem: Problem, state: Corrected) -> CorrectedSteps:
        fit = f"{self!r} {problem!r}"
        return CorrectedSteps(state.z, state.rate, self.epochs, fit, state.round)

    def advance(self, problem: Problem, state: Corrected, replies: Sequence[Any]) -> Corrected:
        v = problem.average([r.values for r in replies])
        z = soft_threshold(v, state.rate * self.epochs * problem.lam)
        return Corrected(z, state.rate, round=state.round + 1)

    def models(self, problem: Problem, state: Corrected) -> Array:
        return state.z[:, None]
