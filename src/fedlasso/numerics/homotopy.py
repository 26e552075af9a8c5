"""The exact Lasso path in the penalty: LARS with the lasso modification (Efron et al., 2004).

Between two knots the active set A and its signs s stay, and with d = (X_A'X_A/m)^-1 s
    b_A(lam - g) = b_A(lam) + g d,    X'r(lam - g)/m = X'r(lam)/m - g u,    u = X'X_A d/m.
A knot is the first g at which a coordinate enters (|X'r/m| meets the penalty) or leaves (b = 0).
The inverse is kept by bordering and deflation, at O(|A|^2) a knot.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.machine import Array, compiled, dot, inner_products, subtract_rows

Integers = NDArray[np.int64]

# A column is dependent if its squared distance to the active ones is below this fraction.
DEPENDENT = 1e-12
# When a column with this variance inflation leaves, the inverse has lost its digits.
INFLATED = 1e8
# The error of G_AA d = s beyond which the inverse is recomputed.
DECAYED = 1e-9
# After so many knots in a row at one penalty, to this fraction, dependent columns would cycle.
MAX_STALLED = 50
STALLED = 1e-12


class ActiveColumns(NamedTuple):
    """The data of the kernels: the transpose of X, y, and X'X/m (0 x 0 if it is not used)."""

    Xt: Array
    y: Array
    G: Array
    norms: Array


class HomotopyState(NamedTuple):
    """A point on the path; the first `a` entries of the active arrays are in use."""

    lam: Array  # (1,) current penalty
    a: Integers  # (1,) active count
    active: Integers
    signs: Array
    b: Array
    inverse: Array
    place: Integers  # place of each column in `active`, -1 when inactive
    blocked: NDArray[np.bool_]  # dependent on the active columns
    correlation: Array  # X'r/m


def homotopy_at(
    D: ActiveColumns, lam: float, b: Array, correlation: Array, rank: int
) -> HomotopyState:
    """Return the path's state at the solution b for `lam`, where X'r/m is `correlation`.

    At most `rank` columns are active at once.
    """
    n = min(rank, b.size)
    S = HomotopyState(
        lam=np.zeros(1),
        a=np.zeros(1, np.int64),
        active=np.zeros(n, np.int64),
        signs=np.zeros(n),
        b=np.zeros(n),
        inverse=np.zeros((n, n)),
        place=np.zeros(b.size, np.int64),
        blocked=np.zeros(b.size, np.bool_),
        correlation=correlation.copy(),
    )
    restart_at(D, S, lam, b)
    return S


@compiled
def restart_at(D: ActiveColumns, S: HomotopyState, lam: float, b: Array) -> None:
    """Restart the path at the solution b for `lam`."""
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


@compiled
def times_inverse(S: HomotopyState, v: Array) -> Array:
    """Return G_AA^-1 v."""
    a = S.a[0]
    out = np.empty(a)
    for i in range(a):
        out[i] = dot(S.inverse[i, :a], v)
    return out


@compiled
def gram_times(D: ActiveColumns, S: HomotopyState, d: Array) -> Array:
    """Return X'X_A d/m."""
    M = D.G if D.G.size else D.Xt
    out = np.zeros(M.shape[1])
    subtract_rows(out, M, S.active, -d, S.a[0])
    return out if D.G.size else inner_products(D.Xt, out) / out.size


@compiled
def enter(D: ActiveColumns, S: HomotopyState, k: int, sign: float) -> bool:
    """Border the inverse with column k; return False when k depends on the active columns."""
    a = S.a[0]
    if a == S.active.size:
        return False
    g = np.empty(a)
    for i in range(a):
        g[i] = D.G[k, S.active[i]] if D.G.size else dot(D.Xt[k], D.Xt[S.active[i]]) / D.y.size
    w = times_inverse(S, g)
    distance = D.norms[k] - dot(g, w)
    if not distance > DEPENDENT * D.norms[k]:
        return False
    for i in range(a):
        scaled = w[i] / distance
        row = S.inverse[i]
        for j in range(a):
            row[j] += scaled * w[j]
        row[a] = -scaled
        S.inverse[a, i] = -scaled
    S.inverse[a, a] = 1.0 / distance
    S.active[a] = k
    S.signs[a] = sign
    S.b[a] = 0.0
    S.place[k] = a
    S.a[0] = a + 1
    return True


@compiled
def leave(D: ActiveColumns, S: HomotopyState, i: int) -> None:
    """Deflate the inverse by the i-th active column."""
    k = S.active[i]
    last = S.a[0] - 1
    # the last active column takes place i, so that the used block stays contiguous
    for j in range(last + 1):
        S.inverse[i, j], S.inverse[last, j] = S.inverse[last, j], S.inverse[i, j]
    for j in range(last + 1):
        S.inverse[j, i], S.inverse[j, last] = S.inverse[j, last], S.inverse[j, i]
    S.active[i], S.signs[i], S.b[i] = S.active[last], S.signs[last], S.b[last]
    S.place[S.active[i]] = i
    S.place[k] = -1
    S.a[0] = last
    pivot = S.inverse[last, last]
    w = S.inverse[last, :last]
    for l in range(last):
        scaled = w[l] / pivot
        row = S.inverse[l]
        for j in range(last):
            row[j] -= scaled * w[j]
    S.blocked[:] = False
    if pivot * D.norms[k] > INFLATED:
        rebuild(D, S)


