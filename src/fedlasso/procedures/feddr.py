r"""FedDR: federated Douglas-Rachford splitting (Tran-Dinh et al. 2021), all sites in every round.

.. math::
    y_j^+ = y_j + \alpha (\bar x - x_j), \qquad
    x_j^+ = \mathrm{prox}_{\eta f_j}(y_j^+), \qquad
    \bar x^+ = S\Bigl\{\sum_j w_j (2 x_j^+ - y_j^+), \eta \lambda\Bigr\}.

For least squares the proximal map is :math:`(G_j + I/\eta)^{-1} (c_j + y/\eta)`. A site keeps y_j
and x_j and sends :math:`2 x_j - y_j`. eta is {0.3, 1, 3} over the mean curvature of all sites, each
a path; alpha = 1.95 is the authors' choice in their experiments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Disclosure, PerCandidate, Points, Request
from fedlasso.numerics import Array
from fedlasso.procedures.admm import ridge_solve
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import MeanEigenvalue, View


class Reflect(Request[Coefficients]):
    """2 x_j - y_j, from the consensus and the site's memory; one column per eta."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "a site's own ridge solution about a given point, weighted by its rows"
    )
    x: Points
    eta: PerCandidate
    relaxation: float
    fit: str
    round: int

    def answer(self, site: View) -> Coefficients:
        f = site.least_squares
        memory = site.memory.recall(self.fit, self.round)
        y = memory["y"] + self.relaxation * (self.x - memory["x"]) if memory else self.x
        rho = 1 / self.eta
        x = ridge_solve(site, rho, f.score[:, None] + rho * y)
        site.memory.store(self.fit, self.round + 1, {"x": x, "y": y})
        steps = rho.size
        return Coefficients(f.m * (2 * x - y), steps=steps, operations=site.operations(steps))


class Reflected(State):
    """The consensus, one column per eta."""

    x: Array
    eta: Array


@dataclass(frozen=True)
class FedDR(Procedure[Reflected]):
    """Douglas-Rachford splitting; ``epochs`` is not used, the local problem is solved exactly."""

    name: ClassVar[str] = "FedDR"
    settings: tuple[float, ...] = (0.3, 1.0, 3.0)
    relaxation: float = 1.95

    def prepare(self) -> MeanEigenvalue:
        return MeanEigenvalue()

    def start(self, problem: Problem, prepared: Any) -> Reflected:
        curvature = prepared.value / problem.m
        return Reflected(np.zeros((problem.p, self.paths)), np.array(self.settings) / curvature)

    def request(self, problem: Problem, state: Reflected) -> Reflect:
        fit = f"{self!r} {problem!r}"
        return Reflect(state.x, state.eta, self.relaxation, fit, state.round)

    def advance(self, problem: Problem, state: Reflected, total: Any) -> Reflected:
        average = total.values / problem.m
        x = problem.penalty.prox(average, state.eta)
        return Reflected(x, state.eta, round=state.round + 1)

    def models(self, problem: Problem, state: Reflected) -> Array:
        return state.x
