"""Models evaluated on one set of rows, and the next one to try at a penalty.

The sum of what the sites sent about a model is a point: loss, gradient, dual value, and at some
points second derivatives. A trial minimizes a quadratic model of the loss at the best point so far.
Its curvature is exact where the sites sent it, and else that of a near point, also of other rows,
corrected by the gradients of the nearest points (BFGS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog

from fedlasso.federation import Ledger
from fedlasso.fitting.evidence import PathPoint
from fedlasso.numerics import (
    Array,
    Certificate,
    GroupL1,
    Penalty,
    certify_loss,
    feasible_scale,
)
from fedlasso.numerics.certificate import settle_slopes
from fedlasso.numerics.quadratic_groups import solve_group_step
from fedlasso.numerics.quadratic_lasso import correct_curvature, keep_convex, solve_step
from fedlasso.numerics.response import Places
from fedlasso.procedures import Problem
from fedlasso.sites import SCALES

# Nearest points whose gradients correct a curvature.
SECANTS = 6
# A column of unknown curvature is given this many times the mean one.
CAREFUL = 1.5
# A gap below this fraction of the loss is rounding, and so is a difference of two objectives.
ROUNDING = 1e-9
SAME = 1e-7
# After a trial that failed, every column has at least this fraction of the mean curvature: a rare
# column with one response has next to none, so its step would be the longest by far.
LEAST_CURVED = 0.1
# The mean curvature along a step, as a multiple of that of its quadratic model, is between these.
LEAST_RATIO = 0.5
MOST_RATIO = 1.0
# Its reciprocal changes by at most so much per unit of a step's length.
STEEPEST = 0.5
# Where less than this fraction of the first curvature is left, steps are not longer: sites refuse
# models at which a few rows have nearly all of it.
LEFT = 0.25
# Nearest points whose slopes are mixed for a bound.
MIXED = 12
# A trial's coefficients may be so many times as large as those of the point it starts from, plus
# a constant on the scale of standardised columns.
TIMES = 3.0
PLUS = 6.0


@dataclass(eq=False)
class Point:
    """A model and what the sites sent about it: means over rows.

    `error` is the mean error on held-out rows, `se` its standard error if a single split judges,
    and `effect` the mean of the sites' own intercepts. `columns` are those of the second
    derivatives `H`, if any.
    """

    b: Array
    loss: float
    slopes: Array
    duals: Array
    error: float = np.nan
    se: float = np.nan
    effect: float = 0.0
    columns: Places | None = None
    H: Array | None = None

    def objective(self, penalty: Penalty) -> float:
        return self.loss + penalty.value(self.b)

    def is_better(self, other: Point, penalty: Penalty) -> bool:
        """Return whether the objective is lower than that of another point.

        Where sums of losses differ by little more than rounding, the certificate decides.
        """
        fall = other.objective(penalty) - self.objective(penalty)
        if abs(fall) > SAME * abs(other.loss):
            return fall > 0
        return self.certify(penalty).gap < other.certify(penalty).gap

    def certify(self, penalty: Penalty) -> Certificate:
        """Return how far the model is from the optimum, without another question.

        The dual value of slopes times a factor is concave in the factor, zero or more at zero, and
        follows from loss and gradient at one. So chords between known values are lower bounds.
        """
        scale = feasible_scale(self.b, self.slopes, penalty)
        at_one = self.loss - float(self.b @ self.slopes)
        dual = float(np.interp(scale, (0.0, *SCALES, 1.0), (0.0, *self.duals, at_one)))
        return certify_loss(self.loss, dual, self.b, self.slopes, penalty)

    def as_fit(self, penalty: Penalty, m: int, intercept: bool) -> PathPoint:
        """Return the model as a fit at a penalty, to m rows."""
        certificate = self.certify(penalty)
        return PathPoint(penalty, self.b, 2 * m * self.loss, certificate, intercept=intercept)

    def gap(self, penalty: Penalty) -> float:
        """Return the same on the assumption that unpenalised coefficients are about right.

        A certificate allows for any distance of these; on the way to an optimum that is too strict.
        """
        free = penalty.free(self.b.size)
        left = float(np.abs(self.slopes[free]) @ (1 + np.abs(self.b[free])))
        _, slack = settle_slopes(self.b, self.slopes, penalty)
        return self.certify(penalty).gap - slack + min(left, slack)


@dataclass(frozen=True, eq=False)
class Proposal:
    """A model to ask about at a penalty, and the point it starts from.

    `H` has the curvature that it relies on, in some columns.
    """

    points: PointSet
    penalty: Penalty
    b: Array
    base: Point
    columns: Places
    H: Array


@dataclass(eq=False)
class PointSet:
    """The points of one set of rows.

    Attributes
    ----------
    ledger, problem : the view of the rows, and the pooled problem on them
    known : the points so far
    misses : how often trials from a point at a penalty failed to lower the objective
    trends : by penalty, how fast the curvature fell along the last step there
    usual_below : penalties below which steps are not longer than the quadratic model's: longer ones
        may lead to models so steep that sites refuse them
    """

    ledger: Ledger
    problem: Problem
    known: list[Point] = field(default_factory=list)
    misses: dict[tuple[float, int], int] = field(default_factory=dict)
    trends: dict[float, float] = field(default_factory=dict)
    usual_below: float = 0.0
    _best: dict[float, tuple[int, Point | None]] = field(default_factory=dict)
    _gaps: dict[float, tuple[int, float]] = field(default_factory=dict)
    _trials: dict[float, tuple[int, int, Proposal | None]] = field(default_factory=dict)

    def best(self, penalty: Penalty) -> Point:
        """Return the point with the lowest objective."""
        seen, best = self._best.get(penalty.strength, (0, None))
        for point in self.known[seen:]:
            if best is None or point.is_better(best, penalty):
                best = point
        assert best is not None
        self._best[penalty.strength] = (len(self.known), best)
        return best

    def differ(self, form: Penalty, strength: float, other: float) -> bool:
        """Return whether two strengths have different best points."""
        return self.best(form.at(strength)) is not self.best(form.at(other))

    def gap(self, penalty: Penalty, enough: float = 0.0) -> float:
        """Return a bound on the duality gap of the best point; rounding errors count as none.

        A bound of `enough` is not improved. Later points only lower the gap, so it stays one.
        """
        seen, gap = self._gaps.get(penalty.strength, (0, np.inf))
        if seen == len(self.known) or gap <= enough:
            return gap
        best = self.best(penalty)
        gap = min(gap, best.gap(penalty))
        if gap > enough:
            gap = min(gap, best.objective(penalty) - self._mix(best, penalty))
            seen = len(self.known)
        gap = 0.0 if gap <= ROUNDING * abs(best.loss) else gap
        self._gaps[penalty.strength] = (seen, gap)
        return gap

    def _mix(self, best: Point, penalty: Penalty) -> float:
        """Return a lower bound on the objective from the slopes of several points.

        The dual value is concave in the slopes, so that of a mixture is at least the mixture of
        values: the best mixture within the penalty's thresholds is a linear program.
        """
        smooth = penalty.smooth_part(best.b.size) is not None
        if smooth or penalty.bounds is not None or not penalty.separable:
            return -np.inf
        near = sorted(self.known, key=lambda point: _distance(point, best))[:MIXED]
        values = np.array([point.loss - float(point.b @ point.slopes) for point in near])
        slopes = np.column_stack([point.slopes for point in near])
        thresholds = penalty.thresholds(best.b.size)
        free = penalty.free(best.b.size)
        # Slopes of unpenalised columns should cancel; what is left costs as in `Point.gap`.
        costs = np.repeat(1 + np.abs(best.b[free]), 2)
        on = np.isfinite(thresholds) & ~free
        rows = slopes[on] / thresholds[on, None]
        spare = np.zeros((2 * len(rows), costs.size))
        total = np.concatenate([np.ones(len(near)), np.zeros(costs.size)])
        found = linprog(
            np.concatenate([-values, costs]),
            np.vstack([np.hstack([np.vstack([rows, -rows]), spare]), total]),
            np.ones(2 * len(rows) + 1),
            np.hstack([slopes[free], np.kron(np.eye(free.sum()), [1.0, -1.0])])
            if free.any()
            else None,
            np.zeros(free.sum()) if free.any() else None,
        )
        if found.x is None:
            return -np.inf
        share = found.x[: len(near)]
        share = share / max(share.sum(), 1.0)
        mixed = slopes @ share
        scale = min(
            1.0, 1.0 / max(float(np.abs(mixed[on] / thresholds[on]).max(initial=0.0)), 1e-300)
        )
        left = np.abs(mixed[free]) @ (1 + np.abs(best.b[free]))
        return float(scale * (share @ values) - scale * left)

    def propose(self, penalty: Penalty, others: Sequence[Point] = ()) -> Proposal:
        """Return the model to try next; `others` are points of other rows with curvature."""
        known, elsewhere, trial = self._trials.get(penalty.strength, (0, 0, None))
        if trial is None or (known, elsewhere) != (len(self.known), len(others)):
            trial = self._propose(penalty, others)
            self._trials[penalty.strength] = (len(self.known), len(others), trial)
        return trial

    def _propose(self, penalty: Penalty, others: Sequence[Point]) -> Proposal:
        p = self.problem.p
        base = self.best(penalty)
        columns, H = self._curvature(base, others)
        wanted = np.flatnonzero((base.b != 0) | (penalty.steepness(base.slopes) > 1))
        on = penalty.whole_groups(np.union1d(columns, wanted))
        loss = H = _spread(columns, H, on)
        if self._missed(penalty, base):
            diagonal = np.diagonal(H)
            H = H + np.diag(np.maximum(LEAST_CURVED * diagonal.mean() - diagonal, 0.0))
        slopes = base.slopes[on]
        ridges = penalty.smooth_part(p)
        if ridges is not None:
            slopes = slopes + ridges[on] * base.b[on]
            H = H + np.diag(ridges[on])
        b = _minimize(penalty, base.b, on, slopes, H)
        ratio = 1.0
        if not self._missed(penalty, base) and self._may_lengthen(penalty, loss, others):
            ratio = self._expect_ratio(penalty, b - base.b)
        if ratio != 1.0:
            b = _minimize(penalty, base.b, on, slopes, H + (ratio - 1.0) * loss)
        step = (b - base.b) * self._shorten(penalty, base, b)
        return Proposal(self, penalty, base.b + step, base, on, loss)

    def _may_lengthen(self, penalty: Penalty, H: Array, others: Sequence[Point]) -> bool:
        """Return whether a step may be longer than that of a model with the curvature H."""
        blocks = (point.H for point in (*others, *self.known) if point.H is not None)
        first = next((block for block in blocks if block.size), None)
        if first is None or not H.size:
            return False
        enough = np.diagonal(H).mean() >= LEFT * np.diagonal(first).mean()
        return bool(enough) and penalty.strength >= self.usual_below

    def _expect_ratio(self, penalty: Penalty, step: Array) -> float:
        """Return the mean curvature along a step, as a multiple of the model's.

        It is expected to change with the length of the step as it did at the nearest penalty.
        """
        if not self.trends:
            return 1.0
        nearest = min(self.trends, key=lambda other: abs(np.log(other / penalty.strength)))
        ratio = 1.0 / max(1.0 + self.trends[nearest] * float(np.abs(step).sum()), 1.0 / MOST_RATIO)
        return max(ratio, LEAST_RATIO)

    def _shorten(self, penalty: Penalty, base: Point, b: Array) -> float:
        """Return the fraction of a step that is taken."""
        most = TIMES * float(np.abs(base.b).sum()) + PLUS
        length = float(np.abs(b - base.b).sum())
        halved = self._missed(penalty, base)
        return min(1.0, most / length if length > 0 else 1.0) / 2.0**halved

    def _missed(self, penalty: Penalty, base: Point) -> int:
        """Return how often trials from a point at a penalty failed to lower the objective."""
        return self.misses.get((penalty.strength, id(base)), 0)

    def add(self, trial: Proposal, point: Point) -> None:
        """Keep a point, and whether the trial has failed to lower the objective."""
        if not point.is_better(trial.base, trial.penalty):
            key = (trial.penalty.strength, id(trial.base))
            self.misses[key] = self.misses.get(key, 0) + 1
        if np.isfinite(point.loss) and np.isfinite(point.slopes).all():
            self.known.append(point)
            self._follow(trial, point)

    def _follow(self, trial: Proposal, point: Point) -> None:
        """Keep how the curvature along a step differed from the model's, by unit of length."""
        moved = (trial.b - trial.base.b)[trial.columns]
        length = float(np.abs(moved).sum())
        expected = float(moved @ trial.H @ moved)
        rise = float(moved @ (point.slopes - trial.base.slopes)[trial.columns])
        if expected > 0 and length > 0 and trial.penalty.strength > 0:
            ratio = min(max(rise / expected, LEAST_RATIO), MOST_RATIO)
            trend = (1.0 / ratio - 1.0) / length
            self.trends[trial.penalty.strength] = min(max(trend, -STEEPEST), STEEPEST)

    def _curvature(self, base: Point, others: Sequence[Point]) -> tuple[Places, Array]:
        """Return columns and their approximate second derivatives at a point."""
        if base.H is not None and base.columns is not None:
            return base.columns, base.H
        curved = [point for point in (*self.known, *others) if point.H is not None]
        nearest = min(curved, key=lambda point: _distance(point, base))
        assert nearest.H is not None
        assert nearest.columns is not None
        columns, H = nearest.columns, nearest.H
        near = sorted(self.known, key=lambda point: _distance(point, base))
        for point in near[SECANTS:0:-1]:
            moved = point.b - base.b
            if np.count_nonzero(moved) == np.count_nonzero(moved[columns]):
                H = correct_curvature(H, moved[columns], (point.slopes - base.slopes)[columns])
        return columns, keep_convex(H)


def _minimize(penalty: Penalty, start: Array, on: Places, slopes: Array, H: Array) -> Array:
    """Return the minimizer of a quadratic model in the columns `on`."""
    b = start.copy()
    if isinstance(penalty, GroupL1):
        b[on] = solve_group_step(H, slopes, penalty.part(on), start[on])
    else:
        bounds = None if penalty.bounds is None else penalty.bounds.part(on)
        b[on], _ = solve_step(H, slopes, penalty.thresholds(start.size)[on], start[on], bounds)
    return b


def _distance(point: Point, other: Point) -> float:
    return float(np.abs(point.b - other.b).sum())


def _spread(columns: Places, H: Array, on: Places) -> Array:
    """Return second derivatives in the columns `on`, with a guess where they are unknown."""
    known = np.isin(on, columns)
    at = np.searchsorted(columns, on[known])
    diagonal = np.diagonal(H)
    guess = CAREFUL * float(diagonal.mean()) if diagonal.size else 1.0
    wide = np.diag(np.where(known, 0.0, guess))
    wide[np.ix_(known, known)] = H[np.ix_(at, at)]
    return wide
