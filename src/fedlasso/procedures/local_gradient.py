r"""Local gradient steps with a proximal step: FedMid and ProxSkip.

FedMid (Yuan, Zaheer and Reddi 2021): E proximal steps at every site, then one average:

.. math::
    x_j \leftarrow S\{x_j - \eta \nabla f_j(x_j), \eta \lambda\}, \qquad
    \beta_{t+1} = \sum_j w_j x_j.

With ``server_prox`` the server also thresholds the average by :math:`\eta E \lambda`, as their
mirror-descent server step does. Rates are {0.03, 0.1, 0.3, 0.6, 1} / L_max, each a path.

ProxSkip, or Scaffnew, with the l1 penalty (Mishchenko et al. 2022): local steps corrected by a
control variate h_j, and a proximal step only when models are averaged, here after exactly E steps
instead of with probability 1/E:

.. math::
    E \times:\ x_j &\leftarrow x_j - \gamma (\nabla f_j(x_j) - h_j), \\
    z^+ &= S\Bigl\{\sum_j w_j (x_j - \gamma E h_j), \gamma E \lambda\Bigr\}, \qquad
    h_j^+ = h_j + (z^+ - x_j) / (\gamma E).

A site sends :math:`v_j = x_j - \gamma E h_j` and keeps it: its next control variate is
:math:`(z^+ - v_j) / (\gamma E)`. Rates are {0.1, 0.3, 1} / L_max, each a path: the
largest is best at few local steps, a smaller one where E is large. At E = 1 this is the pooled
proximal gradient method.
"""

from dataclasses import dataclass

import numpy as np

from fedlasso.federation import Disclosure, Models, PerCandidate, Points, Request, Steps
from fedlasso.numerics import Array, penalty_fields
from fedlasso.numerics.local_steps import stay_finite
from fedlasso.procedures.procedure import AtRates, Average, Coefficients, Problem
from fedlasso.sites import Penalised, View


class ProximalSteps(Penalised[Coefficients]):
    """Take E proximal gradient steps from every column of x, each with its own rate."""

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
                x = stay_finite(penalty.prox(x - rate * f.gradient(x), rate), x)
            columns.append(x)
        return Coefficients.of(site, np.column_stack(columns), self.epochs * len(columns))


@dataclass(frozen=True)
class FedMid(AtRates):
    """Averaged proximal gradient with ``epochs`` local steps per round and five rates."""

    name = "FedMid"
    needs = ("prox", "unbounded")
    server_prox: bool = False

    def request(self, problem: Problem, state: Average) -> ProximalSteps:
        penalty = penalty_fields(problem.penalty)
        return ProximalSteps(x=state.values, rates=state.scales, epochs=self.epochs, **penalty)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        steps = state.scales * self.epochs
        return problem.penalty.prox(average, steps) if self.server_prox else average


class CorrectedSteps(Request[Coefficients]):
    """Take E corrected steps from every column of z, with control variates in the site's memory."""

    discloses = Disclosure("a site's own model after local steps, weighted by its rows")
    remembers = True
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
        columns = []
        for x, h_k, rate in zip(self.z.T, h.T, self.rates, strict=True):
            for _ in range(self.epochs):
                x = stay_finite(x - rate * (f.gradient(x) - h_k), x)
            columns.append(x)
        v = np.column_stack(columns) - reach * h
        site.memory.store(self.fit, self.round + 1, {"v": v})
        return Coefficients.of(site, v, self.epochs * len(columns))


@dataclass(frozen=True)
class ProxSkip(AtRates):
    """Scaffnew with ``epochs`` local steps per round and three rates."""

    name = "ProxSkip"
    settings: tuple[float, ...] = (0.1, 0.3, 1.0)

    def request(self, problem: Problem, state: Average) -> CorrectedSteps:
        fit = f"{self!r} {problem!r}"
        return CorrectedSteps(state.values, state.scales, self.epochs, fit, state.round)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        return problem.penalty.prox(average, state.scales * self.epochs)
