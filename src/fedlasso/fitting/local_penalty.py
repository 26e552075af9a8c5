"""Penalties that sites search for themselves, and the pooled problem at a penalty."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Disclosure, Federation, Reply, Request, Steps
from fedlasso.federation.messages import Count, Positive
from fedlasso.numerics import L1, Array, LeastSquares, Penalty, Sample, find_loss
from fedlasso.numerics.path import LassoPath, lasso_path, penalty_grid
from fedlasso.procedures import Problem
from fedlasso.sites import Rows, View


@dataclass(frozen=True, eq=False)
class LocalPenalty:
    """A site's own search: the whole path, its validation errors, and the choice."""

    path: LassoPath
    errors: Array
    chosen: int

    @property
    def lam(self) -> float:
        """The penalty with the smallest validation error; a tie goes to the larger penalty."""
        return float(self.path.penalties[self.chosen])


def search_penalty(
    training: LeastSquares, held_out: Sample, count: int = 30, ratio: float = 1e-3
) -> LocalPenalty:
    """Search one site's penalty on log-spaced values, each fit exact to a gap of 1e-10."""
    path = lasso_path(training, penalty_grid(training, count, ratio))
    errors = np.array([held_out.errors(b).sum() for b in path.coefficients.T]) / held_out.m
    return LocalPenalty(path, errors, int(np.argmin(errors)))


def local_search(site: View, count: int = 30, ratio: float = 1e-3) -> LocalPenalty:
    """Search at one site, once, and keep the result there."""

    def search() -> LocalPenalty:
        return search_penalty(site.least_squares, site.validation("penalty"), count, ratio)

    return site.keep(("penalty", count, ratio), search)


class PenaltyChoice(Reply):
    """m_j and the penalty that site j chose: two scalars."""

    rows: Count[int]
    lam: Positive[float]


class ChoosePenalty(Request[PenaltyChoice]):
    """Which penalty predicts the site's own held-out rows best?"""

    kind = "penalty"
    discloses = Disclosure(
        "the number of training rows and the penalty with the smallest held-out error",
        held_out=True,
        single="a site's own penalty, for its own Lasso and for the weighted mean",
    )
    count: Steps = 30
    ratio: float = 1e-3

    def answer(self, site: View) -> PenaltyChoice:
        search = local_search(site, self.count, self.ratio)
        knots = search.path.knots
        return PenaltyChoice(site.rows, search.lam, steps=knots, operations=site.operations(knots))


def choose_penalty(federation: Federation) -> Problem:
    """Return the problem at the sample-size-weighted mean of the sites' own penalties."""
    if not find_loss(federation.loss).quadratic:
        raise FedLassoError(
            f"sites search their own penalty for the quadratic loss only, and these have the "
            f"{federation.loss} loss; give a penalty"
        )
    choices = federation.ask(ChoosePenalty())
    m = sum(choice.rows for choice in choices)
    lam = sum(choice.rows / m * choice.lam for choice in choices)
    return _problem(federation, L1(lam), [choice.rows for choice in choices])


def fix_penalty(
    federation: Federation, penalty: float | Penalty, sizes: Sequence[int] | None = None
) -> Problem:
    """Return the problem at a given penalty; the sites send their numbers of rows, if unknown."""
    if not isinstance(penalty, Penalty):
        penalty = L1(float(penalty))
    if sizes is None:
        sizes = [reply.rows for reply in federation.ask(Rows())]
    return _problem(federation, penalty, sizes)


def _problem(federation: Federation, penalty: Penalty, sizes: Sequence[int]) -> Problem:
    p = len(federation.columns)
    return Problem(penalty, federation.sites, tuple(sizes), p, federation.loss)
