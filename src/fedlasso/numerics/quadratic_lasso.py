"""Lasso problems whose quadratic part is a small dense or low-rank model of the curvature.

Coordinate descent solves them in a few sweeps unless columns are nearly collinear. Then a
feature-sign search (Lee et al., 2007) continues from its result: on the support the problem is one
small dense system.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from fedlasso.numerics.bounds import Bounds
from fedlasso.numerics.descent import Lasso, descend
from fedlasso.numerics.machine import EPS, Array, compiled, dot, one_thread, soft
from fedlasso.numerics.repair import changes_sign, minimize_along

# Sweeps after which columns count as nearly collinear, and steps of the search that follows.
SWEEPS = 1000
STEPS = 1000
# Within bounds: sweeps before a step on all free coefficients, and the number of such alternations.
BOUNDED_SWEEPS = 50
BOUNDED_STEPS = 200
# Tolerance of the slopes, as a fraction of the largest score.
EXACT = 1e-14
# Ridge added while a step is computed, as a fraction of the largest curvature: B may be singular.
STEADY = 1e-14
# Full steps that solve a system in which that ridge was added.
POLISHED = 4
# A BFGS correction needs at least this fraction of the known curvature along the step.
CURVED = 1e-10
# Directions of negative curvature are given this fraction of the mean curvature.
LEAST = 1e-3


class CurvatureModel(NamedTuple):
    """B = A diag(d) A' + mu I, and its diagonal."""

    A: Array
    d: Array
    mu: float
    diagonal: Array

    def times(self, b: Array) -> Array:
        on = np.flatnonzero(b)
        return np.asarray(self.A @ (self.d * (self.A[on].T @ b[on])) + self.mu * b)

    def block(self, on: NDArray[np.int64]) -> Array:
        rows = self.A[on]
        return np.asarray((rows * self.d) @ rows.T + self.mu * np.eye(len(rows)))


def solve_model(B: CurvatureModel, c: Array, thresholds: Array, start: Array) -> Array:
    """Return the minimizer of 1/2 b'Bb - c'b + sum_k thresholds_k |b_k|."""
    b = start.copy()
    tol = EXACT * float(np.abs(c).max(initial=0.0))
    if descend_factored(*B, c, thresholds, b, np.empty(B.d.size), tol):
        return b
    return search(B, c, thresholds, b, tol)


@one_thread()
def search(B: CurvatureModel, c: Array, penalties: Array, b: Array, tol: float) -> Array:
    """Solve the same problem from b, by steps to the minimum over a support and its signs.

    Every step lowers the objective, so the search ends: at optimality or at rounding errors.
    """
    thresholds = np.where(np.isfinite(penalties), penalties, 0.0)
    free = np.isfinite(penalties) & (B.diagonal > 0.0)
    largest = float(B.diagonal.max(initial=0.0))
    full_steps = 0
    for _ in range(STEPS):
        slope = c - B.times(b)
        s = np.sign(b)
        rounding = tol + 4 * EPS * largest * float(np.abs(b).sum())
        miss = np.abs(slope - thresholds * s)[s != 0].max(initial=0.0)
        if miss <= tol or full_steps == POLISHED:
            violation = np.where((s == 0) & free, np.abs(slope) - thresholds, -np.inf)
            k = int(violation.argmax())
            if violation[k] <= rounding:
                break
            s[k] = np.sign(slope[k])
            full_steps = 0
        on = np.flatnonzero(s)
        H = B.block(on)
        force = (slope - thresholds * s)[on]
        d = np.zeros(b.size)
        try:
            factor = scipy.linalg.cho_factor(H + STEADY * largest * len(on) * np.eye(len(on)))
        except scipy.linalg.LinAlgError:
            break
        d[on] = scipy.linalg.cho_solve(factor, force)
        if not changes_sign(b, d):
            b = b + d
            full_steps += 1
            continue
        full_steps = 0
        moved = minimize_along(b, d, -float(force @ d[on]), float(d[on] @ H @ d[on]), thresholds)
        if moved is None:
            break
        b = moved
    return b


@compiled
def descend_factored(
    A: Array,
    d: Array,
    mu: float,
    diagonal: Array,
    c: Array,
    penalties: Array,
    b: Array,
    t: Array,
    tol: float,
) -> bool:
    """Solve the same problem by coordinate descent, in place; return whether it converged.

    t = diag(d) A'b is kept up to date. Sweeps are over the nonzero coefficients until none changes
    its slope by more than `tol`, then over all.
    """
    full = True
    for sweep in range(SWEEPS):
        if full or sweep % 100 == 0:
            for i in range(t.size):
                t[i] = 0.0
            for k in range(b.size):
                if b[k] != 0.0:
                    for i in range(t.size):
                        t[i] += d[i] * A[k, i] * b[k]
        largest = 0.0
        for k in range(b.size):
            if (b[k] == 0.0 and not full) or not diagonal[k] > 0.0:
                continue
            slope = c[k] - dot(A[k], t) - mu * b[k]
            new = soft(slope + diagonal[k] * b[k], penalties[k]) / diagonal[k]
            step = new - b[k]
            if step != 0.0:
                b[k] = new
                for i in range(t.size):
                    t[i] += d[i] * A[k, i] * step
                change = abs(step) * diagonal[k]
                if change > largest:
                    largest = change
        settled = largest <= tol
        if settled and full:
            return True
        full = settled
    return False


