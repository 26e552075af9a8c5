"""Feature-sign search (Lee et al., 2007): slow, and steady where the homotopy loses its digits.

It works on X itself through a singular value decomposition, so nearly collinear columns cost
digits once and not twice, and duplicated ones are no special case.
"""

import numpy as np
import scipy.linalg

from fedlasso.lasso.arrays import Array
from fedlasso.lasso.least_squares import LeastSquares, one_thread

STEPS = 300
# Optimality is asked for to this share of the largest useful penalty: a few roundings of X'r/m.
EXACT = 1e-13
# Singular values below this share of the largest are zero.
RANK = 1e-11


def feature_sign_search(f: LeastSquares, lam: float, start: Array) -> Array:
    """Minimize the Lasso objective from `start`; every step lowers it, so the search ends.

    It stops at optimality, when rounding hides further progress, or after `STEPS` steps.
    """
    b = start.copy() if np.isfinite(start).all() else np.zeros(f.p)
    tolerance = EXACT * float(np.abs(f.score).max(initial=0.0))
    full_steps = 0
    with one_thread():
        for _ in range(STEPS):
            c = -f.gradient(b)
            s = np.sign(b)
            miss = np.abs(c - lam * s)[s != 0].max(initial=0.0)
            # a second full step has polished the first: the rest is rounding
            if miss <= tolerance or full_steps == 2:
                violation = np.where(s == 0, np.abs(c) - lam, -np.inf)
                k = int(violation.argmax())
                if violation[k] <= tolerance:
                    break
                s[k] = np.sign(c[k])
                full_steps = 0
            try:
                d, longest = newton_step(f, f.residual(b), s, lam)
            except scipy.linalg.LinAlgError:
                break
            moved, full = best_point(f, b, d, longest, lam)
            full_steps = full_steps + 1 if full else 0
            if moved is None:
                break
            b = moved
    return b


def newton_step(f: LeastSquares, r: Array, s: Array, lam: float) -> tuple[Array, float]:
    """Return the move to the minimum over the columns and signs in `s`, and how far it may go.

    Where the penalty falls along a direction that X does not see, that direction comes first and
    has no end but a change of sign.
    """
    A = np.flatnonzero(s)
    U, sigma, Vt = scipy.linalg.svd(f.X[:, A], full_matrices=False)
    rank = int((sigma > RANK * sigma[0]).sum())
    U, sigma, Vt = U[:, :rank], sigma[:rank], Vt[:rank]
    seen = Vt @ s[A]
    unseen = s[A] - Vt.T @ seen
    d = np.zeros(f.p)
    if np.abs(unseen).max() > 1e-8:
        d[A] = -unseen
        return d, np.inf
    d[A] = Vt.T @ ((U.T @ r - lam * f.m * seen / sigma) / sigma)
    return d, 1.0


def best_point(
    f: LeastSquares, b: Array, d: Array, longest: float, lam: float
) -> tuple[Array | None, bool]:
    """Return the best of b + d and the points on the way where a sign changes.

    None when none is better than b; the flag says that b + d was taken and changed no sign.
    """
    turning = b * d < 0
    crossings = -b[turning] / d[turning]
    crossings = np.unique(crossings[crossings < longest])
    if longest == 1.0 and crossings.size == 0:
        return b + d, True
    best, value = None, penalized(f, b, lam)
    for t in [*crossings, longest] if longest == 1.0 else crossings:
        trial = b + t * d
        # exactly zero where t is that coordinate's crossing
        trial[np.abs(trial) <= 1e-15 * np.abs(b)] = 0.0
        trial_value = penalized(f, trial, lam)
        if trial_value < value:
            best, value = trial, trial_value
    return best, False


def penalized(f: LeastSquares, b: Array, lam: float) -> float:
    """Return f(b) + lam |b|_1."""
    return f.value(b) + lam * float(np.abs(b).sum())
