r"""ST and P: soft-threshold the average once after fitting, or after every round.

.. math::
    \text{ST}: S(\beta_R, \tau), \qquad
    \text{P}: \beta_{t+1} = S\Bigl(\sum_j w_j T_j^E(\beta_t), \tau\Bigr), \qquad
    \tau / \lambda \in \{0, 0.03, 0.1, 0.3, 1\}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.numerics import Array
from fedlasso.procedures.averaging import Average, Averaging
from fedlasso.procedures.procedure import Problem

THRESHOLDS = (0.0, 0.03, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class ThresholdedAverage(Averaging):
    """ST: the candidates share CD's path and differ in the threshold at its end."""

    name: ClassVar[str] = "ST"
    path_of: ClassVar[str] = "CD"
    settings: tuple[float, ...] = THRESHOLDS

    @property
    def paths(self) -> int:
        return 1

    def models(self, problem: Problem, state: Average) -> Array:
        return problem.penalty.prox(state.beta, np.array(self.settings))


@dataclass(frozen=True)
class ThresholdedRounds(Averaging):
    """P: each threshold is a path of its own, since it changes every later local update."""

    name: ClassVar[str] = "P"
    settings: tuple[float, ...] = THRESHOLDS

    def combine(self, problem: Problem, total: Any) -> Array:
        average = super().combine(problem, total)
        return problem.penalty.prox(average, np.array(self.settings))
