"""Cyclic coordinate descent at one site: E exact sweeps over the coordinates 1..p.

One sweep is a pure function of its start, so 2 sweeps and then 3 give the bits of 5. A coordinate
whose update is rounding (see `fedlasso.numerics.rounding`) keeps its bits, so iterates that have
arrived stand still, and a sweep that changes nothing ends the work.
"""

from typing import Literal

import numpy as np

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.compiled import compiled, dot, soft, subtract_product
from fedlasso.numerics.least_squares import LeastSquares
from fedlasso.numerics.rounding import moved, total_size

Form = Literal["gram", "residual"]


def local_sweeps(
    f: LeastSquares, start: Array, lam: float, epochs: int, form: Form | None = None
) -> Array:
    """Return T^E(b) for every column b of `start`.

    Each of the E sweeps sets, for k = 1..p in order, b_k <- S(x_k'r, m lam) / ||x_k||^2 with
    r = y - Xb + x_k b_k. A column of zeros keeps a zero coefficient.

    Parameters
    ----------
    f : LeastSquares
        The site's data.
    start : array (p, q)
        q starting vectors; not changed. A column's result does not depend on the other columns.
    lam : float
        The penalty.
    epochs : int
        The number of sweeps, E.
    form : {"gram", "residual"}, optional
        Which of two equal computations to use; `f.prefers_gram` chooses when not given.

    Returns
    -------
    array (p, q)

    Notes
    -----
    scikit-learn's cyclic Lasso (`tol=0`, `max_iter=E`) gives the same numbers, except from a start
    so near the optimum that its gap-safe screening sets coordinates to zero before the first sweep.
    """
    B = np.array(start.T, dtype=np.float64, order="C")
    base = float(np.sqrt(f.y_ss / f.m))
    if form == "gram" or (form is None and f.prefers_gram):
        gram_sweeps(f.gram, f.score, base, B, lam, epochs)
    else:
        residual_sweeps(f.columns, f.y, f.column_norms, base, B, lam, epochs)
    return B.T


@compiled
def gram_sweeps(G: Array, c: Array, base: float, B: Array, lam: float, epochs: int) -> None:
    """Sweep every row of B in place, from G = X'X/m, c = X'y/m and base = ||y||/sqrt(m).

    s_k is what coordinate k will see, c_k - sum_{l<k} G_kl b_l(new) - sum_{l>k} G_kl b_l(old).
    Once b_k is set its row of G goes to s_l, l > k, for this sweep and to s_l, l < k, for the next.
    """
    q, p = B.shape
    units = np.sqrt(np.diag(G))
    for j in range(q):
        b = B[j]
        s = c.copy()
        for k in range(p):
            if b[k] != 0.0:
                for l in range(k):
                    s[l] -= b[k] * G[k, l]
        for _ in range(epochs):
            size = total_size(base, units, b)
            changed = False
            for k in range(p):
                new = soft(s[k], lam) / G[k, k] if G[k, k] > 0.0 else 0.0
                if G[k, k] == 0.0 or moved(new, b[k], units[k], size):
                    changed |= new != b[k]
                    b[k] = new
                if b[k] != 0.0:
                    for l in range(p):
                        s[l] -= b[k] * G[k, l]
                s[k] = c[k]
            if not changed:
                break


@compiled
def residual_sweeps(
    Xt: Array, y: Array, norms: Array, base: float, B: Array, lam: float, epochs: int
) -> None:
    """Sweep every row of B in place, from the rows x_k of Xt and norms_k = ||x_k||^2/m."""
    q, p = B.shape
    m = y.size
    units = np.sqrt(norms)
    for j in range(q):
        b = B[j]
        for _ in range(epochs):
            # a fresh residual makes the sweep a function of b alone
            r = y.copy()
            subtract_product(r, Xt, b)
            size = total_size(base, units, b)
            changed = False
            for k in range(p):
                x = Xt[k]
                new = soft(dot(x, r) / m + norms[k] * b[k], lam) / norms[k] if norms[k] > 0 else 0.0
                if norms[k] == 0.0 or moved(new, b[k], units[k], size):
                    changed |= new != b[k]
                    step = new - b[k]
                    for i in range(m):
                        r[i] -= step * x[i]
                    b[k] = new
            if not changed:
                break
