r"""Dual averaging: DA, and Fast-FedDA and C-FedDA, which also average over past models.

DA is federated dual averaging (Yuan, Zaheer and Reddi 2021), adapted: full participation, full
gradients, sample-size weights, server rate one. At round t, local step k:

.. math::
    b_{j,t,k} = S\{z_{j,t,k}, \eta (tE + k) \lambda\}, \qquad
    z_{j,t,k+1} = z_{j,t,k} - \eta \nabla f_j(b_{j,t,k}),

from z_{j,t,0} = z_t. The server averages, z_{t+1} = \sum_j w_j z_{j,t,E}, and its model is
S{z_{t+1}, \eta (t+1) E \lambda}. Rates are {0.03, 0.1, 0.3, 0.6, 1} / L_max.

Fast-FedDA and C-FedDA (Bao et al. 2022): with t gradients summed in g and their models summed in x,
the next model is

.. math::
    w = S\Bigl\{\frac{\mu x / 2 - g}{d}, \frac{\lambda t}{d}\Bigr\}, \qquad
    d = \mu t / 2 + \gamma,

and a local step adds :math:`\nabla f_j(w)` to g_j and w to x_j. Fast-FedDA averages both sums over
the sites. In C-FedDA the server keeps x (its own models, each counted E times), the sites use but
do not change it, and only g is sent. At :math:`\mu = 0` both are dual averaging (DA).

Rates are {0.03, 0.1, 0.3, 0.6, 1} = L_max / gamma; mu is ``convexity`` times L_max.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Accumulated, Disclosure, PerCandidate, Reply, Shapes, Steps
from fedlasso.federation.magnitudes import Bound, Magnitudes
from fedlasso.numerics import Array, Penalty, dual_steps, penalty_fields
from fedlasso.numerics.local_steps import stay_finite
from fedlasso.procedures.procedure import AtRates, Average, Coefficients, Problem, Procedure, State
from fedlasso.sites import LargestEigenvalue, Penalised, View


class DualSteps(Penalised[Coefficients]):
    """Take E dual steps from every column of z, each with its own rate."""

    discloses = Disclosure("gradients added up along local steps, weighted by the rows")
    z: Accumulated
    rates: PerCandidate
    first_step: int
    epochs: Steps

    def points(self) -> list[Array]:
        return [self.penalty.prox(self.z, self.rates * self.first_step)]

    def answer(self, site: View) -> Coefficients:
        f = site.training
        z = dual_steps(f, self.z, self.rates, self.penalty, self.first_step, self.epochs)
        return Coefficients.of(site, z, self.epochs * z.shape[1])

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        return {"values": Coefficients.bound_of_slopes(magnitudes)}


@dataclass(frozen=True)
class DualAveraging(AtRates):
    """DA, federated dual averaging: averages of gradients summed over ``epochs`` local steps."""

    name = "DA"

    def request(self, problem: Problem, state: Average) -> DualSteps:
        epochs, penalty = self.epochs, penalty_fields(problem.penalty)
        first = state.round * epochs
        return DualSteps(
            z=state.values, rates=state.scales, first_step=first, epochs=epochs, **penalty
        )

    def models(self, problem: Problem, state: Average) -> Array:
        return problem.penalty.prox(state.values, state.scales * (state.round * self.epochs))


def dual_model(
    g: Array, x: Array, gamma: Array, mu: float, penalty: Penalty, t: int, seen: int
) -> Array:
    """Return the model after t gradients, x being a sum of ``seen`` models; a column per gamma."""
    d = mu * seen / 2 + gamma
    return penalty.prox((mu * x / 2 - g) / d, t / d)


class DualSums(Reply):
    """m_j times g_j, and times x_j if it is sent; one column per rate."""

    g: Array
    x: Array | None = None


class CompositeSteps(Penalised[DualSums]):
    """Take E steps from every column of g and x; x is returned only if it is ``shared``."""

    discloses = Disclosure(
        "gradients, and models if asked, added up along local steps, weighted by the rows"
    )
    g: Accumulated
    x: Accumulated
    gamma: PerCandidate
    mu: float
    first_step: int
    epochs: Steps
    shared: bool

    def points(self) -> list[Array]:
        at = self.first_step
        return [dual_model(self.g, self.x, self.gamma, self.mu, self.penalty, at, at)]

    def expects(self, p: int) -> Shapes:
        return {"g": self.g.shape, "x": self.x.shape if self.shared else None}

    def answer(self, site: View) -> DualSums:
        f, g, x = site.training, self.g, self.x
        for t in range(self.first_step, self.first_step + self.epochs):
            seen = t if self.shared else self.first_step
            w = dual_model(g, x, self.gamma, self.mu, self.penalty, t, seen)
            g = stay_finite(g + np.column_stack([f.gradient(b) for b in w.T]), g)
            if self.shared:
                x = x + w
        steps = self.epochs * g.shape[1]
        models = f.m * x if self.shared else None
        return DualSums(f.m * g, models, steps=steps, operations=site.operations(steps))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        models = Coefficients.bounds(magnitudes)["values"]
        return {"g": Coefficients.bound_of_slopes(magnitudes), "x": models}


class Composite(State):
    """Sums of gradients and of models, one column per rate."""

    g: Array
    x: Array
    gamma: Array
    mu: float


@dataclass(frozen=True)
class FastFedDA(Procedure[Composite]):
    """Fast-FedDA: sums of gradients and of models are averaged, 2p numbers per rate and round."""

    name = "Fast-FedDA"
    losses = "any smooth"
    needs = ("prox", "convex", "unbounded")
    first_question = LargestEigenvalue
    settings: tuple[float, ...] = AtRates.settings
    shared: ClassVar[bool] = True
    convexity: float = 0.01

    def start(self, problem: Problem, prepared: Any) -> Composite:
        L_max = prepared.value
        zeros = np.zeros((problem.p, self.paths))
        return Composite(zeros, zeros, L_max / np.array(self.settings), self.convexity * L_max)

    def request(self, problem: Problem, state: Composite) -> CompositeSteps:
        return CompositeSteps(
            g=state.g,
            x=state.x,
            gamma=state.gamma,
            mu=state.mu,
            first_step=state.round * self.epochs,
            epochs=self.epochs,
            shared=self.shared,
            **penalty_fields(problem.penalty),
        )

    def advance(self, problem: Problem, state: Composite, total: Any) -> Composite:
        g = total.g / problem.m
        if self.shared:
            x = total.x / problem.m
        else:
            x = state.x + self.epochs * self.models(problem, state)
        return Composite(g, x, state.gamma, state.mu, round=state.round + 1)

    def models(self, problem: Problem, state: Composite) -> Array:
        t = state.round * self.epochs
        return dual_model(state.g, state.x, state.gamma, state.mu, problem.penalty, t, t)


@dataclass(frozen=True)
class CFedDA(FastFedDA):
    """C-FedDA: the server keeps the sum of models, so p numbers per rate and round are sent."""

    name = "C-FedDA"
    shared = False
