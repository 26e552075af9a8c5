r"""CD: average local coordinate-descent fits; ST and P: soft-threshold the average as well.

.. math:: \beta_{t+1} = \sum_j w_j T_j^E(\beta_t), \qquad \beta_0 = 0,

where T_j is one cyclic sweep of exact coordinate updates at site j (Friedman, Hastie and
Tibshirani 2010); for losses that are not quadratic, a sweep over their quadratic model. The
averaging is that of McMahan et al. (2017). ST thresholds once after fitting, P after every round:

.. math::
    \text{ST}: S(\beta_R, \tau), \qquad
    \text{P}: \beta_{t+1} = S\Bigl(\sum_j w_j T_j^E(\beta_t), \tau\Bigr), \qquad
    \tau / \lambda \in \{0, 0.03, 0.1, 0.3, 1\}.
"""

from dataclasses import dataclass

import numpy as np

from fedlasso.federation import Disclosure, Models, Request, Steps
from fedlasso.numerics import Array, local_sweeps
from fedlasso.numerics.local_steps import keep_unmoved
from fedlasso.procedures.procedure import Average, Averaged, Coefficients, Problem
from fedlasso.sites import View


class LocalSweeps(Request[Coefficients]):
    """Return T_j^E(b) for every column b of ``start``."""

    discloses = Disclosure("a site's own model after local steps, weighted by its rows")
    start: Models
    lam: float
    epochs: Steps

    def answer(self, site: View) -> Coefficients:
        f, lam, epochs = site.training, self.lam, self.epochs

        def sweep(b: Array) -> Array:
            key = ("sweeps", lam, epochs, b.tobytes())
            return site.remember(key, lambda: local_sweeps(f, b[:, None], lam, epochs)[:, 0])

        values = np.column_stack([sweep(b) for b in self.start.T])
        return Coefficients.of(site, values, self.epochs * values.shape[1])


@dataclass(frozen=True)
class Averaging(Averaged):
    """CD, averaging of local coordinate descent: ``epochs`` sweeps at each site, then the mean."""

    name = "CD"
    losses = "any smooth"

    def request(self, problem: Problem, state: Average) -> Request[Coefficients]:
        return LocalSweeps(state.values, problem.penalty.lam, self.epochs)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        return keep_unmoved(average, state.values)


@dataclass(frozen=True)
class ThresholdedAverage(Averaging):
    """ST, averaging with a soft threshold at the end; validation chooses the threshold.

    The candidates use CD's path and differ in the threshold at its end.
    """

    name = "ST"
    path_of = "CD"
    settings: tuple[float, ...] = (0.0, 0.03, 0.1, 0.3, 1.0)

    @property
    def paths(self) -> int:
        return 1

    def models(self, problem: Problem, state: Average) -> Array:
        return problem.penalty.prox(state.values, np.array(self.settings))


@dataclass(frozen=True)
class ThresholdedRounds(Averaging):
    """P, averaging with a soft threshold after every round; each threshold is a path."""

    name = "P"
    settings: tuple[float, ...] = ThresholdedAverage.settings

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        return super().combine(problem, state, problem.penalty.prox(average, state.scales))
