"""The Lasso with another linear term and a ridge: what local surrogate problems come to.

    minimize 1/2 b'(G + ridge I) b - score'b + lam |b|_1,    G = X'X/m,

by coordinate descent: full sweeps to find the active set, sweeps over that set to settle it.
"""

import numpy as np

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.compiled import compiled, dot, soft, subtract_product
from fedlasso.numerics.least_squares import LeastSquares
from fedlasso.numerics.sweeps import Form

# A sweep whose largest change of the gradient is below this share of the score moves nothing.
SETTLED = 1e-14
SWEEPS = 20_000


def shifted_lasso(
    f: LeastSquares,
    score: Array,
    lam: float,
    ridge: float,
    start: Array,
    pinned: int = -1,
    form: Form | None = None,
) -> tuple[Array, int]:
    """Return the minimizer and the sweeps it took.

    Parameters
    ----------
    f : LeastSquares
        Whose X'X/m is used; its y is not.
    score : array (p,)
        The linear term.
    lam, ridge : float
        The penalties; a ridge above zero makes the minimizer exist and unique.
    start : array (p,)
        Where to start; not changed.
    pinned : int
        A coordinate that stays as it is.
    form : {"gram", "residual"}, optional
        Which of two equal computations to use; `f.prefers_gram` chooses when not given.
    """
    b = np.array(start, dtype=np.float64)
    score = np.ascontiguousarray(score, dtype=np.float64)
    tol = SETTLED * float(np.abs(score).max(initial=0.0))
    if form == "gram" or (form is None and f.prefers_gram):
        return b, gram_settle(f.gram, score, lam, ridge, b, pinned, tol, SWEEPS)
    norms = f.column_norms
    return b, residual_settle(f.columns, norms, score, lam, ridge, b, pinned, tol, SWEEPS)


@compiled
def gram_settle(
    G: Array, score: Array, lam: float, ridge: float, b: Array, pinned: int, tol: float, sweeps: int
) -> int:
    """Minimize in place, from G = X'X/m."""
    p = b.size
    full = fresh = True
    down = score.copy()
    for sweep in range(sweeps):
        if fresh:
            # the gradient is computed anew before the sweep that may end the work
            down[:] = score - ridge * b
            subtract_product(down, G, b)
        largest = 0.0
        for k in range(p):
            if k == pinned or (not full and b[k] == 0.0):
                continue
            curvature = G[k, k] + ridge
            new = soft(down[k] + curvature * b[k], lam) / curvature if curvature > 0.0 else 0.0
            step = new - b[k]
            if step != 0.0:
                largest = max(largest, abs(step) * curvature)
                b[k] = new
                down[k] -= ridge * step
                for l in range(p):
                    down[l] -= step * G[k, l]
        settled = largest <= tol
        if settled and full and fresh:
            return sweep + 1
        # a settled active set calls for a full sweep from a fresh gradient
        full = fresh = settled
    return sweeps


@compiled
def residual_settle(
    Xt: Array,
    norms: Array,
    score: Array,
    lam: float,
    ridge: float,
    b: Array,
    pinned: int,
    tol: float,
    sweeps: int,
) -> int:
    """Minimize in place, from the rows x_k of Xt and norms_k = ||x_k||^2/m."""
    p, m = Xt.shape
    full = fresh = True
    r = np.zeros(m)
    for sweep in range(sweeps):
        if fresh:
            r[:] = 0.0
            subtract_product(r, Xt, b)
        largest = 0.0
        for k in range(p):
            if k == pinned or (not full and b[k] == 0.0):
                continue
            curvature = norms[k] + ridge
            down = score[k] + dot(Xt[k], r) / m + norms[k] * b[k]
            new = soft(down, lam) / curvature if curvature > 0.0 else 0.0
            step = new - b[k]
            if step != 0.0:
                largest = max(largest, abs(step) * curvature)
                b[k] = new
                for i in range(m):
                    r[i] -= step * Xt[k, i]
        settled = largest <= tol
        if settled and full and fresh:
            return sweep + 1
        full = fresh = settled
    return sweeps
