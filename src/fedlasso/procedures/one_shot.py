r"""One-shot averaging: the mean of exact local Lasso fits (Zinkevich et al. 2010).

.. math:: \beta = \sum_j w_j \arg\min_b f_j(b) + \lambda |b|_1.

One upload of p numbers, after which there is nothing more to ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Disclosure, Request
from fedlasso.numerics import Array, solve_reference
from fedlasso.procedures.averaging import Average, Coefficients
from fedlasso.procedures.procedure import Problem, Procedure
from fedlasso.sites import View


class LocalFit(Request[Coefficients]):
    """The site's own Lasso, solved exactly."""

    discloses: ClassVar[Disclosure] = Disclosure(
        "a site's own Lasso, weighted by its rows", single="a card compares each site's own Lasso"
    )
    lam: float

    def answer(self, site: View) -> Coefficients:
        local = solve_reference(site.least_squares, self.lam)
        values = site.rows * local.coefficients[:, None]
        return Coefficients(values, steps=local.knots, operations=site.operations(local.knots))


@dataclass(frozen=True)
class OneShot(Procedure[Average]):
    """Average of exact local fits; ``epochs`` is not used."""

    name: ClassVar[str] = "OneShot"

    def start(self, problem: Problem, prepared: Any) -> Average:
        return Average(np.zeros((problem.p, 1)))

    def request(self, problem: Problem, state: Average) -> Request[Any]:
        return LocalFit(problem.penalty.lam)

    def advance(self, problem: Problem, state: Average, total: Any) -> Average:
        return Average(total.values / problem.m, round=state.round + 1)

    def models(self, problem: Problem, state: Average) -> Array:
        return state.beta

    def done(self, problem: Problem, state: Average) -> bool:
        return state.round == 1
