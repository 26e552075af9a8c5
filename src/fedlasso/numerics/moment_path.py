"""The Lasso path from second moments alone, and least squares on every support that it takes."""

from dataclasses import dataclass

import numpy as np

from fedlasso.numerics.homotopy import (
    Columns,
    Integers,
    State,
    advance,
    rebuild,
    stand_at,
    times_inverse,
)
from fedlasso.numerics.machine import Array, compiled, dot, subtract_rows
from fedlasso.numerics.moments import Normal

# A path is good when its duality gap is at most this share of the response's variance.
GAP = 1e-9
# What is good enough where columns are so nearly dependent that no solver here reaches that.
ENOUGH = 1e-5
# Sweeps that a penalty may take where the homotopy alone does not reach that.
SWEEPS = 1000


@dataclass(frozen=True, eq=False)
class MomentPath:
    """The Lasso at decreasing penalties, and least squares on each of its supports.

    Where nearly dependent columns leave no digits, the last good fits stand for all that follow.

    Attributes
    ----------
    penalties : array (L,)
    lasso, refits : arrays (p, L)
    """

    penalties: Array
    lasso: Array
    refits: Array


def solve_path(normal: Normal, penalties: Array) -> MomentPath:
    """Solve the Lasso at decreasing penalties, and least squares on every support that it takes."""
    norms = np.ascontiguousarray(np.diagonal(normal.gram))
    D = Columns(np.empty((0, 0)), np.empty(0), np.ascontiguousarray(normal.gram), norms)
    S = stand_at(D, normal.largest_penalty, np.zeros(normal.p), normal.score, normal.rank)
    S.blocked[norms == 0.0] = True
    shape = (penalties.size, normal.p)
    lasso = np.zeros(shape)
    refits = np.zeros(shape)
    walk(D, S, normal.score, normal.variance, penalties, lasso, refits)
    return MomentPath(penalties, lasso.T, refits.T)


@compiled
def walk(
    D: Columns,
    S: State,
    score: Array,
    variance: float,
    penalties: Array,
    lasso: Array,
    refits: Array,
) -> None:
    """Fill in the Lasso and the refit at every penalty, one in each row."""
    b = np.zeros(score.size)
    wanted = GAP * variance
    for j in range(penalties.size):
        lam = penalties[j]
        if lam < S.lam[0]:
            advance(D, S, lam, 50 * S.active.size + 100)
            settle_moments(D, S, score)
        a = S.a[0]
        b[:] = 0.0
        for i in range(a):
            b[S.active[i]] = S.b[i]
        gap = exceeds(b, S.correlation, score, variance, lam)
        if not gap <= wanted:
            own = b.copy()
            swept = np.inf
            if wanted == GAP * variance:
                b[:] = lasso[max(j - 1, 0)]
                if not sweep(D.G, D.norms, score, variance, lam, b, S.correlation):
                    # Sweeps take long and will do no better later on: this was the last time.
                    wanted = ENOUGH * variance
                swept = exceeds(b, S.correlation, score, variance, lam)
            if not min(gap, swept) <= wanted:
                # Rounding has taken over: what follows is as good as it gets.
                lasso[j:] = lasso[max(j - 1, 0)]
                refits[j:] = refits[max(j - 1, 0)]
                return
            if gap <= swept:
                b[:] = own
                settle_moments(D, S, score)
            else:
                stand_anew(D, S, lam, b)
                if S.a[0] < np.count_nonzero(b):
                    # Columns that went with dependent ones leave their share to those.
                    settle_moments(D, S, score)
            a = S.a[0]
        lasso[j] = b
        v = np.empty(a)
        for i in range(a):
            v[i] = score[S.active[i]]
        refit = times_inverse(S, v)
        for i in range(a):
            v[i] -= dot_at(D.G[S.active[i]], S.active, refit, a)
        refit += times_inverse(S, v)
        for i in range(a):
            refits[j, S.active[i]] = refit[i]


@compiled
def dot_at(row: Array, places: Integers, values: Array, count: int) -> float:
    """Return the product of some entries of a row with values."""
    total = 0.0
    for i in range(count):
        total += row[places[i]] * values[i]
    return total


@compiled
def settle_moments(D: Columns, S: State, score: Array) -> None:
    """Solve G_AA b_A = (X'y/m)_A - lam s to full accuracy and refresh X'r/m."""
    a = S.a[0]
    miss = np.empty(a)
    for _ in range(2):
        for i in range(a):
            k = S.active[i]
            miss[i] = score[k] - dot_at(D.G[k], S.active, S.b, a) - S.lam[0] * S.signs[i]
        S.b[:a] += times_inverse(S, miss)
    S.correlation[:] = score
    subtract_rows(S.correlation, D.G, S.active, S.b, a)


@compiled
def exceeds(b: Array, correlation: Array, score: Array, variance: float, lam: float) -> float:
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
def sweep(
    G: Array, norms: Array, score: Array, variance: float, lam: float, b: Array, correlation: Array
) -> bool:
    """Improve b by coordinate descent, and X'r/m with it; return whether it is good at the end."""
    correlation[:] = score
    for k in range(b.size):
        correlation -= b[k] * G[k]
    for number in range(SWEEPS):
        for k in range(b.size):
            if norms[k] == 0.0:
                continue
            v = correlation[k] + norms[k] * b[k]
            size = max(abs(v) - lam, 0.0) / norms[k]
            change = (size if v > 0.0 else -size) - b[k]
            if change != 0.0:
                b[k] += change
                correlation -= change * G[k]
        if number % 10 == 9 and exceeds(b, correlation, score, variance, lam) <= GAP * variance:
            return True
    return False


@compiled
def stand_anew(D: Columns, S: State, lam: float, b: Array) -> None:
    """Put the path on the solution b at `lam`."""
    S.place[:] = -1
    S.blocked[:] = D.norms == 0.0
    a = 0
    for k in range(b.size):
        if b[k] != 0.0 and a < S.active.size:
            S.active[a] = k
            S.signs[a] = np.sign(b[k])
            S.b[a] = b[k]
            a += 1
    S.a[0] = a
    S.lam[0] = lam
    rebuild(D, S)
