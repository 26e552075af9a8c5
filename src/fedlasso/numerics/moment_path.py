"""The Lasso path from second moments alone, and least squares on each of its supports."""

from dataclasses import dataclass

import numpy as np

from fedlasso.numerics.descent import Lasso, descend
from fedlasso.numerics.homotopy import (
    ActiveColumns,
    HomotopyState,
    advance,
    homotopy_at,
    restart_at,
    times_inverse,
)
from fedlasso.numerics.machine import Array, compiled, dot, subtract_product, subtract_rows
from fedlasso.numerics.moments import Normal

# The duality gap to reach, as a fraction of the response's variance.
GAP = 1e-9
# The gap accepted if columns are so nearly dependent that no solver reaches that one.
ENOUGH = 1e-5
# Maximum number of sweeps at a penalty where the homotopy alone does not reach it.
SWEEPS = 1000


@dataclass(frozen=True, eq=False)
class MomentPath:
    """The Lasso at decreasing penalties, and least squares on each of its supports.

    Where nearly dependent columns leave no accurate digits, the last good fits are repeated.
    `lasso` and `refits` are (p, L), a column per penalty.
    """

    penalties: Array
    lasso: Array
    refits: Array


class Walk:
    """A Lasso path that is followed down to some penalties, and can be continued later."""

    def __init__(self, normal: Normal) -> None:
        norms = np.ascontiguousarray(np.diagonal(normal.gram))
        gram = np.ascontiguousarray(normal.gram)
        columns = ActiveColumns(np.empty((0, 0)), np.empty(0), gram, norms)
        lasso = Lasso.of(gram, norms, np.ascontiguousarray(normal.score), 0.0)
        zero = np.zeros(normal.p)
        state = homotopy_at(columns, normal.largest_penalty, zero, normal.score, normal.rank)
        self.normal = normal
        self._problem = (columns, state, lasso, normal.variance)
        # The last Lasso and its refit, and the duality gap to reach.
        self._progress = (np.zeros((2, normal.p)), np.array([GAP * normal.variance]))

    def follow(self, penalties: Array) -> MomentPath:
        """Continue to decreasing penalties, none larger than the last one."""
        lasso = np.zeros((penalties.size, self.normal.p))
        refits = np.zeros_like(lasso)
        walk(*self._problem, penalties, *self._progress, lasso, refits)
        return MomentPath(penalties, lasso.T, refits.T)


def solve_path(normal: Normal, penalties: Array) -> MomentPath:
    """Return the Lasso at decreasing penalties, and least squares on each of its supports."""
    return Walk(normal).follow(penalties)


@compiled
def walk(
    D: ActiveColumns,
    S: HomotopyState,
    L: Lasso,
    variance: float,
    penalties: Array,
    last: Array,
    wanted: Array,
    lasso: Array,
    refits: Array,
) -> None:
    """Fill in the Lasso and the refit at every penalty, one in each row.

    `last` has the previous Lasso and refit, `wanted` the duality gap to reach; both are updated.
    """
    score = L.score
    b = np.zeros(score.size)
    for j in range(penalties.size):
        if wanted[0] < 0.0:
            # No accurate digits are left: repeat the last fits.
            lasso[j:] = last[0]
            refits[j:] = last[1]
            return
        lam = penalties[j]
        if lam < S.lam[0]:
            advance(D, S, lam, 50 * S.active.size + 100)
            refine_moments(D, S, score)
        b[:] = 0.0
        for i in range(S.a[0]):
            b[S.active[i]] = S.b[i]
        gap = moment_gap(b, S.correlation, score, variance, lam)
        if not gap <= wanted[0]:
            own = b.copy()
            swept = np.inf
            if wanted[0] == GAP * variance:
                b[:] = last[0]
                if not sweep(L, variance, lam, b, S.correlation):
                    # Sweeps are slow and would fail at later penalties too: do not try again.
                    wanted[0] = ENOUGH * variance
                swept = moment_gap(b, S.correlation, score, variance, lam)
            if not min(gap, swept) <= wanted[0]:
                wanted[0] = -1.0
                lasso[j] = last[0]
                refits[j] = last[1]
                continue
            if gap <= swept:
                b[:] = own
                refine_moments(D, S, score)
            else:
                restart_at(D, S, lam, b)
                if S.a[0] < np.count_nonzero(b):
                    # Dependent columns were dropped: solve again for the others.
                    refine_moments(D, S, score)
        lasso[j] = b
        if ((b != 0.0) == (last[0] != 0.0)).all():
            refits[j] = last[1]
        else:
            refit(D, S, score, refits[j])
        last[0] = lasso[j]
        last[1] = refits[j]


@compiled
def refit(D: ActiveColumns, S: HomotopyState, score: Array, out: Array) -> None:
    """Fill in least squares on the active columns, with one step of iterative refinement."""
    a = S.a[0]
    b = times_inverse(S, score[S.active[:a]])
    rest = score.copy()
    subtract_rows(rest, D.G, S.active, b, a)
    b += times_inverse(S, rest[S.active[:a]])
    for i in range(a):
        out[S.active[i]] = b[i]


@compiled
def refine_moments(D: ActiveColumns, S: HomotopyState, score: Array) -> None:
    """Solve G_AA b_A = (X'y/m)_A - lam s to full accuracy and recompute X'r/m."""
    a = S.a[0]
    for attempt in range(3):
        S.correlation[:] = score
        subtract_rows(S.correlation, D.G, S.active, S.b, a)
        if attempt < 2:
            miss = S.correlation[S.active[:a]] - S.lam[0] * S.signs[:a]
            S.b[:a] += times_inverse(S, miss)


@compiled
def moment_gap(b: Array, correlation: Array, score: Array, variance: float, lam: float) -> float:
    """Return the duality gap of b, where X'r/m is `correlation`."""
    explained = dot(b, score)
    against = variance - explained
    residual = max(variance - explained - dot(b, correlation), 0.0)
    largest = np.abs(correlation).max()
    s = against / residual if residual > 0.0 else 0.0
    if s * largest > lam:
        s = lam / largest
    dual = max(s * (2 * against - s * residual) / 2, 0.0)
    return float(residual / 2 + lam * np.abs(b).sum() - dual)


@compiled
def sweep(L: Lasso, variance: float, lam: float, b: Array, correlation: Array) -> bool:
    """Improve b and X'r/m by coordinate descent; return whether the gap reached `GAP`."""
    L.thresholds[:] = lam
    for _ in range(SWEEPS // 10):
        for _ in range(10):
            descend(L, b, 0.0, 1)
        correlation[:] = L.score
        subtract_product(correlation, L.M, b)
        if moment_gap(b, correlation, L.score, variance, lam) <= GAP * variance:
            return True
    return False
