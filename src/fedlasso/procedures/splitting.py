r"""Splitting methods that solve a ridge problem at every site: ADMM and FedDR.

Consensus ADMM (Boyd et al. 2011), over-relaxed:

.. math::
    x_j &= (G_j + \rho I)^{-1} \{c_j + \rho (z - u_j)\}, \qquad
    \hat x_j = \alpha x_j + (1 - \alpha) z, \\
    z^+ &= S\Bigl\{\sum_j w_j (\hat x_j + u_j), \lambda / \rho\Bigr\}, \qquad
    u_j^+ = u_j + \hat x_j - z^+.

A site sends :math:`v_j = \hat x_j + u_j` and keeps it: its next dual is :math:`v_j - z^+`. rho is
{0.3, 1, 3} times the mean curvature of all sites, each a path; alpha = 1.6 is within the range that
Boyd et al. advise.

FedDR, federated Douglas-Rachford splitting (Tran-Dinh et al. 2021), all sites in every round:

.. math::
    y_j^+ = y_j + \alpha (\bar x - x_j), \qquad
    x_j^+ = \mathrm{prox}_{\eta f_j}(y_j^+), \qquad
    \bar x^+ = S\Bigl\{\sum_j w_j (2 x_j^+ - y_j^+), \eta \lambda\Bigr\}.

For least squares the proximal map is :math:`(G_j + I/\eta)^{-1} (c_j + y/\eta)`. A site keeps y_j
and x_j and sends :math:`2 x_j - y_j`. eta is {0.3, 1, 3} over the mean curvature of all sites, each
a path; alpha = 1.95 is the authors' choice in their experiments.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from fedlasso.errors import FedLassoError
from fedlasso.federation import Disclosure, PerCandidate, Points, Request
from fedlasso.numerics import Array, LeastSquares, one_thread
from fedlasso.procedures.procedure import Average, Averaged, Coefficients, Problem
from fedlasso.sites import MeanEigenvalue, View

_RIDGE = "a site's own ridge solution about a given point, weighted by its rows"


class RidgeFactor:
    """Solves (G + rho I) x = v for G = X'X/m, through the shorter side of X.

    With A = X/sqrt(m) and more columns than rows, Woodbury's identity gives
    x = (v - A'(AA' + rho I)^-1 A v) / rho, so no p x p matrix is ever formed.
    """

    def __init__(self, f: LeastSquares, rho: float) -> None:
        if not 0 < rho < np.inf:
            raise FedLassoError(f"rho is {rho}; give a number above zero")
        self.rho = rho
        self._f = f
        self._wide = f.p > f.m
        with one_thread():
            square = f.X @ f.columns / f.m if self._wide else f.gram.copy()
            square[np.diag_indices_from(square)] += rho
            self._factor = scipy.linalg.cho_factor(square, lower=True, overwrite_a=True)

    @one_thread()
    def solve(self, v: Array) -> Array:
        f = self._f
        solved: Array = scipy.linalg.cho_solve(self._factor, f.X @ v if self._wide else v)
        return (v - f.columns @ solved / f.m) / self.rho if self._wide else solved


def ridge_solve(site: View, rho: Array, v: Array) -> Array:
    """Return (G_j + rho_k I)^{-1} v_k, column by column; factors are cached between rounds."""
    f = site.least_squares

    def solve(r: float, v_k: Array) -> Array:
        return site.keep(("ridge", r), lambda: RidgeFactor(f, r)).solve(v_k)

    return np.column_stack([solve(r, v_k) for r, v_k in zip(rho.tolist(), v.T, strict=True)])


class DualProximal(Request[Coefficients]):
    """v_j = relaxed x_j + u_j, from z and the site's memory; one column per rho."""

    discloses = Disclosure(_RIDGE)
    remembers = True
    z: Points
    rho: PerCandidate
    relaxation: float
    fit: str
    round: int

    def answer(self, site: View) -> Coefficients:
        c = site.least_squares.score[:, None]
        alpha = self.relaxation
        memory = site.memory.recall(self.fit, self.round)
        u = memory["v"] - self.z if memory else np.zeros_like(self.z)
        x = ridge_solve(site, self.rho, c + self.rho * (self.z - u))
        v = alpha * x + (1 - alpha) * self.z + u
        site.memory.store(self.fit, self.round + 1, {"v": v})
        return Coefficients.of(site, v, self.rho.size)


class Reflect(Request[Coefficients]):
    """2 x_j - y_j, from the consensus and the site's memory; one column per eta."""

    discloses = Disclosure(_RIDGE)
    remembers = True
    x: Points
    eta: PerCandidate
    relaxation: float
    fit: str
    round: int

    def answer(self, site: View) -> Coefficients:
        c = site.least_squares.score[:, None]
        memory = site.memory.recall(self.fit, self.round)
        y = memory["y"] + self.relaxation * (self.x - memory["x"]) if memory else self.x
        rho = 1 / self.eta
        x = ridge_solve(site, rho, c + rho * y)
        site.memory.store(self.fit, self.round + 1, {"x": x, "y": y})
        return Coefficients.of(site, 2 * x - y, rho.size)


@dataclass(frozen=True)
class ADMM(Averaged):
    """Consensus ADMM; ``epochs`` is not used, the local problem is solved exactly."""

    name = "ADMM"
    first_question = MeanEigenvalue
    question: ClassVar[type[DualProximal] | type[Reflect]] = DualProximal
    settings: tuple[float, ...] = (0.3, 1.0, 3.0)
    relaxation: float = 1.6

    def scales(self, problem: Problem, prepared: Any) -> Array:
        return np.array(self.settings) * float(prepared.value / problem.m)

    def request(self, problem: Problem, state: Average) -> Request[Coefficients]:
        fit = f"{self!r} {problem!r}"
        return self.question(state.values, state.scales, self.relaxation, fit, state.round)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        return problem.penalty.prox(average, 1 / state.scales)


@dataclass(frozen=True)
class FedDR(ADMM):
    """Douglas-Rachford splitting; ``epochs`` is not used, the local problem is solved exactly."""

    name = "FedDR"
    question = Reflect
    relaxation: float = 1.95

    def scales(self, problem: Problem, prepared: Any) -> Array:
        return np.array(self.settings) / float(prepared.value / problem.m)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        return problem.penalty.prox(average, state.scales)
