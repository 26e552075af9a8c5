"""Inference about single coefficients: probabilities, estimates, intervals and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, expit, logit, ndtr, ndtri

from fedlasso.fitting.inference.groups import GROUP_FLOOR, Group, discover
from fedlasso.numerics import Array

LEVEL = 0.95
# How a note begins if assumptions clearly fail.
CANNOT_PROMISE = "cannot promise the false discovery rate or the level of intervals here:"
# Fields of `Estimates` with one entry, or one column, per column of the model.
ARRAYS = ("columns", "values", "errors", "site_values", "site_variances")


@dataclass(frozen=True, eq=False)
class Effects:
    """The posterior of effects: a point mass at zero, or a normal distribution.

    Attributes
    ----------
    probabilities : of an effect of each column
    means, spreads : means and standard deviations of the effects, given that there are some
    lowered : the probabilities, lowered where runs of the sampler disagree; None if none is
    groups : nearly collinear columns that are more probable together than alone
    variance : of a linear predictor, for columns of variance one
    """

    probabilities: Array
    means: Array
    spreads: Array
    lowered: Array | None = None
    groups: tuple[Group, ...] = ()
    variance: float = 0.0

    def intervals(self, level: float) -> Array:
        """Return credible intervals, an array (columns, 2)."""
        tail = (1 - level) / 2
        return np.column_stack([self._quantiles(tail), self._quantiles(1 - tail)])

    @property
    def expected(self) -> Array:
        """Posterior means, the point mass at zero included."""
        return self.probabilities * self.means

    @property
    def variances(self) -> Array:
        """Posterior variances, the point mass at zero included."""
        return self.probabilities * (self.spreads**2 + self.means**2) - self.expected**2

    def lower(self) -> Effects:
        """Return effects with the lowered probabilities."""
        if self.lowered is None:
            return self
        return replace(self, probabilities=self.lowered, lowered=None)

    def discover(self, rate: float) -> tuple[NDArray[np.bool_], tuple[Group, ...]]:
        """Return columns and groups of columns at a false discovery rate."""
        return discover(self.probabilities, self.groups, rate)

    def temper(self, columns: NDArray[np.int64], ratios: Array) -> Effects:
        """Return effects of columns whose scores have so many times the variance.

        The squared score of a column is divided by its ratio, and the logarithm of its odds changes
        with half of it. That of a group, which has no score, is divided by its main column's ratio.
        """
        spreads = np.where(self.spreads > 0, self.spreads, np.inf)[columns]
        squares = (self.means[columns] / spreads) ** 2
        probabilities = self.probabilities.copy()
        probabilities[columns] = expit(
            logit(probabilities[columns]) - squares / 2 * (1 - 1 / ratios)
        )
        wider = self.spreads.copy()
        wider[columns] *= np.sqrt(ratios)
        ratio_of = dict(zip(columns.tolist(), ratios.tolist(), strict=True))
        groups = (group.temper(ratio_of[group.main]) for group in self.groups)
        probable = tuple(group for group in groups if group.probability >= GROUP_FLOOR)
        return replace(self, probabilities=probabilities, spreads=wider, groups=probable)

    def take(self, some: NDArray[np.bool_]) -> Effects:
        """Return the effects of some columns."""
        return Effects(self.probabilities[some], self.means[some], self.spreads[some])

    def stretch(self, factor: float) -> Effects:
        """Return effects that are so many times as large."""
        return Effects(self.probabilities, self.means * factor, self.spreads * factor)

    def _quantiles(self, level: float) -> Array:
        """Return quantiles of the effects, which have a point mass at zero."""
        tiny = np.finfo(np.float64).tiny
        known = np.maximum(self.spreads, tiny)
        zero = 1 - self.probabilities
        negative = self.probabilities * ndtr(-self.means / known)
        beyond = np.where(level < negative, level, level - zero)
        of_effects = np.clip(beyond / np.maximum(self.probabilities, tiny), 0.0, 1.0)
        at_zero = (level >= negative) & (level <= negative + 1 - self.probabilities)
        return np.where(at_zero, 0.0, self.means + known * ndtri(of_effects))


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of single coefficients without the Lasso's bias, on the scale of the fit.

    Attributes
    ----------
    columns : indices of the columns, increasing
    values, errors : arrays of estimates and of their standard errors; NaN if not identified
    tests : number of columns that might have been estimated
    site_values, site_variances : arrays (sites, columns) of sites' own estimates, if requested; a
        variance of zero means that a site has none
    own_refused : why sites do not send their own estimates, if they were requested
    effects : posterior of the columns' effects, if they were selected by that
    combinations : columns that are not identified, each with those that it is a combination of, or
        with none if few rows or none bound its effect
    """

    columns: NDArray[np.int64]
    values: Array
    errors: Array
    tests: int
    site_values: Array | None = None
    site_variances: Array | None = None
    own_refused: str = ""
    effects: Effects | None = None
    combinations: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Which columns have an estimate."""
        return ~np.isnan(self.values)

    @property
    def scores(self) -> Array:
        """Estimates over standard errors; zero for columns that do not vary or have none."""
        known = self.errors > 0
        return np.divide(self.values, self.errors, out=np.zeros(known.size), where=known)

    @cached_property
    def p_values(self) -> Array:
        """Two-sided p-values; one for columns that are not identified."""
        return np.asarray(2 * ndtr(-np.abs(self.scores)))

    def adjusted(self, how: str = "bh") -> Array:
        """Return p-values adjusted by Benjamini and Hochberg (``"bh"``) or by Holm (``"holm"``).

        Columns that might have been selected and are not here count with a p-value of one.
        """
        order = np.argsort(self.p_values, kind="stable")
        ranked = self.p_values[order]
        ranks = np.arange(1, len(ranked) + 1)
        if how == "holm":
            raised = np.maximum.accumulate(ranked * (self.tests - ranks + 1))
        else:
            raised = np.minimum.accumulate((ranked * self.tests / ranks)[::-1])[::-1]
        out = np.empty(len(ranked))
        out[order] = np.minimum(raised, 1.0)
        return out

    @classmethod
    def join(cls, parts: Sequence[Estimates]) -> Estimates:
        """Return the estimates of several groups of columns as one."""
        arrays = {name: [getattr(part, name) for part in parts] for name in ARRAYS}
        joined: dict[str, Any] = {k: np.hstack(a) for k, a in arrays.items() if a[0] is not None}
        combinations = {j: part for own in parts for j, part in own.combinations.items()}
        return replace(parts[0], **joined, combinations=combinations)

    def take(self, some: NDArray[np.bool_]) -> Estimates:
        """Return the estimates of some of the columns."""
        effects = None if self.effects is None else self.effects.take(some)
        arrays = {name: getattr(self, name) for name in ARRAYS}
        taken = {name: own[..., some] for name, own in arrays.items() if own is not None}
        return replace(self, **taken, effects=effects)

    def leave_out(self, unbounded: NDArray[np.int64]) -> Estimates:
        """Return the same without estimates of columns whose effects few rows bound, or none."""
        lost = np.isin(self.columns, unbounded)
        values, errors = (np.where(lost, np.nan, own) for own in (self.values, self.errors))
        combinations = self.combinations | dict.fromkeys(unbounded.tolist(), ())
        return replace(self, values=values, errors=errors, combinations=combinations)

    def stretch(self, factor: float) -> Estimates:
        """Return estimates and errors that are so many times as large."""
        effects = None if self.effects is None else self.effects.stretch(factor)
        own = {name: getattr(self, name) for name in ("values", "errors", "site_values")}
        larger = {name: array * factor for name, array in own.items() if array is not None}
        if self.site_variances is not None:
            larger["site_variances"] = self.site_variances * factor**2
        return replace(self, **larger, effects=effects)

    def intervals(self, level: float = LEVEL) -> Array:
        """Return confidence or credible intervals, an array (columns, 2)."""
        if self.effects is not None:
            return self.effects.intervals(level)
        reach = float(-ndtri((1 - level) / 2))
        sides = np.column_stack([self.scores - reach, self.scores + reach])
        return np.asarray(sides * self.errors[:, None])

    def heterogeneity(self) -> tuple[Array, Array]:
        """Return the p-value of Cochran's Q test of whether sites differ, and I^2, per column."""
        values = self.site_values
        variances = self.site_variances
        if values is None or variances is None:
            nothing = np.full(len(self.columns), np.nan)
            return nothing, nothing
        weights = np.divide(1.0, variances, out=np.zeros_like(variances), where=variances > 0)
        degrees = (weights > 0).sum(axis=0) - 1.0
        total = weights.sum(axis=0)
        mean = (weights * values).sum(axis=0) / np.where(total > 0, total, 1.0)
        Q = (weights * (values - mean) ** 2).sum(axis=0)
        known = degrees > 0
        p_value = np.where(known, chdtrc(np.maximum(degrees, 1.0), Q), np.nan)
        excess = np.maximum(Q - degrees, 0.0) / np.maximum(Q, np.finfo(np.float64).tiny)
        return p_value, np.where(known, excess, np.nan)
