"""Recalibration of linear predictors: an intercept and a slope, by Newton steps."""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.numerics import Array, Loss, Response

# Three fits side by side: intercept and slope, the intercept of a slope of one (calibration in the
# large), and that of a slope of zero (the model without columns).
START = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
FREE = np.array([[True, True], [True, False], [True, False]])
BOTH, LARGE, EMPTY = range(3)
STEPS = 25
# Last step, in standard errors; and the last two, where rounded sums keep them from being shorter.
LAST = (1e-3, 0.02)
# Steps that have not converged are at most so long.
LONGEST_STEP = 2.0
# Classes are separable where slopes grow beyond this.
LARGEST_SLOPE = 16.0
LARGEST_INTERCEPT = 60.0
# Worst condition number of second derivatives in standard units.
WORST_CONDITION = 1e10
# Minimum effective rows of the curvature at a point.
EFFECTIVE_ROWS = 10.0
# Sums for curved losses have so many bits below their standard errors: enough for a calibration,
# too few to separate the rows in sums at many points.
ROUNDED_BITS = 12
# Slopes (3, 2), and second derivatives (3, 3): of the intercept, both, and the slope.
Derivatives = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """Intercepts and slopes (3, 2), their variances by Fisher information, and which exist."""

    at: Array
    variances: Array
    known: NDArray[np.bool_]


def check_points(loss: Loss, at: Array) -> None:
    """Refuse intercepts and slopes of a curved loss that no calibration needs."""
    if not loss.quadratic and not (np.abs(at) <= [LARGEST_INTERCEPT, LARGEST_SLOPE]).all():
        limits = f"{LARGEST_INTERCEPT:g} or slope beyond {LARGEST_SLOPE:g}"
        raise FedLassoError(f"an intercept beyond {limits} is not answered")


def derive(loss: Loss, scores: Array, response: Response, at: Array) -> Derivatives:
    """Return derivatives of the loss in intercept and slope; `scores` are without the offset.

    They are zero where a curved loss has its curvature in a few rows only: there a sum would be
    about those rows.
    """
    V = np.column_stack([np.ones(len(scores)), scores])
    slopes = np.zeros((len(at), 2))
    curvature = np.zeros((len(at), 3))
    for k, point in enumerate(at):
        eta = response.offset + V @ point
        if not loss.quadratic and not rests_on_many(
            loss.row_curvature(eta, response), EFFECTIVE_ROWS
        ):
            continue
        H = V.T @ loss.curve(eta, response, V)
        terms = loss.slopes(eta, response)
        slopes[k] = V.T @ terms
        curvature[k] = [H[0, 0], H[0, 1], H[1, 1]]
        if not loss.quadratic:
            sizes = np.linalg.norm(V * terms[:, None], axis=0)
            slopes[k] = round_to(slopes[k], sizes)
            a, _, c = curvature[k]
            curvature[k] = round_to(curvature[k], np.array([a, np.sqrt(a * c), c]))
    return slopes, curvature


def rests_on_many(weights: Array, fewest: float) -> bool:
    """Return whether weights are those of enough effective rows, (sum w)^2 / sum w^2.

    So many rows are enough, or half of all.
    """
    if fewest <= 0:
        return True
    squares = float(weights @ weights)
    enough = float(weights.sum()) ** 2 >= min(fewest, len(weights) / 2) * squares
    return squares > 0 and enough


def round_to(numbers: Array, sizes: Array) -> Array:
    """Round numbers to a fraction of their standard errors, up to a power of two."""
    steps = np.ldexp(1.0, np.frexp(sizes)[1] - ROUNDED_BITS)
    return np.asarray(np.rint(numbers / steps) * steps)


def recalibrate(ask: Callable[[Array], Derivatives], quadratic: bool) -> Recalibrated:
    """Fit by Newton steps; `ask` returns derivatives at intercepts and slopes.

    One step is exact for a quadratic loss.
    """
    steps = recalibrating(quadratic)
    at = next(steps)
    while True:
        try:
            at = steps.send(ask(at))
        except StopIteration as end:
            found: Recalibrated = end.value
            return found


def recalibrating(quadratic: bool) -> Generator[Array, Derivatives, Recalibrated]:
    """Yield intercepts and slopes, and receive the derivatives there."""
    at = START.copy()
    variances = np.zeros((3, 2))
    known = np.zeros(3, bool)
    lost = np.zeros(3, bool)
    short = np.zeros(3, bool)
    for _ in range(STEPS):
        slopes, curvature = yield at
        for k in np.flatnonzero(~known & ~lost):
            a, b, c = curvature[k]
            free = FREE[k]
            H = np.array([[a, b], [b, c]])[np.ix_(free, free)]
            if not is_regular(H):
                lost[k] = True
                continue
            variances[k, free] = np.diagonal(np.linalg.inv(H))
            step = np.linalg.solve(H, slopes[k, free])
            within = [(step**2 < at_most**2 * variances[k, free]).all() for at_most in LAST]
            known[k] = quadratic or within[0] or (within[1] and short[k])
            short[k] = within[1]
            if not known[k]:
                # Far from the optimum of a curved loss whole steps may be too long.
                step /= max(1.0, float(np.abs(step).max()) / LONGEST_STEP)
            at[k, free] -= step
            lost[k] = not quadratic and abs(at[k, 1]) > LARGEST_SLOPE
        if (known | lost).all():
            break
        at[lost] = START[lost]
    return Recalibrated(at, variances, known & ~lost)


def is_regular(H: Array) -> bool:
    """Return whether a matrix of second derivatives can be inverted, in whatever units."""
    roots = np.sqrt(np.diagonal(H))
    if not np.isfinite(H).all() or not (roots > 0).all():
        return False
    return bool(np.linalg.cond(H / np.outer(roots, roots)) <= WORST_CONDITION)
