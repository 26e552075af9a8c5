r"""Procedures with one upload: of local fits, debiased local fits, or second moments.

One-shot averaging is the mean of exact local Lasso fits (Zinkevich et al. 2010), p numbers:

.. math:: \beta = \sum_j w_j b_j, \qquad b_j = \arg\min_b f_j(b) + \lambda |b|_1.

Debiased averaging (Lee et al. 2017; Battey et al. 2018) corrects every local fit first,

.. math:: \beta = \sum_j w_j \{b_j + M_j (c_j - G_j b_j)\},

with the nodewise inverse M_j (van de Geer et al. 2014): on columns of unit norm, regress column k
on the others with penalty :math:`\nu_j = \sqrt{2 \log p / m_j}` / 2, giving :math:`\gamma_k` and
:math:`\tau_k^2 = 1 - R_k' \gamma_k`; row k of M_j is :math:`(e_k - \gamma_k)' / \tau_k^2`.
The average is not sparse. The server keeps its entries above a threshold, {0, 0.3, 1, 2, 3} times
lambda over the mean curvature; these candidates use one upload.

One-shot Gram solves the pooled Lasso at the server, from second moments:

.. math:: G = \sum_j X_j'X_j / m, \quad c = \sum_j X_j'y_j / m, \qquad
    \beta = \arg\min_b \tfrac12 b'Gb - c'b + \lambda |b|_1.

Exact after one upload of p + p(p+1)/2 numbers. **This discloses every second moment of a site's
records**: all variances and covariances of predictors and response. A site with fewer rows than
columns discloses its records up to a rotation of the rows. The moments are sums over rows, so
secure aggregation hides those of a single site.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Disclosure, Reply, Request, Shapes
from fedlasso.federation.magnitudes import Bound, Magnitudes
from fedlasso.federation.messages import LowerProducts
from fedlasso.numerics import Array, LeastSquares, solve_reference
from fedlasso.numerics.descent import shifted_lasso
from fedlasso.numerics.moments import from_moments
from fedlasso.numerics.sample import GRAM_COLUMNS
from fedlasso.numerics.triangles import count_packed, pack, unpack
from fedlasso.procedures.procedure import Average, Averaged, Coefficients, Problem
from fedlasso.sites import MeanEigenvalue, View


class LocalFit(Request[Coefficients]):
    """The site's own Lasso, solved exactly."""

    discloses = Disclosure(
        "a site's own Lasso, weighted by its rows", single="a card compares each site's own Lasso"
    )
    lam: float

    def expects(self, p: int) -> Shapes:
        return {"values": (p, 1)}

    def answer(self, site: View) -> Coefficients:
        local = solve_reference(site.least_squares, self.lam)
        return Coefficients.of(site, local.coefficients[:, None], local.knots)


@dataclass(frozen=True)
class OneShot(Averaged):
    """Average of exact local fits; ``epochs`` is not used."""

    name = "OneShot"

    def request(self, problem: Problem, state: Average) -> Request[Any]:
        return LocalFit(problem.penalty.lam)

    def done(self, problem: Problem, state: Average) -> bool:
        return state.round == 1


def nodewise_correction(f: LeastSquares, v: Array) -> tuple[Array, int]:
    """Return M v for the nodewise inverse M of X'X/m, and the number of sweeps."""
    norms = np.sqrt(f.design.norms)
    unit = LeastSquares(f.X / norms, f.y)
    nu = np.sqrt(2 * np.log(f.p) / f.m) / 2
    u = v / norms
    out = np.empty(f.p)
    sweeps = 0
    for k in range(f.p):
        R_k = unit.gram[k] if unit.prefers_gram else unit.columns @ unit.columns[k] / f.m
        gamma, took = shifted_lasso(unit, R_k, nu, 0.0, np.zeros(f.p), pinned=k)
        sweeps += took
        out[k] = (u[k] - gamma @ u) / (1.0 - R_k @ gamma)
    return out / norms, sweeps


class DebiasedFit(Request[Coefficients]):
    """The site's own Lasso, debiased."""

    discloses = Disclosure("a site's own debiased model, weighted by its rows")
    lam: float

    def answer(self, site: View) -> Coefficients:
        f = site.least_squares
        local = solve_reference(f, self.lam)
        b = local.coefficients
        correction, sweeps = nodewise_correction(f, -f.gradient(b))
        return Coefficients.of(site, b + correction, local.knots + sweeps)


@dataclass(frozen=True)
class Debiased(OneShot):
    """Average of debiased local fits, thresholded at the end; ``epochs`` is not used."""

    name = "Debiased"
    first_question = MeanEigenvalue
    settings: tuple[float, ...] = (0.0, 0.3, 1.0, 2.0, 3.0)

    @property
    def paths(self) -> int:
        return 1

    def scales(self, problem: Problem, prepared: Any) -> Array:
        curvature = float(prepared.value / problem.m)
        return np.array(self.settings) * (problem.penalty.lam / curvature)

    def request(self, problem: Problem, state: Average) -> DebiasedFit:
        return DebiasedFit(problem.penalty.lam)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        return average[:, None]

    def models(self, problem: Problem, state: Average) -> Array:
        return np.where(np.abs(state.values) > state.scales, state.values, 0.0)


class SecondMoments(Reply):
    """Sums over rows: the lower triangle of X_j'X_j, and X_j'y_j. Discloses second moments."""

    gram: LowerProducts
    score: Array


class AllMoments(Request[SecondMoments]):
    """All second moments of the site's records."""

    discloses = Disclosure(
        "every variance and covariance of the columns and the response",
        allowed=False,
        moments=True,
    )

    def expects(self, p: int) -> Shapes:
        return {"gram": (count_packed(p),), "score": (p,)}

    def answer(self, site: View) -> SecondMoments:
        f = site.least_squares
        gram = f.m * pack(f.gram, lower=True)
        return SecondMoments(gram, f.m * f.score, steps=f.p, operations=2 * f.m * f.p * f.p)

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        powers = magnitudes.columns
        return {
            "gram": Bound(pack(powers[:, None] + powers, lower=True), words=1),
            "score": Bound(powers + magnitudes.response, words=1),
        }


@dataclass(frozen=True)
class OneShotGram(OneShot):
    """The pooled Lasso from second moments; ``epochs`` is not used."""

    name = "OneShotGram"

    def start(self, problem: Problem, prepared: Any) -> Average:
        start = super().start(problem, prepared)
        if problem.p > GRAM_COLUMNS:
            raise FedLassoError(
                f"one-shot Gram would upload {self.upload(problem, start)} numbers per site for "
                f"{problem.p} columns; use WorkingSetGram or FISTA beyond {GRAM_COLUMNS} columns"
            )
        return start

    def request(self, problem: Problem, state: Average) -> AllMoments:
        return AllMoments()

    def advance(self, problem: Problem, state: Average, total: Any) -> Average:
        gram = unpack(total.gram / problem.m, problem.p, lower=True)
        pooled = from_moments(gram, total.score / problem.m)
        b = solve_reference(pooled, problem.penalty.lam).coefficients
        return replace(state, values=b[:, None], round=state.round + 1)
