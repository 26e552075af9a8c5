r"""One-shot Gram: every site sends its second moments, and the server solves the pooled Lasso.

.. math:: G = \sum_j X_j'X_j / m, \quad c = \sum_j X_j'y_j / m, \qquad
    \beta = \arg\min_b \tfrac12 b'Gb - c'b + \lambda |b|_1.

Exact after one upload of p + p(p+1)/2 numbers. **This reveals every second moment of a site's
records**: all variances and covariances of its predictors and with its response. A site with fewer
rows than columns reveals more than a summary, namely its records up to a rotation of the rows. The
moments are sums over rows, so secure aggregation hides a single site's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Disclosure, Reply, Request
from fedlasso.numerics import Array, solve_reference
from fedlasso.numerics.sample import GRAM_COLUMNS
from fedlasso.numerics.surrogates import from_moments, square, triangle
from fedlasso.procedures.averaging import Average
from fedlasso.procedures.procedure import Problem, Procedure
from fedlasso.sites import View


class SecondMoments(Reply):
    """Sums over rows: the lower triangle of X_j'X_j, and X_j'y_j. Reveals second moments."""

    gram: Array
    score: Array


class AllMoments(Request[SecondMoments]):
    """All second moments of the site's records."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "every variance and covariance of the columns and the response", allowed=False
    )

    def answer(self, site: View) -> SecondMoments:
        f = site.least_squares
        gram = f.m * triangle(f.gram)
        score = f.m * f.score
        return SecondMoments(gram, score, steps=f.p, operations=2 * f.m * f.p * f.p)


@dataclass(frozen=True)
class OneShotGram(Procedure[Average]):
    """The pooled Lasso from second moments; ``epochs`` is not used."""

    name: ClassVar[str] = "OneShotGram"

    def start(self, problem: Problem, prepared: Any) -> Average:
        if problem.p > GRAM_COLUMNS:
            raise FedLassoError(
                f"one-shot Gram would upload {self._numbers(problem)} numbers a site for "
                f"{problem.p} columns; use WorkingSetGram or FISTA beyond {GRAM_COLUMNS} columns"
            )
        return Average(np.zeros((problem.p, 1)))

    def request(self, problem: Problem, state: Average) -> AllMoments:
        return AllMoments()

    def advance(self, problem: Problem, state: Average, total: Any) -> Average:
        gram = total.gram / problem.m
        score = total.score / problem.m
        pooled = from_moments(square(gram, problem.p), score)
        beta = solve_reference(pooled, problem.penalty.lam).coefficients
        return Average(beta[:, None], round=state.round + 1)

    def models(self, problem: Problem, state: Average) -> Array:
        return state.beta

    def upload(self, problem: Problem, state: Average) -> int:
        return self._numbers(problem)

    def done(self, problem: Problem, state: Average) -> bool:
        return state.round == 1

    @staticmethod
    def _numbers(problem: Problem) -> int:
        return problem.p + problem.p * (problem.p + 1) // 2
