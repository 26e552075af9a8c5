r"""CD: average local coordinate-descent fits.

.. math:: \beta_{t+1} = \sum_j w_j T_j^E(\beta_t), \qquad \beta_0 = 0,

where T_j is one cyclic sweep of exact coordinate updates at site j (Friedman, Hastie and
Tibshirani 2010), and averaging is that of McMahan et al. (2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Disclosure, Models, Reply, Request, Steps
from fedlasso.numerics import Array, local_sweeps
from fedlasso.numerics.local_steps import settle
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import View


class Coefficients(Reply):
    """m_j times one vector per path, as columns: those of all sites add up to m times the mean."""

    values: Array


class LocalSweeps(Request[Coefficients]):
    """T_j^E from every column of ``start``."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "a site's own model after local steps, weighted by its rows"
    )
    start: Models
    lam: float
    epochs: Steps

    def answer(self, site: View) -> Coefficients:
        f = site.least_squares

        def sweep(b: Array) -> Array:
            return site.remember(
                ("sweeps", self.lam, self.epochs, b.tobytes()),
                lambda: local_sweeps(f, b[:, None], self.lam, self.epochs)[:, 0],
            )

        values = np.column_stack([sweep(b) for b in self.start.T])
        steps = self.epochs * values.shape[1]
        return Coefficients(f.m * values, steps=steps, operations=site.operations(steps))


class Average(State):
    """beta_t, one column per path."""

    beta: Array


@dataclass(frozen=True)
class Averaging(Procedure[Average]):
    """Coordinate-descent averaging with ``epochs`` local sweeps per round."""

    name: ClassVar[str] = "CD"

    def start(self, problem: Problem, prepared: Any) -> Average:
        return Average(np.zeros((problem.p, self.paths)))

    def request(self, problem: Problem, state: Average) -> LocalSweeps:
        return LocalSweeps(state.beta, problem.penalty.lam, self.epochs)

    def combine(self, problem: Problem, total: Coefficients) -> Array:
        """sum_j w_j T_j^E(beta_t)."""
        return total.values / problem.m

    def advance(self, problem: Problem, state: Average, total: Any) -> Average:
        beta = settle(self.combine(problem, total), state.beta)
        return Average(beta, round=state.round + 1)

    def models(self, problem: Problem, state: Average) -> Array:
        return state.beta
