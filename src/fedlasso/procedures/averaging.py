r"""CD: average local coordinate-descent fits.

.. math:: \beta_{t+1} = \sum_j w_j T_j^E(\beta_t), \qquad \beta_0 = 0,

where T_j is one cyclic sweep of exact coordinate updates at site j (Friedman, Hastie and
Tibshirani 2010), and averaging is that of McMahan et al. (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Reply, Request
from fedlasso.numerics import Array, local_sweeps
from fedlasso.numerics.rounding import settle
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import Site


@dataclass(frozen=True, eq=False)
class Coefficients(Reply):
    """One vector a path, as columns."""

    values: Array


@dataclass(frozen=True, eq=False)
class LocalSweeps(Request[Coefficients]):
    """T_j^E from every column of ``start``."""

    start: Array
    lam: float
    epochs: int

    def answer(self, site: Site) -> Coefficients:
        def sweep(b: Array) -> Array:
            return site.remember(
                ("sweeps", self.lam, self.epochs, b.tobytes()),
                lambda: local_sweeps(site.training, b[:, None], self.lam, self.epochs)[:, 0],
            )

        values = [sweep(b) for b in self.start.T]
        steps = self.epochs * len(values)
        return Coefficients(np.column_stack(values), steps=steps, operations=site.operations(steps))


@dataclass(frozen=True, eq=False)
class Average(State):
    """beta_t, one column a path."""

    beta: Array


@dataclass(frozen=True)
class Averaging(Procedure[Average]):
    """Coordinate-descent averaging with ``epochs`` local sweeps a round."""

    name: ClassVar[str] = "CD"

    def start(self, problem: Problem, prepared: Sequence[Any]) -> Average:
        return Average(np.zeros((problem.p, self.paths)))

    def request(self, problem: Problem, state: Average) -> LocalSweeps:
        return LocalSweeps(state.beta, problem.lam, self.epochs)

    def combine(self, problem: Problem, replies: Sequence[Any]) -> Array:
        """sum_j w_j T_j^E(beta_t)."""
        return problem.average([r.values for r in replies])

    def advance(self, problem: Problem, state: Average, replies: Sequence[Any]) -> Average:
        beta = settle(self.combine(problem, replies), state.beta)
        return Average(beta, round=state.round + 1)

    def models(self, problem: Problem, state: Average) -> Array:
        return state.beta