@compiled
def rebuild(D: ActiveColumns, S: HomotopyState) -> None:
    """Recompute the inverse by entering the active columns again, without dependent ones."""
    a = S.a[0]
    active = S.active[:a].copy()
    signs = S.signs[:a].copy()
    b = S.b[:a].copy()
    S.a[0] = 0
    for i in range(a):
        S.place[active[i]] = -1
    for i in range(a):
        if enter(D, S, active[i], signs[i]):
            S.b[S.a[0] - 1] = b[i]
        else:
            S.blocked[active[i]] = True


@compiled
def direction(D: ActiveColumns, S: HomotopyState) -> tuple[Array, Array]:
    """Return d and u; where u_A = s fails, improve d or recompute the inverse."""
    d = times_inverse(S, S.signs[: S.a[0]])
    u = gram_times(D, S, d)
    for attempt in range(3):
        a = S.a[0]
        miss = S.signs[:a] - u[S.active[:a]]
        if a == 0 or np.abs(miss).max() <= DECAYED:
            break
        if attempt == 1:
            rebuild(D, S)
            d = times_inverse(S, S.signs[: S.a[0]])
        else:
            d = d + times_inverse(S, miss)
        u = gram_times(D, S, d)
    return d, u


@compiled
def next_entry(S: HomotopyState, u: Array, dropped: int) -> tuple[float, int, float]:
    """Return the step to the first entry, the column that enters and its sign."""
    lam = S.lam[0]
    step = np.inf
    column = -1
    sign = 0.0
    if S.a[0] == S.active.size:
        return step, column, sign
    for k in range(u.size):
        if S.place[k] >= 0 or S.blocked[k]:
            continue
        for side in (1.0, -1.0):
            closing = 1.0 - side * u[k]
            slack = lam - side * S.correlation[k]
            # a column that has just left still equals the penalty: it must move away first
            if k == dropped and slack <= 1e-9 * lam:
                continue
            if closing > 0.0 and slack < step * closing:
                step = max(slack, 0.0) / closing
                column = k
                sign = side
    return step, column, sign


@compiled
def next_exit(S: HomotopyState, d: Array) -> tuple[float, int]:
    """Return the step to the first exit and the place of the column that leaves."""
    step = np.inf
    place = -1
    for i in range(d.size):
        speed = -S.signs[i] * d[i]
        size = max(S.signs[i] * S.b[i], 0.0)
        if speed > 0.0 and size < step * speed:
            step = size / speed
            place = i
    return step, place


@compiled
def advance(D: ActiveColumns, S: HomotopyState, target: float, limit: int) -> int:
    """Follow the path down to penalty `target`, for at most `limit` knots; return their number.

    Dependent columns may cycle at one penalty; the path then ends there.
    """
    knots = 0
    stalled = 0
    dropped = -1
    d, u = direction(D, S)
    while S.lam[0] > target and knots < limit and stalled < MAX_STALLED:
        entry, k, sign = next_entry(S, u, dropped)
        exit_, i = next_exit(S, d)
        step = min(entry, exit_, S.lam[0] - target)
        for j in range(d.size):
            S.b[j] += step * d[j]
        for l in range(u.size):
            S.correlation[l] -= step * u[l]
        if step == S.lam[0] - target:
            S.lam[0] = target
            break
        stalled = stalled + 1 if step <= STALLED * S.lam[0] else 0
        S.lam[0] -= step
        knots += 1
        dropped = -1
        if step == exit_:
            dropped = S.active[i]
            leave(D, S, i)
        elif not enter(D, S, k, sign):
            S.blocked[k] = True
            continue
        d, u = direction(D, S)
    return knots


@compiled
def refine(D: ActiveColumns, S: HomotopyState) -> None:
    """Solve G_AA b_A = X_A'y/m - lam s to full accuracy and recompute X'r/m."""
    a = S.a[0]
    r = D.y.copy()
    subtract_rows(r, D.Xt, S.active, S.b, a)
    miss = np.empty(a)
    for _ in range(2):
        for i in range(a):
            miss[i] = dot(D.Xt[S.active[i]], r) / r.size - S.lam[0] * S.signs[i]
        S.b[:a] += times_inverse(S, miss)
        r[:] = D.y
        subtract_rows(r, D.Xt, S.active, S.b, a)
    S.correlation[:] = inner_products(D.Xt, r) / r.size
