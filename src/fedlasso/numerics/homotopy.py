"""The exact Lasso path in the penalty: LARS with the lasso modification (Efron et al., 2004).

Between two knots the active set A and its signs s stay, and with d = (X_A'X_A/m)^-1 s
    b_A(lam - g) = b_A(lam) + g d,    X'r(lam - g)/m = X'r(lam)/m - g u,    u = X'X_A d/m.
A knot is the first g at which a coordinate enters (|X'r/m| meets the penalty) or leaves (b = 0).
The inverse is kept by bordering and deflation, at O(|A|^2) a knot.

`walk` is the largest part of what a first fit compiles, so there is one for paths from X and from
moments, and it returns to Python at knots.
"""

from typing import Any, NamedTuple

import numpy as np

from fedlasso.numerics.knots import (
    Flags,
    Integers,
    find_direction,
    next_entry,
    next_exit,
    solve_active,
    times_inverse,
)
from fedlasso.numerics.machine import (
    Array,
    compiled,
    frozen,
    inner_products,
    subtract_rows,
    sum_products,
)

# After so many knots in a row at one penalty, to this fraction, dependent columns would cycle.
MAX_STALLED = 50
STALLED = 1e-12
# A column is dependent if its squared distance to the active ones is below this fraction.
DEPENDENT = 1e-12
# When a column with this variance inflation leaves, the inverse has lost its digits.
INFLATED = 1e8
NONE = np.empty(0)
NO_ROWS = np.empty((0, 0))
# How `walk` ends: at the penalty, where a column enters or leaves, or the inverse has decayed.
ARRIVED, ENTERS, LEAVES, DECAYS = range(4)


class ActiveColumns(NamedTuple):
    """The data of the kernels: the transpose of X, X'X/m (0 x 0 if not used), its diagonal."""

    Xt: Array
    G: Array
    norms: Array

    @classmethod
    def of(cls, Xt: Array, G: Array, norms: Array) -> "ActiveColumns":
        """Return read-only views, so that one compilation serves them all."""
        return cls(frozen(Xt), frozen(G), frozen(norms))


class HomotopyState(NamedTuple):
    """A point on the path; the first `a` entries of the active arrays are in use."""

    lam: Array  # (1,) current penalty
    # Active columns a; knots since the last target, those at one penalty, column just dropped or
    # -1; place of the next target; column that enters and its sign, or place of one that leaves.
    counts: Integers
    active: Integers
    signs: Array
    b: Array
    inverse: Array
    place: Integers  # place of each column in `active`, -1 when inactive
    blocked: Flags  # dependent on the active columns
    correlation: Array  # X'r/m
    # Work space: d and two others of that size, u, and a row of X or of X'X.
    d: Array
    v: Array
    w: Array
    u: Array
    sums: Array

    @property
    def a(self) -> int:
        return int(self.counts[0])

    @property
    def coefficients(self) -> Array:
        """All coefficients, in a new array."""
        b = np.zeros(self.place.size)
        b[self.active[: self.a]] = self.b[: self.a]
        return b


def homotopy_at(
    D: ActiveColumns, lam: float, b: Array, correlation: Array, rank: int
) -> HomotopyState:
    """Return the path's state at the solution b for `lam`, where X'r/m is `correlation`.

    At most `rank` columns are active at once.
    """
    n = min(rank, b.size)
    S = HomotopyState(
        lam=np.zeros(1),
        counts=np.zeros(7, np.int64),
        active=np.zeros(n, np.int64),
        signs=np.zeros(n),
        b=np.zeros(n),
        inverse=np.zeros((n, n)),
        place=np.zeros(b.size, np.int64),
        blocked=np.zeros(b.size, np.bool_),
        correlation=correlation.copy(),
        d=np.zeros(n),
        v=np.zeros(n),
        w=np.zeros(n),
        u=np.zeros(b.size),
        sums=np.zeros(b.size if D.G.size else D.Xt.shape[1]),
    )
    restart_at(D, S, lam, b)
    return S


def restart_at(D: ActiveColumns, S: HomotopyState, lam: float, b: Array) -> None:
    """Restart the path at the solution b for `lam`."""
    S.place[:] = -1
    S.blocked[:] = D.norms == 0.0
    active = np.flatnonzero(b)[: S.active.size]
    S.active[: active.size] = active
    S.signs[: active.size] = np.sign(b[active])
    S.b[: active.size] = b[active]
    S.counts[0] = active.size
    S.lam[0] = lam
    rebuild(D, S)


def rebuild(D: ActiveColumns, S: HomotopyState) -> None:
    """Recompute the inverse by entering the active columns again, without dependent ones."""
    active, signs, b = (x[: S.a].tolist() for x in (S.active, S.signs, S.b))
    S.counts[0] = 0
    S.place[active] = -1
    for k, sign, value in zip(active, signs, b, strict=True):
        if enter(D, S, k, sign):
            S.b[S.a - 1] = value


def enter(D: ActiveColumns, S: HomotopyState, k: int, sign: float) -> bool:
    """Border the inverse with column k; return False, and block k, if it is dependent."""
    a = S.a
    if a < S.active.size:
        active = S.active[:a]
        S.v[:a] = (
            D.G[k, active] if D.G.size else inner_products(D.Xt[active], D.Xt[k]) / D.Xt.shape[1]
        )
        times_inverse(S.inverse, S.v, S.w, a)
        w = S.w[:a]
        distance = D.norms[k] - sum_products(S.v[:a], w)
        if distance > DEPENDENT * D.norms[k]:
            scaled = w / distance
            S.inverse[:a, :a] += np.multiply.outer(scaled, w)
            S.inverse[:a, a] = S.inverse[a, :a] = -scaled
            S.inverse[a, a] = 1.0 / distance
            S.active[a] = k
            S.signs[a] = sign
            S.b[a] = 0.0
            S.place[k] = a
            S.counts[0] = a + 1
            return True
    S.blocked[k] = True
    return False


