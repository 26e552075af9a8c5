"""How sure single coefficients are: intervals, p-values, and columns with a false discovery rate.

Everything comes from sums over all sites: second derivatives of the loss at the Lasso, from which
the server finds one direction per column, and two numbers per direction and site. Standard errors
are those of the model, with the variance that its residuals have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtrc, log_ndtr, ndtr, ndtri, stdtrit

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation
from fedlasso.fitting.tuning import fix_penalty
from fedlasso.numerics import Array, Penalty
from fedlasso.numerics.debiasing import find_directions
from fedlasso.numerics.surrogates import count_lower, square
from fedlasso.procedures import Problem
from fedlasso.sites import CurvatureAt, PartAt, SiteSlopesAlong, SlopesAlong

# How closely directions follow one column alone. Intervals of columns that somebody names are to
# cover; discoveries are to be found, and their rate bears a little more bias.
CAREFUL = 0.5
POWERFUL = 1.25
LEVEL = 0.95
TAIL = 0.995
# Bytes of second derivatives that each site may send.
MOST_BYTES = 64 << 20
# Directions that one question looks along.
SIDE_BY_SIDE = 200
# Curvature along a direction, as a share of what a site's rows would have on average, without which
# its own estimate is left out.
LEAST = 0.1
# Standard errors beyond which a coefficient that was found is looked for.
FAR = 40.0


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of single coefficients without the Lasso's bias, on the scale of the fit.

    Attributes
    ----------
    columns : places of the columns, increasing
    values, errors : arrays of estimates and of their standard errors
    tests : how many columns might have been found
    site_values, site_variances : arrays (sites, columns) of sites' own estimates, where they were
        asked for; a variance of zero means that a site cannot tell
    cut : standard errors that every one of these columns had to pass to be here; zero without

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.fitting.inference import Estimates
    >>> found = Estimates(np.array([0, 3]), np.array([1.0, 0.1]), np.array([0.2, 0.2]), tests=10)
    >>> found.intervals().round(2)
    array([[ 0.61,  1.39],
           [-0.29,  0.49]])
    >>> found.discoveries(0.1)
    array([0])
    """

    columns: NDArray[np.int64]
    values: Array
    errors: Array
    tests: int
    site_values: Array | None = None
    site_variances: Array | None = None
    cut: float = 0.0

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

    def discoveries(self, rate: float) -> NDArray[np.int64]:
        """Columns that Benjamini and Hochberg's method finds at a false discovery rate."""
        return self.columns[self.adjusted() <= rate]

    def found(self, rate: float) -> Estimates:
        """Return the discoveries alone, with the bar that they had to pass."""
        passed = self.adjusted() <= rate
        count = int(passed.sum())
        cut = float(-ndtri(rate * count / self.tests / 2)) if count else 0.0
        return replace(self.take(passed), cut=cut)

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
        )

    def intervals(self, level: float = LEVEL) -> Array:
        """Intervals that cover at a level, an array (columns, 2).

        Those of columns which are here because their score passed a bar allow for that.
        """
        if self.cut == 0.0:
            reach = float(-ndtri((1 - level) / 2))
            sides = np.column_stack([self.scores - reach, self.scores + reach])
        else:
            sides = np.array([_after_a_bar(z, self.cut, level) for z in self.scores])
        return np.asarray(sides.reshape(-1, 2) * self.errors[:, None])

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


def _after_a_bar(score: float, bar: float, level: float) -> tuple[float, float]:
    """The interval of a mean whose normal score was seen because it is beyond a bar.

    It inverts the distribution of the score given that (Weinstein, Fithian and Benjamini 2013).
    """
    size = abs(score)
    bar = min(bar, size)

    def share_below(mean: float) -> float:
        """How probable a score up to this one is among those beyond the bar, on either side."""
        whole = np.logaddexp(log_ndtr(-bar - mean), log_ndtr(mean - bar))
        beyond = log_ndtr(mean - size)
        return float(-np.expm1(beyond - whole))

    tail = (1 - level) / 2
    low = brentq(lambda mean: share_below(mean) - (1 - tail), size - FAR, size + 10)
    high = brentq(lambda mean: share_below(mean) - tail, size - FAR, size + 10)
    return (low, high) if score > 0 else (-high, -low)


def count_curvature(p: int) -> int:
    """Return how many numbers the second derivatives of p columns are."""
    return count_lower(p)


