r"""Feature voting: the mean of local Lassos on the columns that most of them select.

The majority vote of Chen and Xie (2014), which platforms offer as feature election (NVIDIA FLARE).
Every site fits its own Lasso at the common penalty and votes for the columns that it selects, with
the weight of its rows; columns with at least a fraction :math:`\kappa` of the votes are elected:

.. math::
    b_j = \arg\min_b f_j(b) + \lambda |b|_1, \qquad
    v_k = \sum_j w_j 1\{b_{jk} \ne 0\}, \qquad
    \beta_k = \sum_j w_j b_{jk} \, 1\{v_k \ge \kappa\}.

The fractions {0.3, 0.5, 0.7} are candidates that use one upload of 2p numbers. Every loss is
supported. A penalty chosen for all rows is often too small for one site's rows, so the model is not
the pooled Lasso, and further rounds would not bring it closer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlasso.federation import Disclosure, Reply, Shapes
from fedlasso.federation.magnitudes import Bound, Magnitudes
from fedlasso.federation.messages import Positive
from fedlasso.numerics import Array, LeastSquares, penalty_fields, solve_reference
from fedlasso.numerics.curved_sweeps import minimize_smooth
from fedlasso.procedures.procedure import Coefficients, Problem, Procedure, State
from fedlasso.sites import Penalised, View


class Votes(Reply):
    """m_j where the site's own Lasso selects a column and zero elsewhere, and m_j times b_j."""

    votes: Positive[Array]
    values: Array


class LocalVotes(Penalised[Votes]):
    """Return the columns that the site's own Lasso selects, and its coefficients."""

    discloses = Disclosure("a site's own Lasso and the columns it selects, weighted by its rows")

    def expects(self, p: int) -> Shapes:
        return {"votes": (p,), "values": (p,)}

    def answer(self, site: View) -> Votes:
        f = site.training
        penalty = self.penalty
        if isinstance(f, LeastSquares) and penalty.plain:
            exact = solve_reference(f, penalty.lam)
            b = exact.coefficients
            steps = exact.knots
        else:
            b, steps = minimize_smooth(f, penalty, np.zeros(f.p))
        votes = site.rows * (b != 0.0)
        return Votes(votes, site.rows * b, steps=steps, operations=site.operations(steps))

    def bounds(self, magnitudes: Magnitudes) -> dict[str, Bound]:
        models = Coefficients.bounds(magnitudes)["values"]
        return {"votes": Bound(2 * magnitudes.rows), "values": models}


class Ballot(State):
    """The fraction of all rows whose sites voted for each column, and the mean of their models."""

    share: Array
    mean: Array


@dataclass(frozen=True)
class Voting(Procedure[Ballot]):
    """The mean of local fits on the columns that most of them select; ``epochs`` is not used."""

    name = "Voting"
    losses = "any smooth"
    needs = ("thresholds", "unbounded")
    settings: tuple[float, ...] = (0.3, 0.5, 0.7)

    @property
    def paths(self) -> int:
        return 1

    def start(self, problem: Problem, prepared: Any) -> Ballot:
        zero = np.zeros(problem.p)
        return Ballot(zero, zero)

    def request(self, problem: Problem, state: Ballot) -> LocalVotes:
        return LocalVotes(**penalty_fields(problem.penalty))

    def advance(self, problem: Problem, state: Ballot, total: Any) -> Ballot:
        m = problem.m
        return Ballot(total.votes / m, total.values / m, round=state.round + 1)

    def models(self, problem: Problem, state: Ballot) -> Array:
        elected = state.share[:, None] >= np.array(self.settings)
        return np.where(elected, state.mean[:, None], 0.0)

    def done(self, problem: Problem, state: Ballot) -> bool:
        return state.round == 1
