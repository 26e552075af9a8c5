"""E local epochs at one site: exact coordinate sweeps, or steps of federated dual averaging.

A sweep depends on its start only, so 2 sweeps followed by 3 give the bits of 5.

A coefficient is computed from sums whose terms are as large as the fitted values. A change within a
few rounding errors of such a sum is no progress, and the coefficient keeps its bits. Without this
rule a converged iteration would fluctuate in its last digits, and whether it ever repeats itself
would depend on the data and the processor.
"""

import numpy as np

from fedlasso.numerics.curved_sweeps import curved_sweeps
from fedlasso.numerics.machine import Array, compiled, dot, inlined, soft, subtract_nonzero_rows
from fedlasso.numerics.penalties import L1, Penalty
from fedlasso.numerics.sample import LeastSquares, Sample

# Four rounding errors, relative to a sum of absolute terms.
ROUNDING = 2.0**-50


def local_sweeps(f: Sample, start: Array, lam: float, epochs: int) -> Array:
    """Return T^E(b), E sweeps of coordinate descent, for every column b of `start` (p by q).

    A sweep sets, for k = 1..p in order, b_k <- S(x_k'r, m lam) / ||x_k||^2 with
    r = y - Xb + x_k b_k; it is zero for a column of zeros. For other losses a sweep is over a
    quadratic model of the loss at its start. A column's result does not depend on other columns.

    scikit-learn's cyclic Lasso (`tol=0`, `max_iter=E`) gives the same numbers, except from a start
    so near the optimum that its gap-safe screening sets coordinates to zero before the first sweep.
    """
    B = np.array(start.T, dtype=np.float64, order="C")
    if not isinstance(f, LeastSquares):
        return np.column_stack([curved_sweeps(f, b, L1(lam), epochs) for b in B])
    base = float(np.sqrt(f.y_ss / f.m))
    if f.prefers_gram:
        units = np.sqrt(np.diagonal(f.gram))
        gram_sweeps(f.gram, f.score, units, base, B, np.empty(f.p), lam, epochs)
    else:
        norms = f.design.norms
        residual_sweeps(f.columns, f.y, norms, np.sqrt(norms), base, B, lam, epochs)
    return B.T


def dual_steps(
    f: Sample, z: Array, rates: Array, penalty: Penalty, first_step: int, epochs: int
) -> Array:
    """Return each column of `z` after E dual-averaging steps (Yuan, Zaheer and Reddi, 2021).

    For k = 0..E-1: b = prox(z, rate (first_step + k)), then z <- z - rate grad f(b). `first_step`
    is the number of earlier steps, t E at the start of round t. A column's result does not depend
    on other columns. Least squares with a Lasso penalty runs compiled.
    """
    Z = np.array(z.T, dtype=np.float64, order="C")
    rates = np.ascontiguousarray(rates, dtype=np.float64)
    end = first_step + epochs
    if isinstance(f, LeastSquares) and penalty.plain:
        M, target = (f.gram, f.score) if f.prefers_gram else (f.columns, f.y)
        lasso_steps(M, target, f.prefers_gram, Z, rates, penalty.lam, first_step, end)
    else:
        for z_k, rate in zip(Z, rates.tolist(), strict=True):
            for step in range(first_step, end):
                z_k[:] = stay_finite(z_k - rate * f.gradient(penalty.prox(z_k, rate * step)), z_k)
    return Z.T


def stay_finite(new: Array, old: Array) -> Array:
    """Return `new`, or `old` if the step overflowed, as too large a rate may cause."""
    return new if np.isfinite(new).all() else old


def keep_unmoved(new: Array, old: Array) -> Array:
    """Return `new`, with the old bits of coefficients that changed by rounding only.

    The server knows neither responses nor the scales of columns, so the size of a model (column) is
    the sum of its absolute coefficients.
    """
    size = np.abs(new).sum(axis=0)
    return np.where(np.abs(new - old) <= ROUNDING * size, old, new)


@inlined
def total_size(base: float, units: Array, b: Array) -> float:
    """Return base + sum_k units_k |b_k|, a bound on the sums behind a coefficient."""
    total = base
    for k in range(b.size):
        total += units[k] * abs(b[k])
    return total


@inlined
def moved(new: float, old: float, unit: float, size: float) -> bool:
    """Return whether a coefficient changed by more than rounding; True for NaN."""
    return not abs(new - old) * unit <= ROUNDING * size


@compiled
def gram_sweeps(
    G: Array, c: Array, units: Array, base: float, B: Array, s: Array, lam: float, epochs: int
) -> None:
    """Sweep every row of B in place, from G = X'X/m, c = X'y/m and base = ||y||/sqrt(m).

    s_k is the score of coordinate k, c_k - sum_{l<k} G_kl b_l(new) - sum_{l>k} G_kl b_l(old).
    A new b_k updates s_l for this sweep if l > k, and for the next one if l < k.
    """
    p = c.size
    for j in range(len(B)):
        b = B[j]
        for k in range(p):
            s[k] = c[k]
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
    Xt: Array,
    y: Array,
    norms: Array,
    units: Array,
    base: float,
    B: Array,
    lam: float,
    epochs: int,
) -> None:
    """Sweep every row of B in place, from the rows x_k of Xt and norms_k = ||x_k||^2/m."""
    q, p = B.shape
    m = y.size
    for j in range(q):
        b = B[j]
        for _ in range(epochs):
            # recomputing the residual makes the sweep a function of b alone
            r = y.copy()
            subtract_nonzero_rows(r, Xt, b)
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


@compiled
def lasso_steps(
    M: Array, target: Array, gram: bool, Z: Array, rates: Array, lam: float, first: int, end: int
) -> None:
    """Step every row of Z in place: -grad f(b) = X'y/m - Gb from G = X'X/m, or X'(y - Xb)/m."""
    q, p = Z.shape
    b = np.empty(p)
    for j in range(q):
        z = Z[j]
        for step in range(first, end):
            for k in range(p):
                b[k] = soft(z[k], rates[j] * step * lam)
            r = target.copy()
            subtract_nonzero_rows(r, M, b)
            if gram:
                for k in range(p):
                    z[k] += rates[j] * r[k]
            else:
                for k in range(p):
                    z[k] += rates[j] * (dot(M[k], r) / r.size)
