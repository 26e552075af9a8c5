"""Feature-sign search (Lee et al., 2007): slow, but accurate where the homotopy loses digits.

It uses a singular value decomposition of X itself, not of X'X. So nearly collinear columns cost
half as many digits, and duplicated columns are no special case.
"""

import numpy as np
import scipy.linalg

from fedlasso.numerics.machine import Array, one_thread
from fedlasso.numerics.sample import LeastSquares

STEPS = 300
# Tolerance of X'r/m, as a fraction of the largest useful penalty: a few rounding errors.
EXACT = 1e-13
# Singular values below this fraction of the largest are zero.
RANK = 1e-12
# Signs with a smaller part outside the row space of X lie in it.
ALIGNED = 1e-12


@one_thread()
def feature_sign_search(f: LeastSquares, lam: float, start: Array) -> Array:
    """Return the minimizer of the Lasso objective, searched from `start`.

    Every step lowers the objective. The search ends at optimality, at rounding errors, or after
    `STEPS` steps.
    """
    b = start.copy() if np.isfinite(start).all() else np.zeros(f.p)
    tolerance = EXACT * float(np.abs(f.score).max(initial=0.0))
    full_steps = 0
    for _ in range(STEPS):
        c = -f.gradient(b)
        s = np.sign(b)
        miss = np.abs(c - lam * s)[s != 0].max(initial=0.0)
        # a second full step refines the first: the rest is rounding
        if miss <= tolerance or full_steps == 2:
            violation = np.where(s == 0, np.abs(c) - lam, -np.inf)
            k = int(violation.argmax())
            if violation[k] <= tolerance:
                break
            s[k] = np.sign(c[k])
            full_steps = 0
        r = f.residual(b)
        try:
            d, endless = newton_step(f, r, s, lam)
        except scipy.linalg.LinAlgError:
            break
        moved, full = line_search(f, b, r, d, endless, lam)
        full_steps = full_steps + 1 if full else 0
        if moved is None:
            break
        b = moved
    return b


def newton_step(f: LeastSquares, r: Array, s: Array, lam: float) -> tuple[Array, bool]:
    """Return the step to the minimum over the columns and signs in `s`, and whether it is endless.

    An endless step lies in the null space of X: the penalty falls along it until a sign changes.
    """
    A = np.flatnonzero(s)
    # all of V is needed for the null space; all of U never is
    U, sigma, Vt = scipy.linalg.svd(f.X[:, A], full_matrices=len(A) > f.m)
    rank = int((sigma > RANK * sigma[0]).sum())
    U = U[:, :rank]
    sigma = sigma[:rank]
    V = Vt[:rank].T
    null = Vt[rank:].T
    d = np.zeros(f.p)
    unseen = null.T @ s[A]
    if np.abs(unseen).max(initial=0.0) > ALIGNED:
        d[A] = -null @ (unseen / scipy.linalg.norm(unseen))
        return d, True
    d[A] = V @ ((U.T @ r - lam * f.m * (V.T @ s[A]) / sigma) / sigma)
    return d, False


def line_search(
    f: LeastSquares, b: Array, r: Array, d: Array, endless: bool, lam: float
) -> tuple[Array | None, bool]:
    """Minimize the objective along b + t d by its slope, which is more accurate than its value.

    Return the minimizer, or None if the slope at b is not negative, and whether it is b + d with
    no change of sign on the way.
    """
    if not endless and not changes_sign(b, d):
        return b + d, True
    Xd = f.X @ d
    curvature = 0.0 if endless else float(Xd @ Xd) / f.m
    slope = lam * float(np.where(b != 0, np.sign(b), np.sign(d)) @ d) - float(Xd @ r) / f.m
    return minimize_along(b, d, slope, curvature, np.full(f.p, lam)), False


def changes_sign(b: Array, d: Array) -> bool:
    """Return whether a coefficient changes its sign on the way from b to b + d."""
    turning = b * d < 0
    return not bool((-b[turning] / d[turning] > 1).all())


def minimize_along(
    b: Array, d: Array, slope: float, curvature: float, penalties: Array
) -> Array | None:
    """Return the minimizer of a Lasso objective along b + t d, or None if it does not fall.

    `slope` is the objective's at b, including the penalty; `curvature` is that of the loss.
    """
    if slope >= 0:
        return None
    turning = np.flatnonzero(b * d < 0)
    crossings = -b[turning] / d[turning]
    for i in crossings.argsort():
        t = crossings[i]
        k = turning[i]
        if slope + curvature * t >= 0:
            break
        slope += 2 * penalties[k] * abs(d[k])
        if slope + curvature * t >= 0:
            moved: Array = b + t * d
            moved[k] = 0.0
            return moved
    return b - slope / curvature * d if curvature > 0 else None
