"""The compiled parts of `walk` in `homotopy`: directions, and the steps to the next knot.

Arguments are plain arrays, which compile in half the time that named tuples of arrays take.
"""

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.machine import Array, compiled, dot, inlined, subtract_rows

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

# The error of G_AA d = s beyond which the inverse is recomputed.
DECAYED = 1e-9


@inlined
def find_direction(
    Xt: Array,
    G: Array,
    inverse: Array,
    active: Integers,
    signs: Array,
    a: int,
    d: Array,
    v: Array,
    w: Array,
    u: Array,
    sums: Array,
) -> bool:
    """Fill in d and u, improved once if u_A = s fails; return whether it then holds."""
    gram = G.size > 0
    M = G if gram else Xt
    for i in range(a):
        v[i] = signs[i]
        d[i] = 0.0
    holds = False
    for _ in range(2):
        times_inverse(inverse, v, w, a)
        for i in range(a):
            d[i] += w[i]
            w[i] = -d[i]
        for l in range(sums.size):
            sums[l] = 0.0
        subtract_rows(sums, M, active, w, a)
        for k in range(u.size):
            u[k] = sums[k] if gram else dot(M[k], sums) / sums.size
        holds = True
        for i in range(a):
            v[i] = signs[i] - u[active[i]]
            if not abs(v[i]) <= DECAYED:
                holds = False
        if holds:
            break
    return holds


@inlined
def next_entry(
    lam: float,
    full: bool,
    dropped: int,
    place: Integers,
    blocked: Flags,
    correlation: Array,
    u: Array,
) -> tuple[float, int, float]:
    """Return the step to the first entry, the column that enters and its sign."""
    step = np.inf
    column = -1
    sign = 0.0
    for k in range(u.size):
        if full or place[k] >= 0 or blocked[k]:
            continue
        for negative in range(2):
            side = 1.0 - 2.0 * negative
            closing = 1.0 - side * u[k]
            slack = lam - side * correlation[k]
            # a column that has just left still equals the penalty: it must move away first
            if k == dropped and slack <= 1e-9 * lam:
                continue
            if closing > 0.0 and slack < step * closing:
                step = slack / closing if slack > 0.0 else 0.0
                column = k
                sign = side
    return step, column, sign


@inlined
def next_exit(signs: Array, b: Array, d: Array, a: int) -> tuple[float, int]:
    """Return the step to the first exit and the place of the column that leaves."""
    step = np.inf
    place = -1
    for i in range(a):
        speed = -signs[i] * d[i]
        size = signs[i] * b[i]
        if size < 0.0:
            size = 0.0
        if speed > 0.0 and size < step * speed:
            step = size / speed
            place = i
    return step, place


@compiled
def times_inverse(inverse: Array, v: Array, out: Array, a: int) -> None:
    """Fill in G_AA^-1 v."""
    for i in range(a):
        out[i] = dot(inverse[i, :a], v)


@compiled
def solve_active(
    G: Array,
    score: Array,
    inverse: Array,
    active: Integers,
    signs: Array,
    a: int,
    lam: float,
    b: Array,
    v: Array,
    w: Array,
    rest: Array,
) -> None:
    """Solve G_AA b_A = (X'y/m)_A - lam s by two steps from b.

    Fill in X'y/m - X'X b/m, at a penalty of zero for b before the last step.
    """
    for step in range(3 if lam > 0.0 else 2):
        for l in range(rest.size):
            rest[l] = score[l]
        subtract_rows(rest, G, active, b, a)
        if step < 2:
            for i in range(a):
                v[i] = rest[active[i]] - lam * signs[i]
            times_inverse(inverse, v, w, a)
            for i in range(a):
                b[i] += w[i]
