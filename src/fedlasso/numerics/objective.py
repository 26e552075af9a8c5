"""The Lasso objective and the two measures of how far a vector is from its minimum."""

from collections.abc import Sequence

import numpy as np

from fedlasso.numerics.arrays import Array


def soft_threshold(v: Array, a: float | Array) -> Array:
    """Return S(v, a) = sgn(v) max(|v| - a, 0), elementwise."""
    return np.sign(v) * np.maximum(np.abs(v) - a, 0.0)


def objective(X: Array, y: Array, b: Array, lam: float) -> float:
    """Return L(b) = ||y - Xb||^2 / (2m) + lam |b|_1."""
    r = y - X @ b
    return float(r @ r / (2 * y.size) + lam * np.abs(b).sum())


def pooled_objective(parts: Sequence[tuple[Array, Array]], b: Array, lam: float) -> float:
    """Return F(b) = sum_j w_j L_j(b) over the sites' `(X_j, y_j)`, with w_j = m_j / m."""
    m = sum(y.size for _, y in parts)
    return sum(y.size / m * objective(X, y, b, lam) for X, y in parts)


def duality_gap(
    residual_ss: float,
    residual_y: float,
    y_ss: float,
    gradient: Array,
    b: Array,
    lam: float,
    m: int,
) -> float:
    """Bound L(b) - min L from above, from sums that sites can add up.

    Parameters
    ----------
    residual_ss, residual_y, y_ss
        ||r||^2, r'y and ||y||^2 with r = y - Xb.
    gradient
        X'(Xb - y)/m.
    b, lam, m
        The coefficients, the penalty and the number of records.

    Notes
    -----
    The dual value of s r is (||y||^2 - ||y - s r||^2) / (2m), and s r is feasible when
    |s| ||gradient||_inf <= lam. The s used is the best one in that interval.
    """
    primal = residual_ss / (2 * m) + lam * float(np.abs(b).sum())
    steepest = float(np.abs(gradient).max(initial=0.0))
    s = residual_y / residual_ss if residual_ss > 0 else 0.0
    if abs(s) * steepest > lam:
        s = float(np.copysign(lam / steepest, s))
    # ||y||^2 - ||y - s r||^2 without forming y - s r
    dual = s * (2 * residual_y - s * residual_ss) / (2 * m)
    # s = 0 is always feasible and worth 0, and no dual value exceeds ||y||^2 / (2m)
    dual = min(max(dual, 0.0), y_ss / (2 * m))
    return max(primal - dual, 0.0)


def stationarity(b: Array, gradient: Array, lam: float) -> float:
    """Return ||b - S(b - gradient, lam)||_inf, zero exactly at a minimizer."""
    return float(np.abs(b - soft_threshold(b - gradient, lam)).max(initial=0.0))
