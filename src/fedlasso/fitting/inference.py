"""How sure single coefficients are: intervals, p-values, and columns with a false discovery rate.

Everything comes from sums over all sites: second derivatives and the gradient of the loss at the
Lasso, which tell how likely each column is to have an effect; and, for columns that are asked
about, one direction per column and two numbers per direction and site. Standard errors are those of
the model, with the variance that its residuals have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, ndtri, stdtrit

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation
from fedlasso.fitting.tuning import fix_penalty
from fedlasso.numerics import Array, Penalty, one_thread
from fedlasso.numerics.debiasing import find_directions, take_out
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.spike_slab import Posterior, find_likely, weigh_columns
from fedlasso.numerics.surrogates import count_lower, square
from fedlasso.procedures import Problem
from fedlasso.sites import CurvatureAt, PartAt, SiteSlopesAlong, SlopesAlong

# How closely directions follow one column alone.
STRENGTH = 0.4
# Runs of draws that tell how likely columns are: one alone may stay with some of the columns that
# stand for one another.
RUNS = 3
LEVEL = 0.95
TAIL = 0.995
# Steps to expected effects are halved at most so many times.
HALVINGS = 6
# Bytes of second derivatives that each site may send.
MOST_BYTES = 64 << 20
# Directions that one question looks along.
SIDE_BY_SIDE = 200
# Curvature along a direction, as a share of what a site's rows would have on average, without which
# its own estimate is left out.
LEAST = 0.1


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
    >>> from fedlasso.fitting.inference import Effects
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
    >>> from fedlasso.fitting.inference import Estimates
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
        return self.take(find_likely(self.effects.chances, rate))

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
    slopes : its mean gradient there
    loss : the loss there, over all rows
    active : how many columns follow the rows' noise there
    caution : how many times as much noise rows are taken to have as they have on average
    """

    federation: Federation
    problem: Problem
    b: Array
    H: Array
    slopes: Array
    loss: float
    active: float
    caution: float = 1.0

    @classmethod
    def at(cls, federation: Federation, penalty: Penalty, b: Array, caution: float = 1.0) -> Start:
        """Ask for the gradient and the second derivatives at a fit."""
        problem = fix_penalty(federation, penalty)
        H = _ask_curvature(federation, problem, b)
        part = federation.total(PartAt(b, np.zeros(0)))
        slopes = part.gradient / problem.m
        active = float(np.count_nonzero(b))
        return cls(federation, problem, b, H, slopes, part.loss, active, caution)

    def move(self, effects: Effects) -> Start:
        """Ask for the gradient at the expected effects; second derivatives are taken to be alike.

        Where the loss is far above what they let expect, a shorter step is taken.
        """
        step = self.expect(effects) - self.b
        for _ in range(HALVINGS):
            foreseen = self.problem.m * float(step @ (self.slopes + self.H @ step / 2))
            part = self.federation.total(PartAt(self.b + step, np.zeros(0)))
            if part.loss - self.loss <= max(2 * foreseen, foreseen / 2):
                return replace(
                    self,
                    b=self.b + step,
                    slopes=part.gradient / self.problem.m,
                    loss=part.loss,
                    active=float(effects.chances.sum()),
                )
            step = step / 2
        return self

    def renew(self) -> Start:
        """Ask for the second derivatives where this one has moved to."""
        return replace(self, H=_ask_curvature(self.federation, self.problem, self.b))

    def expect(self, effects: Effects) -> Array:
        """Return the coefficients that effects leave to be expected.

        Columns that pay nothing have those that are best beside the expected effects.
        """
        kept = np.flatnonzero(self.problem.penalty.free(self.problem.p))
        b = effects.expected
        b[kept] = 0.0
        score = self.H @ (self.b - b) - self.slopes
        b[kept] = np.linalg.lstsq(self.H[np.ix_(kept, kept)], score[kept], rcond=None)[0]
        return b

    @one_thread()
    def find_effects(self, seed: int) -> Effects:
        """Tell how likely columns that pay a penalty are to have an effect; the others have none.

        The loss is taken to be the parabola that it is nearly, in which columns that pay nothing
        move along.
        """
        p = self.problem.p
        free = self.problem.penalty.free(p)
        kept = np.flatnonzero(free)
        others, out, H = take_out(self.H, kept)
        if not others.size:
            return Effects(np.zeros(p), np.zeros(p), np.zeros(p))
        score = self.H @ self.b - self.slopes
        own = score[others] - out.T @ score[kept]
        noise = None if self.problem.loss == "quadratic" else self.dispersion
        if noise is None:
            moved = np.linalg.lstsq(self.H[np.ix_(kept, kept)], score[kept], rcond=None)[0]
            explained = self.b @ (score - self.slopes) - score[kept] @ moved
            variance = 2 * self.loss / self.problem.m + float(explained)
        else:
            variance = noise + float(self.b[others] @ H @ self.b[others])
        count = others.size
        # Noisier rows tell as much as fewer rows would.
        rows = max(round(self.problem.m / self.caution), 1)
        normal = Normal(H, own, variance, rows, np.zeros(count + 1), np.ones(count), count)
        runs = [
            weigh_columns(normal, count, self.b[others], (seed, run), noise=noise, clear=True)
            for run in range(RUNS)
        ]
        found = Posterior.average(runs)
        whole = np.zeros((3, p))
        whole[:, others] = found.chances, *found.sizes
        return Effects(*whole)

    def look(
        self,
        columns: NDArray[np.int64],
        tests: int = 0,
        *,
        strength: float = STRENGTH,
        other: Array | None = None,
        by_site: bool = False,
    ) -> Estimates:
        """Estimate some coefficients without the Lasso's bias.

        What is left of other columns' errors depends on the model that estimates start from. Where
        another model is given, estimates are halfway between those from either, and half of the
        difference adds to the errors.

        Parameters
        ----------
        columns : places of the columns, increasing
        tests : how many columns might have been looked at; those given, if none is said
        strength : how closely directions follow one column alone
        other : another model to start from
        by_site : ask for sites' own estimates too
        """
        tests = tests or columns.size
        parts = np.array_split(columns, max(-(-columns.size // SIDE_BY_SIDE), 1))
        found = [self._look(own, tests, strength, other, by_site) for own in parts]
        return found[0] if len(found) == 1 else _join(found)

    def attenuation(self, effects: Effects) -> float:
        """How many times smaller effects on yes or no look than they are, given what is not known.

        A probability that is averaged over what other columns may do changes less with any one of
        them. For a linear predictor with a normal unknown part of variance v it is by the square
        root of 1 + pi v / 8, nearly (MacKay 1992).
        """
        if self.problem.loss != "binomial":
            return 1.0
        return float(np.sqrt(1 + np.pi * effects.variance / 8))

    @property
    def dispersion(self) -> float:
        """How much responses vary, as a share of what the loss takes for granted.

        Of least squares it is the variance of the noise. Counts may vary more than their mean, and
        are never taken to vary less; yes or no and survival times vary as the model says.
        """
        if self.problem.loss == "quadratic":
            return self.caution * 2 * self.loss / self._left
        return max(2 * self.loss / self._left, 1.0) if self.problem.loss == "poisson" else 1.0

    @property
    def _left(self) -> float:
        """Rows beyond those whose noise the fit has followed, one for each of its columns."""
        if self.problem.m - self.active < 2:
            raise FedLassoError(
                f"{self.problem.m} rows and {self.active:.0f} active columns leave nothing to tell "
                "chance by; give more rows, or a larger penalty"
            )
        return self.problem.m - self.active

    def _look(
        self,
        columns: NDArray[np.int64],
        tests: int,
        strength: float,
        other: Array | None,
        by_site: bool,
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
        errors = wider * np.sqrt(self.dispersion * total.curvatures) / rows
        if other is not None:
            step = other - self.b
            half = (step[columns] - directions.T @ (self.H @ step)) / 2
            values = values + half
            errors = np.sqrt(errors**2 + half**2)
        found = Estimates(columns, values, errors, tests)
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


def _ask_curvature(federation: Federation, problem: Problem, b: Array) -> Array:
    """Mean second derivatives of the loss, p by p."""
    p = problem.p
    numbers = count_curvature(p)
    if 8 * numbers > MOST_BYTES:
        raise FedLassoError(
            f"{p} columns have {numbers} second derivatives, {8e-6 * numbers:.0f} MB per site, "
            f"and {MOST_BYTES >> 20} MiB is the most; drop columns that cannot matter, or use "
            "the goal 'selection'"
        )
    total = federation.total(CurvatureAt(b, np.arange(p, dtype=np.float64), 0))
    return np.asarray(square(total.block, p) / problem.m)


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