@dataclass(frozen=True, eq=False)
class Start:
    """A fit that estimates start from.

    Attributes
    ----------
    federation, problem : the sites, and the pooled problem with the penalty of the fit
    b : the coefficients
    H : mean second derivatives of the loss there, p by p
    loss : the loss there, over all rows
    """

    federation: Federation
    problem: Problem
    b: Array
    H: Array
    loss: float

    @classmethod
    def at(cls, federation: Federation, penalty: Penalty, b: Array) -> Start:
        """Ask for the second derivatives at a fit."""
        problem = fix_penalty(federation, penalty)
        p = problem.p
        numbers = count_curvature(p)
        if 8 * numbers > MOST_BYTES:
            raise FedLassoError(
                f"{p} columns have {numbers} second derivatives, {8e-6 * numbers:.0f} MB per site, "
                f"and {MOST_BYTES >> 20} MiB is the most; drop columns that cannot matter, or use "
                "the goal 'selection'"
            )
        total = federation.total(CurvatureAt(b, np.arange(p, dtype=np.float64), 0))
        # One slope, because the loss comes with some.
        loss = federation.total(PartAt(b, np.zeros(1))).loss
        return cls(federation, problem, b, square(total.block, p) / problem.m, loss)

    @property
    def paying(self) -> NDArray[np.int64]:
        """Columns of the fit that pay a penalty."""
        pays = ~self.problem.penalty.free(self.problem.p)
        return np.flatnonzero(pays & (self.b != 0))

    def look(
        self,
        columns: NDArray[np.int64],
        strength: float,
        tests: int = 0,
        *,
        by_site: bool = False,
    ) -> Estimates:
        """Estimate some coefficients without the Lasso's bias.

        Parameters
        ----------
        columns : places of the columns, increasing
        strength : how closely directions follow one column alone
        tests : how many columns might have been found; those given, if none is said
        by_site : ask for sites' own estimates too
        """
        if self._left < 2:
            raise FedLassoError(
                f"{self.problem.m} rows and {self.problem.m - self._left} active columns leave "
                "nothing to tell chance by; give more rows, or a larger penalty"
            )
        tests = tests or columns.size
        parts = np.array_split(columns, max(-(-columns.size // SIDE_BY_SIDE), 1))
        found = [self._look(own, strength, tests, by_site) for own in parts]
        return found[0] if len(found) == 1 else _join(found)

    @property
    def dispersion(self) -> float:
        """How much responses vary, as a share of what the loss takes for granted.

        Of least squares it is the variance of the noise. Counts may vary more than their mean, and
        are never taken to vary less; yes or no and survival times vary as the model says.
        """
        if self.problem.loss == "quadratic":
            return 2 * self.loss / self._left
        return max(2 * self.loss / self._left, 1.0) if self.problem.loss == "poisson" else 1.0

    @property
    def _left(self) -> int:
        """Rows beyond those whose noise the fit has followed, one for each of its columns."""
        return self.problem.m - int(np.count_nonzero(self.b))

    def _look(
        self, columns: NDArray[np.int64], strength: float, tests: int, by_site: bool
    ) -> Estimates:
        """Estimate as many coefficients as one question asks about."""
        if not columns.size:
            return Estimates(columns, np.zeros(0), np.zeros(0), tests)
        rows = self.problem.m
        free = self.problem.penalty.free(self.problem.p)
        directions = find_directions(self.H, columns, free, rows, strength)
        total = self.federation.total(SlopesAlong(self.b, directions))
        values = self.b[columns] - total.slopes / rows
        # Few rows leave the spread itself to chance: as far out as it matters, scores have the
        # tails of Student's distribution.
        wider = float(stdtrit(self._left, TAIL) / ndtri(TAIL))
        found = Estimates(
            columns, values, wider * np.sqrt(self.dispersion * total.curvatures) / rows, tests
        )
        if not by_site or len(self.federation.sites) < 2:
            return found
        replies = self.federation.ask(SiteSlopesAlong(self.b, directions))
        slopes = np.array([reply.slopes for reply in replies])
        curvatures = np.array([reply.curvatures for reply in replies])
        # A site moves a coefficient by its slope over its share of the curvature of all rows.
        share = curvatures * rows / total.curvatures
        known = share > LEAST * np.array(self.problem.sizes)[:, None]
        steps = np.divide(slopes, share, out=np.zeros_like(share), where=known)
        variances = np.divide(
            self.dispersion * curvatures, share**2, out=np.zeros_like(share), where=known
        )
        return replace(found, site_values=self.b[columns] - steps, site_variances=variances)


def _join(parts: Sequence[Estimates]) -> Estimates:
    """Estimates of several groups of columns as one."""
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
