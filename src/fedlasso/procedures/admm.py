r"""Consensus ADMM (Boyd et al. 2011), over-relaxed.

.. math::
    x_j &= (G_j + \rho I)^{-1} \{c_j + \rho (z - u_j)\}, \qquad
    \hat x_j = \alpha x_j + (1 - \alpha) z, \\
    z^+ &= S\Bigl\{\sum_j w_j (\hat x_j + u_j), \lambda / \rho\Bigr\}, \qquad
    u_j^+ = u_j + \hat x_j - z^+.

A site sends :math:`v_j = \hat x_j + u_j` and keeps it: its next dual is :math:`v_j - z^+`. rho is
``penalty`` times the mean curvature of all sites, one number that no search is needed for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import MeanEigenvalue, Request, Site
from fedlasso.lasso import Array, soft_threshold
from fedlasso.lasso.ridge import RidgeFactor
from fedlasso.procedures.averaging import Coefficients
from fedlasso.procedures.procedure import Problem, Procedure, State


def ridge_factor(site: Site, rho: float) -> RidgeFactor:
    """The site's factor of G_j + rho I, computed in the first round and kept."""
    kept = site.diagnostics.get("ridge factor")
    if not isinstance(kept, RidgeFactor) or kept.rho != rho:
        kept = site.diagnostics["ridge factor"] = RidgeFactor(site.training, rho)
    return kept


@dataclass(frozen=True, eq=False)
class DualProximal(Request[Coefficients]):
    """v_j = relaxed x_j + u_j, from z and the site's memory."""

    z: Array
    rho: float
    relaxation: float
    fit: str
    round: int

    def answer(self, site: Site) -> Coefficients:
        rho, alpha = self.rho, self.relaxation
        memory = site.memory.recall(self.fit, self.round)
        u = memory["v"] - self.z if memory else np.zeros_like(self.z)
        x = ridge_factor(site, rho).solve(site.training.score + rho * (self.z - u))
        v = alpha * x + (1 - alpha) * self.z + u
        site.memory.store(self.fit, self.round + 1, {"v": v})
        return Coefficients(v, steps=1, operations=site.operations(1))


@dataclass(frozen=True, eq=False)
class Consensus(State):
    """z and rho."""

    z: Array
    rho: float


@dataclass(frozen=True)
class ADMM(Procedure[Consensus]):
    """Consensus ADMM; ``epochs`` is not used, the local problem is solved exactly."""

    name: ClassVar[str] = "ADMM"
    penalty: float = 1.6
    relaxation: float = 1.6

    def prepare(self) -> MeanEigenvalue:
        return MeanEigenvalue()

    def start(self, problem: Problem, prepared: Sequence[Any]) -> Consensus:
        curvature = float(problem.average([np.array(r.value) for r in prepared]))
        return Consensus(np.zeros(problem.p), self.penalty * curvature)

    def request(self, problem: Problem, state: Consensus) -> DualProximal:
        fit = f"{self!r} {problem!r}"
        return DualProximal(state.z, state.rho, self.relaxation, fit, state.round)

    def advance(self, problem: Problem, state: Consensus, replies: Sequence[Any]) -> Consensus:
        v = problem.average([r.values for r in replies])
        z = soft_threshold(v, problem.lam / state.rho)
        return Consensus(z, state.rho, round=state.round + 1)

    def models(self, problem: Problem, state: Consensus) -> Array:
        return state.z[:, None]
