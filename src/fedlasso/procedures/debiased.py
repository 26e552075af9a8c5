r"""Debiased averaging (Lee et al. 2017; Battey et al. 2018): one upload, then a threshold.

.. math::
    \beta = \sum_j w_j \{b_j + M_j (c_j - G_j b_j)\}, \qquad b_j = \arg\min_b f_j(b) + \lambda|b|_1,

with the nodewise inverse M_j (van de Geer et al. 2014): on columns of unit norm, regress column k
on the others with penalty :math:`\nu_j = \sqrt{2 \log p / m_j}` / 2, giving :math:`\gamma_k` and
:math:`\tau_k^2 = 1 - R_k' \gamma_k`; row k of M_j is :math:`(e_k - \gamma_k)' / \tau_k^2`.

The average is not sparse. The server keeps its entries above a threshold, {0, 0.3, 1, 2, 3} times
lambda over the mean curvature: candidates that share one upload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Disclosure, Request
from fedlasso.numerics import Array, LeastSquares, solve_reference
from fedlasso.numerics.surrogates import shifted_lasso
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import MeanEigenvalue, View


def nodewise_correction(f: LeastSquares, v: Array) -> tuple[Array, int]:
    """M v for the nodewise inverse M of X'X/m, row by row, and the sweeps it took."""
    norms = np.sqrt(f.design.norms)
    unit = LeastSquares(f.X / norms, f.y)
    nu = np.sqrt(2 * np.log(f.p) / f.m) / 2
    u = v / norms
    out, sweeps = np.empty(f.p), 0
    for k in range(f.p):
        R_k = unit.gram[k] if unit.prefers_gram else unit.columns @ unit.columns[k] / f.m
        gamma, took = shifted_lasso(unit, R_k, nu, 0.0, np.zeros(f.p), pinned=k)
        sweeps += took
        # R_kk = 1, and what the others explain of column k shrinks it
        out[k] = (u[k] - gamma @ u) / (1.0 - R_k @ gamma)
    return out / norms, sweeps


class DebiasedFit(Request[Coefficients]):
    """The site's own Lasso, debiased."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "a site's own debiased model, weighted by its rows"
    )
    lam: float

    def answer(self, site: View) -> Coefficients:
        f = site.least_squares
        local = solve_reference(f, self.lam)
        b = local.coefficients
        correction, sweeps = nodewise_correction(f, -f.gradient(b))
        steps = local.knots + sweeps
        return Coefficients(f.m * (b + correction), steps=steps, operations=site.operations(steps))


class Unbiased(State):
    """The averaged debiased fit, and the mean curvature that gives thresholds their scale."""

    beta: Array
    curvature: float


@dataclass(frozen=True)
class Debiased(Procedure[Unbiased]):
    """Average of debiased local fits, thresholded at the end; ``epochs`` is not used."""

    name: ClassVar[str] = "Debiased"
    settings: tuple[float, ...] = (0.0, 0.3, 1.0, 2.0, 3.0)

    @property
    def paths(self) -> int:
        return 1

    def prepare(self) -> MeanEigenvalue:
        return MeanEigenvalue()

    def start(self, problem: Problem, prepared: Any) -> Unbiased:
        curvature = prepared.value / problem.m
        return Unbiased(np.zeros(problem.p), curvature)

    def request(self, problem: Problem, state: Unbiased) -> DebiasedFit:
        return DebiasedFit(problem.penalty.lam)

    def advance(self, problem: Problem, state: Unbiased, total: Any) -> Unbiased:
        beta = total.values / problem.m
        return Unbiased(beta, state.curvature, round=state.round + 1)

    def models(self, problem: Problem, state: Unbiased) -> Array:
        thresholds = np.array(self.settings) * (problem.penalty.lam / state.curvature)
        beta = state.beta[:, None]
        return np.where(np.abs(beta) > thresholds, beta, 0.0)

    def done(self, problem: Problem, state: Unbiased) -> bool:
        return state.round == 1