@one_thread()
def solve_step(
    H: Array, slopes: Array, thresholds: Array, b: Array, bounds: Bounds | None = None
) -> tuple[Array, float]:
    """Minimize slopes'(x - b) + (x - b)'H(x - b)/2 + sum_k thresholds_k |x_k|, within any bounds.

    Return the minimizer, and how much lower the model is there than at b.
    """
    e, P = np.linalg.eigh(H)
    root = np.ascontiguousarray(P * np.sqrt(np.maximum(e, 0.0)))
    model = CurvatureModel(root, np.ones(len(e)), 0.0, np.maximum(np.diagonal(H), 0.0).copy())
    if bounds is None:
        x = solve_model(model, model.times(b) - slopes, thresholds, b)
    else:
        x = minimize_within(root @ root.T, slopes, thresholds, b, bounds)
    d = x - b
    fall = slopes @ d + d @ model.times(d) / 2 + thresholds @ (np.abs(x) - np.abs(b))
    return x, max(-float(fall), 0.0)


def minimize_within(H: Array, slopes: Array, thresholds: Array, b: Array, bounds: Bounds) -> Array:
    """Return the minimizer within bounds of the model of `solve_step`.

    Coordinate descent decides which coefficients are at zero or at a bound. Steps on all others
    handle what it is slow at: nearly collinear columns.
    """
    x = b.copy()
    norms = np.diagonal(H).copy()
    score = H @ b - slopes
    problem = Lasso(H, True, norms, score, thresholds, 0.0, norms, bounds.lower, bounds.upper)
    scale = EXACT * float(np.abs(score).max(initial=0.0))
    largest = float(norms.max(initial=0.0))
    for _ in range(BOUNDED_STEPS):
        # Rounding errors of a slope are allowed on top.
        tol = scale + 4 * EPS * largest * float(np.abs(x).sum())
        if descend(problem, x, tol, BOUNDED_SWEEPS)[1]:
            break
        # Each step moves a coefficient to a bound or zero, or helps to solve the system.
        for _ in range(len(x)):
            on = np.flatnonzero((x != 0) & (x > bounds.lower) & (x < bounds.upper))
            force = -(slopes + H @ (x - b) + thresholds * np.sign(x))[on]
            if np.abs(force).max(initial=0.0) <= tol:
                break
            x = _step_between(H[np.ix_(on, on)], force, thresholds, x, on, bounds)
    return x


def _step_between(
    H: Array, force: Array, thresholds: Array, x: Array, on: NDArray[np.int64], bounds: Bounds
) -> Array:
    """Step toward the minimum over the coefficients `on`, up to the first bound on the way.

    H has their second derivatives, and `force` is minus their gradient.
    """
    d = np.zeros(len(x))
    steady = STEADY * len(on) * float(np.diagonal(H).max(initial=0.0))
    try:
        factor = scipy.linalg.cho_factor(H + steady * np.eye(len(on)))
    except scipy.linalg.LinAlgError:
        return x
    d[on] = scipy.linalg.cho_solve(factor, force)
    moved = minimize_along(x, d, -float(force @ d[on]), float(d[on] @ H @ d[on]), thresholds)
    if moved is None:
        return x
    if bounds.hold(moved):
        return moved
    end = bounds.toward(d)
    steps = np.divide(end - x, d, out=np.full(len(x), np.inf), where=d != 0)
    along = float(steps.min())
    return bounds.clip(np.where(steps <= along, end, x + along * d))


@one_thread()
def correct_curvature(H: Array, moved: Array, turned: Array) -> Array:
    """Return the BFGS update of H, so that H moved = turned.

    `moved` is a step and `turned` the change of the gradient along it. H stays as it is if the
    gradient did not rise along the step.
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
    """Return H with its directions of negative curvature, which no convex loss has, made positive.

    Such directions arise where exact second derivatives of some columns meet corrected ones of
    others. BFGS updates of an indefinite matrix would be meaningless.
    """
    e, P = np.linalg.eigh(H)
    if not e.size or e[0] >= -CURVED * e[-1]:
        return H
    lifted = (P * np.maximum(e, LEAST * float(np.trace(H)) / e.size)) @ P.T
    return np.asarray((lifted + lifted.T) / 2)
