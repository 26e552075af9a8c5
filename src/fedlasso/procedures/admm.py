r"""Consensus ADMM (Boyd et al. 2011), over-relaxed.

.. math::
    x_j &= (G_j + \rho I)^{-1} \{c_j + \rho (z - u_j)\}, \qquad
    \hat x_j = \alpha x_j + (1 - \alpha) z, \\
    z^+ &= S\Bigl\{\sum_j w_j (\hat x_j + u_j), \lambda / \rho\Bigr\}, \qquad
    u_j^+ = u_j + \hat x_j - z^+.

A site sends :math:`v_j = \hat x_j + u_j` and keeps it: its next dual is :math:`v_j - z^+`. rho is
{0.3, 1, 3} times the mean curvature of all sites, each a path; alpha = 1.6 is within the range that
Boyd et al. advise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Disclosure, PerCandidate, Points, Request
from fedlasso.numerics import Array
from fedlasso.numerics.surrogates import RidgeFactor
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State
from fedlasso.sites import MeanEigenvalue, View


def ridge_solve(site: View, rho: Array, v: Array) -> Array:
    """(G_j + rho_k I)^{-1} v_k, column by column; factors are kept from round to round."""
    f = site.least_squares

    def solve(r: float, v_k: Array) -> Array:
        return site.keep(("ridge", r), lambda: RidgeFactor(f, r)).solve(v_k)

    return np.column_stack([solve(r, v_k) for r, v_k in zip(rho.tolist(), v.T, strict=True)])


class DualProximal(Request[Coefficients]):
    """v_j = relaxed x_j + u_j, from z and the site's memory; one column per rho."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "a site's own ridge solution about a given point, weighted by its rows"
    )
    z: Points
    rho: PerCandidate
    relaxation: float
    fit: str
    round: int

    def answer(self, site: View) -> Coefficients:
        f = site.least_squares
        rho = self.rho
        alpha = self.relaxation
        memory = site.memory.recall(self.fit, self.round)
        u = memory["v"] - self.z if memory else np.zeros_like(self.z)
        x = ridge_solve(site, rho, f.score[:, None] + rho * (self.z - u))
        v = alpha * x + (1 - alpha) * self.z + u
        site.memory.store(self.fit, self.round + 1, {"v": v})
        steps = rho.size
        return Coefficients(f.m * v, steps=steps, operations=site.operations(steps))


class Consensus(State):
    """z, one column per rho."""

    z: Array
    rho: Array


@dataclass(frozen=True)
class ADMM(Procedure[Consensus]):
    """Consensus ADMM; ``epochs`` is not used, the local problem is solved exactly."""

    name: ClassVar[str] = "ADMM"
    settings: tuple[float, ...] = (0.3, 1.0, 3.0)
    relaxation: float = 1.6

    def prepare(self) -> MeanEigenvalue:
        return MeanEigenvalue()

    def start(self, problem: Problem, prepared: Any) -> Consensus:
        curvature = prepared.value / problem.m
        return Consensus(np.zeros((problem.p, self.paths)), np.array(self.settings) * curvature)

    def request(self, problem: Problem, state: Consensus) -> DualProximal:
        fit = f"{self!r} {problem!r}"
        return DualProximal(state.z, state.rho, self.relaxation, fit, state.round)

    def advance(self, problem: Problem, state: Consensus, total: Any) -> Consensus:
        v = total.values / problem.m
        z = problem.penalty.prox(v, 1 / state.rho)
        return Consensus(z, state.rho, round=state.round + 1)

    def models(self, problem: Problem, state: Consensus) -> Array:
        return state.z