def leave(D: ActiveColumns, S: HomotopyState, i: int) -> bool:
    """Deflate the inverse by the i-th active column; return whether it has lost its digits."""
    k = S.active[i]
    last = S.a - 1
    # The last active column takes place i, so that the used block stays contiguous.
    used = S.inverse[: last + 1, : last + 1]
    used[[i, last]] = used[[last, i]]
    used[:, [i, last]] = used[:, [last, i]]
    for values in (S.active, S.signs, S.b):
        values[i] = values[last]
    S.place[S.active[i]] = i
    S.place[k] = -1
    S.counts[0] = last
    pivot = used[last, last]
    row = used[last, :last]
    used[:last, :last] -= np.multiply.outer(row / pivot, row)
    S.blocked[:] = False
    return bool(pivot * D.norms[k] > INFLATED)


def advance(
    D: ActiveColumns,
    S: HomotopyState,
    targets: Array,
    score: Array = NONE,
    lasso: Array = NO_ROWS,
    refits: Array = NO_ROWS,
) -> int:
    """Follow the path down to decreasing penalties; return the number of knots before the last one.

    With X'y/m as `score`, the Lasso and least squares on its support are filled in, a row for each
    penalty. Dependent columns may cycle at one penalty; the path then ends there.
    """
    S.counts[1:5] = 0, 0, -1, 0
    turned, rebuilt = True, False
    arrays: tuple[Any, ...] = (*D, *S, targets, score, lasso, refits)
    while (end := walk(*arrays, turned, rebuilt)) != ARRIVED:  # type: ignore[call-arg]
        turned = True
        rebuilt = end == DECAYS
        column, sign = S.counts[5:].tolist()
        if end == ENTERS:
            turned = enter(D, S, column, sign)
        elif end == DECAYS or leave(D, S, column):
            rebuild(D, S)
    return int(S.counts[1])


@compiled
def walk(
    Xt: Array,
    G: Array,
    norms: Array,
    lam: Array,
    counts: Integers,
    active: Integers,
    signs: Array,
    b: Array,
    inverse: Array,
    place: Integers,
    blocked: Flags,
    correlation: Array,
    d: Array,
    v: Array,
    w: Array,
    u: Array,
    sums: Array,
    targets: Array,
    score: Array,
    lasso: Array,
    refits: Array,
    turned: bool,
    rebuilt: bool,
) -> int:
    """Follow the path as `advance` does, or to the next knot.

    `turned`: columns have entered or left; `rebuilt`: the inverse was, as it gave no direction.
    """
    limit = 50 * active.size + 100
    while True:
        a = counts[0]
        if turned:
            holds = find_direction(Xt, G, inverse, active, signs, a, d, v, w, u, sums)
            if not (holds or rebuilt):
                return DECAYS
        turned = rebuilt = False
        at = counts[4]
        left = lam[0] - targets[at]
        moving = left > 0.0 and counts[1] < limit and counts[2] < MAX_STALLED
        if moving:
            full = a == active.size
            entry, k, sign = next_entry(lam[0], full, counts[3], place, blocked, correlation, u)
            exit_, i = next_exit(signs, b, d, a)
            step = entry if entry < exit_ else exit_
            if left < step:
                step = left
            for j in range(a):
                b[j] += step * d[j]
            for l in range(u.size):
                correlation[l] -= step * u[l]
            moving = step != left
            stalled = step <= STALLED * lam[0]
            lam[0] = lam[0] - step if moving else targets[at]
        if moving:
            counts[1] += 1
            counts[2] = counts[2] + 1 if stalled else 0
            counts[3] = -1
            if step == exit_:
                counts[3] = active[i]
                counts[5] = i
                return LEAVES
            counts[5] = k
            counts[6] = sign
            return ENTERS
        if score.size:
            solve_active(G, score, inverse, active, signs, a, lam[0], b, v, w, correlation)
            if counts[1] > 0 or at == 0:
                for j in range(a):
                    d[j] = 0.0
                solve_active(G, score, inverse, active, signs, a, 0.0, d, v, w, sums)
                turned = True
            for j in range(a):
                lasso[at, active[j]] = b[j]
                refits[at, active[j]] = d[j] if turned else refits[at - 1, active[j]]
        counts[4] += 1
        if counts[4] == targets.size:
            return ARRIVED
        counts[1] = counts[2] = 0
        counts[3] = -1


def refine(D: ActiveColumns, S: HomotopyState, y: Array) -> None:
    """Solve G_AA b_A = X_A'y/m - lam s to full accuracy from X, and recompute X'r/m."""
    a = S.a
    active = S.active[:a]
    rows = frozen(D.Xt[active])
    for _ in range(2):
        r = y.copy()
        subtract_rows(r, D.Xt, active, S.b, a)
        S.v[:a] = inner_products(rows, r) / r.size - S.lam[0] * S.signs[:a]
        times_inverse(S.inverse, S.v, S.w, a)
        S.b[:a] += S.w[:a]
    r = y.copy()
    subtract_rows(r, D.Xt, active, S.b, a)
    S.correlation[:] = inner_products(D.Xt, r) / r.size
