"""What is known of single coefficients: chances of an effect, estimates, intervals and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, ndtri

from fedlasso.errors import FedLassoError
from fedlasso.numerics import Array
from fedlasso.numerics.spike_slab import select_by_fdr

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Effects:
    """What columns are thought to do, given all rows: nothing, or an effect of some size.

    Attributes
    ----------
    chances : how likely each column is to have an effect
    means, spreads : means and standard deviations of the effects, where there are some

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.fitting.inference.estimates import Effects
    >>> two = Effects(np.array([0.999, 0.9]), np.array([1.0, 1.0]), np.array([0.2, 0.2]))
    >>> two.intervals(0.95).round(2)
    array([[0.6 , 1.39],
           [0.  , 1.38]])
    """

    chances: Array
    means: Array
    spreads: Array

    def intervals(self, level: float) -> Array:
        """Intervals that hold the effects with a probability, an array (columns, 2)."""
        tail = (1 - level) / 2
        return np.column_stack([self._quantiles(tail), self._quantiles(1 - tail)])

    @property
    def expected(self) -> Array:
        """What a column does on average, none of it included."""
        return self.chances * self.means

    @property
    def variance(self) -> float:
        """How much of a linear predictor's variance is not known, for columns of variance one."""
        squares = self.chances * (self.spreads**2 + self.means**2)
        return float((squares - self.expected**2).sum())

    def take(self, some: NDArray[np.bool_]) -> Effects:
        """Return some of the columns."""
        return Effects(self.chances[some], self.means[some], self.spreads[some])

    def stretch(self, factor: float) -> Effects:
        """Return the same with effects that are so many times as large."""
        return Effects(self.chances, self.means * factor, self.spreads * factor)

    def _quantiles(self, share: float) -> Array:
        """Numbers below which effects are with a probability; zero itself has some."""
        known = np.maximum(self.spreads, np.finfo(np.float64).tiny)
        negative = self.chances * ndtr(-self.means / known)
        # Where zero does not count, the share is one of the effects alone.
        beyond = np.where(share < negative, share, share - (1 - self.chances))
        likely = np.maximum(self.chances, np.finfo(np.float64).tiny)
        of_effects = np.clip(beyond / likely, 0.0, 1.0)
        at_zero = (share >= negative) & (share <= negative + 1 - self.chances)
        return np.where(at_zero, 0.0, self.means + known * ndtri(of_effects))


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of single coefficients without the Lasso's bias, on the scale of the fit.

    Attributes
    ----------
    columns : places of the columns, increasing
    values, errors : arrays of estimates and of their standard errors
    tests : how many columns might have been looked at
    site_values, site_variances : arrays (sites, columns) of sites' own estimates, where they were
        asked for; a variance of zero means that a site cannot tell
    effects : what the columns are thought to do, where they were found by that

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.fitting.inference.estimates import Estimates
    >>> found = Estimates(np.array([0, 3]), np.array([1.0, 0.1]), np.array([0.2, 0.2]), tests=10)
    >>> found.intervals().round(2)
    array([[ 0.61,  1.39],
           [-0.29,  0.49]])
    >>> found.adjusted("holm").round(3)
    array([0., 1.])
    """

    columns: NDArray[np.int64]
    values: Array
    errors: Array
    tests: int
    site_values: Array | None = None
    site_variances: Array | None = None
    effects: Effects | None = None

    @property
    def scores(self) -> Array:
        """Estimates in standard errors; zero where rows do not differ, and so tell nothing."""
        known = self.errors > 0
        return np.divide(self.values, self.errors, out=np.zeros(known.size), where=known)

    @cached_property
    def p_values(self) -> Array:
        """Two-sided p-values."""
        return np.asarray(2 * ndtr(-np.abs(self.scores)))

    def adjusted(self, how: str = "bh") -> Array:
        """p-values adjusted for all tests: for the false discovery rate, or by Holm's method.

        Columns that might have been found and are not here count with a p-value of one.
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

    def found(self, rate: float) -> Estimates:
        """Return those that are likely enough for a false discovery rate."""
        if self.effects is None:
            raise FedLassoError("these columns were not found by how likely they are")
        return self.take(select_by_fdr(self.effects.chances, rate))

    @classmethod
    def join(cls, parts: Sequence[Estimates]) -> Estimates:
        """Return the estimates of several groups of columns as one."""
        values = [part.site_values for part in parts if part.site_values is not None]
        variances = [part.site_variances for part in parts if part.site_variances is not None]
        return replace(
            parts[0],
            columns=np.concatenate([part.columns for part in parts]),
            values=np.concatenate([part.values for part in parts]),
            errors=np.concatenate([part.errors for part in parts]),
            site_values=np.hstack(values) if values else None,
            site_variances=np.hstack(variances) if variances else None,
        )

    def take(self, some: NDArray[np.bool_]) -> Estimates:
        """Return the estimates of some of the columns."""
        values = self.site_values
        variances = self.site_variances
        return replace(
            self,
            columns=self.columns[some],
            values=self.values[some],
            errors=self.errors[some],
            site_values=None if values is None else values[:, some],
            site_variances=None if variances is None else variances[:, some],
            effects=None if self.effects is None else self.effects.take(some),
        )

    def stretch(self, factor: float) -> Estimates:
        """Return the same with estimates and errors that are so many times as large."""
        values = self.site_values
        variances = self.site_variances
        return replace(
            self,
            values=self.values * factor,
            errors=self.errors * factor,
            site_values=None if values is None else values * factor,
            site_variances=None if variances is None else variances * factor**2,
            effects=None if self.effects is None else self.effects.stretch(factor),
        )

    def intervals(self, level: float = LEVEL) -> Array:
        """Intervals that cover at a level, an array (columns, 2)."""
        if self.effects is not None:
            return self.effects.intervals(level)
        reach = float(-ndtri((1 - level) / 2))
        sides = np.column_stack([self.scores - reach, self.scores + reach])
        return np.asarray(sides * self.errors[:, None])

    def heterogeneity(self) -> tuple[Array, Array]:
        """Cochran's Q test of whether sites differ: its p-value and I^2, per column."""
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
        told = degrees > 0
        p_value = np.where(told, chdtrc(np.maximum(degrees, 1.0), Q), np.nan)
        excess = np.maximum(Q - degrees, 0.0) / np.maximum(Q, np.finfo(np.float64).tiny)
        return p_value, np.where(told, excess, np.nan)
