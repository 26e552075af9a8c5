"""Second derivatives that are kept as a small dense matrix: steps with them, and corrections."""

import numpy as np

from fedlasso.numerics.bounds import Bounds, minimize_within
from fedlasso.numerics.machine import Array, one_thread
from fedlasso.numerics.secant_lasso import CurvatureModel, solve_model

# A correction needs curvature along the step of at least this share of what is known there.
CURVED = 1e-10
# Directions that are found to curve down are taken to curve up by this share of the mean.
LEAST = 1e-3


@one_thread()
def correct_curvature(H: Array, moved: Array, turned: Array) -> Array:
    """Return H corrected so that H moved = turned (Broyden, Fletcher, Goldfarb and Shanno).

    `moved` is a step and `turned` how the gradient changed along it. A step along which the
    gradient did not rise teaches nothing.
    """
    rise = float(moved @ turned)
    known = H @ moved
    expected = float(moved @ known)
    if not (rise > CURVED * abs(expected) and expected > 0):
        return H
    out = H + np.outer(turned, turned) / rise - np.outer(known, known) / expected
    return np.asarray((out + out.T) / 2)


@one_thread()
def keep_convex(H: Array) -> Array:
    """Return H, or where it curves down, which no convex loss does, H with those directions lifted.

    Columns whose second derivatives are known exactly, beside others whose were corrected since,
    may come to that; corrections of such a matrix would lead anywhere.
    """
    e, P = np.linalg.eigh(H)
    if not e.size or e[0] >= -CURVED * e[-1]:
        return H
    lifted = (P * np.maximum(e, LEAST * float(np.trace(H)) / e.size)) @ P.T
    return np.asarray((lifted + lifted.T) / 2)


@one_thread()
def solve_step(
    H: Array, slopes: Array, pays: Array, b: Array, bounds: Bounds | None = None
) -> tuple[Array, float]:
    """Return the minimum of a quadratic model and a weighted Lasso penalty, and what it promises.

    The model is slopes'(x - b) + (x - b)'H(x - b)/2 + sum_k pays_k |x_k|, within bounds if there
    are any; the second number is how much lower it is than at b.
    """
    e, P = np.linalg.eigh(H)
    root = np.ascontiguousarray(P * np.sqrt(np.maximum(e, 0.0)))
    model = CurvatureModel(root, np.ones(len(e)), 0.0, np.maximum(np.diagonal(H), 0.0).copy())
    if bounds is None:
        x = solve_model(model, model.times(b) - slopes, pays, b)
    else:
        x = minimize_within(root @ root.T, slopes, pays, b, bounds)
    d = x - b
    fall = slopes @ d + d @ model.times(d) / 2 + pays @ (np.abs(x) - np.abs(b))
    return x, max(-float(fall), 0.0)
