r"""Fast-FedDA and C-FedDA: dual averaging that also remembers its models (Bao et al. 2022).

With t gradients summed in g and their models summed in x, the next model is

.. math::
    w = S\Bigl\{\frac{\mu x / 2 - g}{d}, \frac{\lambda t}{d}\Bigr\}, \qquad
    d = \mu t / 2 + \gamma,

and a local step adds :math:`\nabla f_j(w)` to g_j and w to x_j. Fast-FedDA averages both sums over
the sites. In C-FedDA the server keeps x (its own models, each counted E times), the sites see it
but do not change it, and only g travels. At :math:`\mu = 0` both are dual averaging (DA).

Rates are {0.03, 0.1, 0.3, 0.6, 1} = L_max / gamma; mu is ``convexity`` times L_max.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Reply, Request
from fedlasso.numerics import Array, soft_threshold
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import LargestEigenvalue, Site


def dual_model(g: Array, x: Array, gamma: Array, mu: float, lam: float, t: int, seen: int) -> Array:
    """Model after t gradients, x holding ``seen`` models; one column a gamma."""
    d = mu * seen / 2 + gamma
    return soft_threshold((mu * x / 2 - g) / d, lam * t / d)


@dataclass(frozen=True, eq=False)
class DualSums(Reply):
    """g_j, and x_j where it travels; one column a rate."""

    g: Array
    x: Array


@dataclass(frozen=True, eq=False)
class CompositeSteps(Request[DualSums]):
    """E steps from every column of g and x; x comes back only if it is ``shared``."""

    g: Array
    x: Array
    gamma: Array
    mu: float
    lam: float
    first_step: int
    epochs: int
    shared: int

    def answer(self, site: Site) -> DualSums:
        g, x = self.g.copy(), self.x.copy()
        for t in range(self.first_step, self.first_step + self.epochs):
            seen = t if self.shared else self.first_step
            w = dual_model(g, x, self.gamma, self.mu, self.lam, t, seen)
            g += np.column_stack([site.training.gradient(b) for b in w.T])
            if self.shared:
                x += w
        steps = self.epochs * g.shape[1]
        x = x if self.shared else np.zeros((0, 0))
        return DualSums(g, x, steps=steps, operations=site.operations(steps))


@dataclass(frozen=True, eq=False)
class Composite(State):
    """Sums of gradients and of models, one column a rate."""

    g: Array
    x: Array
    gamma: Array
    mu: float


@dataclass(frozen=True)
class FastFedDA(Procedure[Composite]):
    """Fast-FedDA: both sums travel, so a round uploads 2p numbers for each rate."""

    name: ClassVar[str] = "Fast-FedDA"
    settings: tuple[float, ...] = (0.03, 0.1, 0.3, 0.6, 1.0)
    shared: ClassVar[bool] = True
    convexity: float = 0.01

    def prepare(self) -> LargestEigenvalue:
        return LargestEigenvalue()

    def start(self, problem: Problem, prepared: Sequence[Any]) -> Composite:
        L_max = max(reply.value for reply in prepared)
        zeros = np.zeros((problem.p, self.paths))
        return Composite(zeros, zeros, L_max / np.array(self.settings), self.convexity * L_max)

    def request(self, problem: Problem, state: Composite) -> CompositeSteps:
        s, E = state, self.epochs
        t = s.round * E
        return CompositeSteps(s.g, s.x, s.gamma, s.mu, problem.lam, t, E, int(self.shared))

    def advance(self, problem: Problem, state: Composite, replies: Sequence[Any]) -> Composite:
        g = problem.average([r.g for r in replies])
        if self.shared:
            x = problem.average([r.x for r in replies])
        else:
            x = state.x + self.epochs * self.models(problem, state)
        return Composite(g, x, state.gamma, state.mu, round=state.round + 1)

    def models(self, problem: Problem, state: Composite) -> Array:
        t = state.round * self.epochs
        return dual_model(state.g, state.x, state.gamma, state.mu, problem.lam, t, t)

    def upload(self, problem: Problem, state: Composite) -> int:
        return (2 if self.shared else 1) * self.paths * problem.p
