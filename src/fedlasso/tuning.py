"""Penalty, candidates, budgets: everything that is chosen, and what choosing costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import (
    ErrorSums,
    Federation,
    Reply,
    Request,
    Rows,
    Site,
    ValidationErrors,
)
from fedlasso.lasso import (
    Array,
    LassoPath,
    LeastSquares,
    lasso_path,
    local_sweeps,
    penalty_grid,
)
from fedlasso.procedures import Problem
from fedlasso.procedures.averaging import Coefficients

Rule = Literal["min", "1se"]
Panel = Literal["upload", "joint", "work"]
RULES: tuple[Rule, ...] = ("min", "1se")
PANELS: tuple[Panel, ...] = ("upload", "joint")
ACTIVE = 1e-4


@dataclass(frozen=True, eq=False)
class LocalPenalty:
    """A site's own search: the whole path, its validation errors, and the choice."""

    path: LassoPath
    errors: Array
    chosen: int
    grid: tuple[int, float]

    @property
    def lam(self) -> float:
        """The penalty with the smallest validation error; a tie goes to the larger penalty."""
        return float(self.path.penalties[self.chosen])


def search_penalty(
    training: LeastSquares, held_out: LeastSquares, count: int = 30, ratio: float = 1e-3
) -> LocalPenalty:
    """Search one site's penalty on log-spaced values, each fit exact to a gap of 1e-10."""
    path = lasso_path(training, penalty_grid(training, count, ratio))
    residuals = [held_out.residual(b) for b in path.coefficients.T]
    errors = np.array([(r * r).sum() for r in residuals]) / held_out.m
    return LocalPenalty(path, errors, int(np.argmin(errors)), (count, ratio))


def local_search(site: Site, count: int = 30, ratio: float = 1e-3) -> LocalPenalty:
    """The search at one site, done once and kept there."""
    known = site.diagnostics.get("penalty")
    if isinstance(known, LocalPenalty) and known.grid == (count, ratio):
        return known
    search = search_penalty(site.training, site.validation("penalty"), count, ratio)
    site.diagnostics["penalty"] = search
    return search


@dataclass(frozen=True, eq=False)
class PenaltyChoice(Reply):
    """m_j and the penalty that site j chose: two scalars."""

    rows: int
    lam: float


@dataclass(frozen=True, eq=False)
class ChoosePenalty(Request[PenaltyChoice]):
    """Which penalty predicts the site's own held-out rows best?"""

    kind: ClassVar[str] = "penalty"
    count: int = 30
    ratio: float = 1e-3

    def answer(self, site: Site) -> PenaltyChoice:
        search = local_search(site, self.count, self.ratio)
        knots = search.path.knots
        return PenaltyChoice(site.rows, search.lam, steps=knots, operations=site.operations(knots))


@dataclass(frozen=True, eq=False)
class OwnSweeps(Request[Coefficients]):
    """T_j^E at the site's own penalty."""

    start: Array
    epochs: int

    def answer(self, site: Site) -> Coefficients:
        lam = local_search(site).lam
        values = local_sweeps(site.training, self.start, lam, self.epochs)
        return Coefficients(values, steps=self.epochs, operations=site.operations(self.epochs))


@dataclass(frozen=True, eq=False)
class OwnFit(Request[Coefficients]):
    """The site's exact Lasso at its own penalty, a by-product of its search."""

    def answer(self, site: Site) -> Coefficients:
        search = local_search(site)
        return Coefficients(search.path.coefficients[:, [search.chosen]])


def choose_penalty(federation: Federation) -> Problem:
    """The common penalty: the sample-size-weighted mean of the sites' own choices."""
    choices = federation.ask(ChoosePenalty())
    sizes = tuple(choice.rows for choice in choices)
    m = sum(sizes)
    lam = sum(c.rows / m * c.lam for c in choices)
    return Problem(lam, sizes, len(federation.columns))


def fix_penalty(federation: Federation, lam: float) -> Problem:
    """A problem with a given penalty; the sites say only how many rows they have."""
    sizes = tuple(reply.rows for reply in federation.ask(Rows()))
    return Problem(float(lam), sizes, len(federation.columns))


@dataclass(frozen=True, eq=False)
class Validation:
    """Pooled validation of each candidate: mean squared error, its standard error, active count."""

    mse: Array
    se: Array
    active: Array

    def select(self, rule: Rule = "min") -> int:
        """Index of the chosen candidate.

        ``min``: smallest error, then candidate order. ``1se``: among candidates within one standard
        error of the smallest, fewest active, then smaller error, then candidate order.
        """
        best = int(np.argmin(self.mse))
        if rule == "min":
            return best
        if rule != "1se":
            raise FedLassoError(f"no selection rule is called {rule!r}; use 'min' or '1se'")
        near = np.flatnonzero(self.mse <= self.mse[best] + self.se[best])
        return int(min(near, key=lambda i: (self.active[i], self.mse[i], i)))


def validate(
    federation: Federation, candidates: Array, cutoff: float = ACTIVE, purpose: str = "candidate"
) -> Validation:
    """Pooled errors of candidate models (columns), by default on the second validation samples."""
    active = (np.abs(candidates) > cutoff).sum(axis=0).astype(np.float64)
    return pool_errors(federation.ask(ValidationErrors(candidates, purpose)), active)


def pool_errors(replies: Sequence[ErrorSums], active: Array) -> Validation:
    """Errors over all held-out rows, from the sums of sites or of sites and folds."""
    squares = np.sum([r.squares for r in replies], axis=0)
    fourths = np.sum([r.fourths for r in replies], axis=0)
    n = np.sum([r.counts for r in replies], axis=0)
    if not n.all():
        raise FedLassoError(
            "too few rows to hold any out; give a penalty, a larger validation share or more rows"
        )
    mse = squares / n
    spread = np.maximum(fourths / n - mse**2, 0.0)
    # One held-out row has no standard error; the rule then sees ties only.
    se = np.sqrt(spread * n / np.maximum(n - 1, 1) / n)
    return Validation(mse, se, active)


def rounds_within(budget: int, panel: Panel, paths: int, epochs: int) -> int:
    """Rounds a path may take: floor(B/q) by uploads, floor(5B/(qE)) by work, the lesser jointly."""
    uploads, work = budget // paths, 5 * budget // (paths * epochs)
    limits = {"upload": uploads, "work": work, "joint": min(uploads, work)}
    if panel not in limits:
        raise FedLassoError(f"no panel is called {panel!r}; use one of {', '.join(limits)}")
    return limits[panel]
