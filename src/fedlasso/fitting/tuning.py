"""Penalty, candidates, budgets: everything that is chosen, and what choosing costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Disclosure, Federation, Models, Reply, Request, Shapes, Steps
from fedlasso.numerics import L1, Array, LeastSquares, Penalty, Sample, local_sweeps
from fedlasso.numerics.path import LassoPath, lasso_path, penalty_grid
from fedlasso.procedures import Coefficients, Problem
from fedlasso.sites import HeldOutErrors, HeldOutSums, Rows, ValidationErrors, View

Rule = Literal["min", "1se"]
Panel = Literal["upload", "joint", "work"]
# What each rule takes, in the words of the command line.
RULES: dict[Rule, str] = {
    "min": "the smallest held-out error",
    "1se": "the sparsest model whose error is within one standard error of the smallest",
}
PANELS: tuple[Panel, ...] = ("upload", "joint")
ACTIVE = 1e-4


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
    """Search at one site, once, and keep what was found there."""

    def search() -> LocalPenalty:
        return search_penalty(site.least_squares, site.validation("penalty"), count, ratio)

    return site.keep(("penalty", count, ratio), search)


class PenaltyChoice(Reply):
    """m_j and the penalty that site j chose: two scalars."""

    positive = ("lam",)
    row_counts = ("rows",)
    rows: int
    lam: float


class ChoosePenalty(Request[PenaltyChoice]):
    """Which penalty predicts the site's own held-out rows best?"""

    kind = "penalty"
    discloses = Disclosure(
        "the number of training rows and the penalty that suits them best",
        held_out=True,
        single="a site's own penalty, for its own Lasso and for the weighted mean",
    )
    count: Steps = 30
    ratio: float = 1e-3

    def answer(self, site: View) -> PenaltyChoice:
        search = local_search(site, self.count, self.ratio)
        knots = search.path.knots
        return PenaltyChoice(site.rows, search.lam, steps=knots, operations=site.operations(knots))


class OwnSweeps(Request[Coefficients]):
    """T_j^E at the site's own penalty."""

    discloses = Disclosure(
        "a site's own model at its own penalty, weighted by its rows", allowed=False
    )
    start: Models
    epochs: Steps

    def expects(self, p: int) -> Shapes:
        return {"values": self.start.shape}

    def answer(self, site: View) -> Coefficients:
        lam = local_search(site).lam
        values = local_sweeps(site.least_squares, self.start, lam, self.epochs)
        return Coefficients.of(site, values, self.epochs)


class OwnFit(Request[Coefficients]):
    """The site's exact Lasso at its own penalty, a by-product of its search."""

    discloses = Disclosure(
        "a site's own Lasso at its own penalty, weighted by its rows", allowed=False
    )

    def expects(self, p: int) -> Shapes:
        return {"values": (p, 1)}

    def answer(self, site: View) -> Coefficients:
        search = local_search(site)
        return Coefficients(site.rows * search.path.coefficients[:, [search.chosen]])


def choose_penalty(federation: Federation) -> Problem:
    """Return the problem at the sample-size-weighted mean of the sites' own penalties."""
    if federation.loss != "quadratic":
        raise FedLassoError(
            f"sites search their own penalty for the quadratic loss only, and these have the "
            f"{federation.loss} loss; give a penalty"
        )
    choices = federation.ask(ChoosePenalty())
    m = sum(choice.rows for choice in choices)
    lam = sum(choice.rows / m * choice.lam for choice in choices)
    return _problem(federation, L1(lam), [choice.rows for choice in choices])


def fix_penalty(federation: Federation, penalty: float | Penalty) -> Problem:
    """Return the problem at a given penalty; the sites say only how many rows they have."""
    if not isinstance(penalty, Penalty):
        penalty = L1(float(penalty))
    return _problem(federation, penalty, [reply.rows for reply in federation.ask(Rows())])


def _problem(federation: Federation, penalty: Penalty, sizes: Sequence[int]) -> Problem:
    p = len(federation.columns)
    return Problem(penalty, federation.sites, tuple(sizes), p, federation.loss)


@dataclass(frozen=True, eq=False)
class Validation:
    """Pooled validation of each candidate: mean error, its standard error, active count."""

    error: Array
    se: Array
    active: Array

    def select(self, rule: Rule = "min") -> int:
        """Index of the chosen candidate.

        ``min``: smallest error, then candidate order. ``1se``: among candidates within one standard
        error of the smallest, fewest active, then smaller error, then candidate order.
        """
        best = int(np.argmin(self.error))
        if rule == "min":
            return best
        if rule != "1se":
            raise FedLassoError(f"no selection rule is called {rule!r}; use 'min' or '1se'")
        near = np.flatnonzero(self.error <= self.error[best] + self.se[best])
        return int(min(near, key=lambda i: (self.active[i], self.error[i], i)))


@dataclass(frozen=True, eq=False)
class Curve:
    """Held-out error along the penalties of the Lasso.

    Attributes
    ----------
    penalties : array (L,), on the standardised scale
    coefficients : array (p, L), on that scale: of all rows, or of the first split's training rows
    validation : pooled errors
    chosen : index of the chosen penalty
    sent : vectors of p numbers that each site sent for it
    cut : whether uploads ended before the error was seen to rise
    """

    penalties: Array
    coefficients: Array
    validation: Validation
    chosen: int
    sent: int = 0
    cut: bool = False

    @property
    def lam(self) -> float:
        """The chosen penalty."""
        return float(self.penalties[self.chosen])


def validate(
    federation: Federation,
    candidates: Array,
    cutoff: float = ACTIVE,
    purpose: str = "candidate",
    *,
    exact: bool = False,
) -> Validation:
    """Pooled errors of candidate models (columns), by default on the second validation samples.

    `exact` takes the standard error from sums of fourth powers, as the paper does: sites with a
    policy do not tell them, because enough of them tell the rows.
    """
    active = (np.abs(candidates) > cutoff).sum(axis=0).astype(np.float64)
    if not exact:
        return pool_errors(federation.total(HeldOutErrors(candidates, purpose)), active)
    sums = federation.total(ValidationErrors(candidates, purpose))
    n = _held_out(sums.counts)
    error = sums.errors / n
    spread = np.maximum(sums.squares / n - error**2, 0.0)
    # One held-out row has no standard error; the rule then sees ties only.
    se = np.sqrt(spread * n / np.maximum(n - 1, 1) / n)
    return Validation(error, se, active)


def pool_errors(sums: HeldOutSums, active: Array) -> Validation:
    """Return errors over all held-out rows, their standard errors by the kurtosis of residuals."""
    n = _held_out(sums.counts)
    error = sums.errors / n
    kurtosis = np.maximum(sums.tail / n, 1.0)
    return Validation(error, error * np.sqrt((kurtosis - 1.0) / n), active)


def _held_out(counts: Array) -> Array:
    """Return the numbers of held-out rows, of which there must be some."""
    if not counts.all():
        raise FedLassoError(
            "too few rows to hold any out; give a penalty, a larger validation share or more rows"
        )
    return counts


def rounds_within(budget: int, panel: Panel, paths: int, epochs: int) -> int:
    """Rounds a path may take: floor(B/q) by uploads, floor(5B/(qE)) by work, the lesser jointly."""
    uploads = budget // paths
    work = 5 * budget // (paths * epochs)
    limits = {"upload": uploads, "work": work, "joint": min(uploads, work)}
    if panel not in limits:
        raise FedLassoError(f"no panel is called {panel!r}; use one of {', '.join(limits)}")
    return limits[panel]
