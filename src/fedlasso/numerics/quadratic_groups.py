"""Group Lasso problems whose quadratic part is a small dense matrix.

Block coordinate descent decides which groups are zero. Newton steps on the others, where the
penalty is smooth, converge fast where columns are nearly collinear.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.optimize import brentq

from fedlasso.numerics.machine import EPS, ROUNDING, Array, one_thread
from fedlasso.numerics.penalties import GroupL1

# Rounds of sweeps and Newton steps, and tolerance of slopes as a fraction of the largest score.
ROUNDS = 300
EXACT = 1e-13
# Curvatures below this fraction of the largest count as this fraction.
FLAT = 1e-12
HALVINGS = 30
# Smallest step of a search for a root; 0 is not allowed.
SMALLEST = 1e-300


@dataclass(eq=False)
class _Problem:
    """1/2 x'Hx - score'x + sum_g limit_g |x_g|, with the eigenvectors of each group's block."""

    H: Array
    score: Array
    penalty: GroupL1

    def __post_init__(self) -> None:
        floor = FLAT * float(np.diagonal(self.H).max(initial=0.0))
        self.blocks = []
        for place in self.penalty.places:
            e, Q = np.linalg.eigh(self.H[np.ix_(place, place)])
            self.blocks.append((np.maximum(e, floor), Q))

    def objective(self, x: Array) -> float:
        return float(x @ (self.H @ x / 2 - self.score)) + self.penalty.value(x)

    def sweep(self, x: Array) -> Array:
        """Minimize over one group after the other."""
        x = x.copy()
        slopes = self.score - self.H @ x
        groups = zip(self.penalty.places, self.penalty.limits, self.blocks, strict=True)
        for place, limit, (e, Q) in groups:
            pull = Q.T @ slopes[place] + e * (Q.T @ x[place])
            new = Q @ minimize_block(e, pull, float(limit))
            step = new - x[place]
            if step.any():
                slopes -= self.H[:, place] @ step
                x[place] = new
        return x

    def miss(self, x: Array) -> float:
        """Return the largest slope of the objective, where it has one, or its excess at zero."""
        slopes = self.score - self.H @ x
        worst = 0.0
        for place, limit in zip(self.penalty.places, self.penalty.limits, strict=True):
            size = float(np.linalg.norm(x[place]))
            if size > 0:
                left = slopes[place] - limit * x[place] / size
                worst = max(worst, float(np.linalg.norm(left)))
            else:
                worst = max(worst, float(np.linalg.norm(slopes[place])) - float(limit))
        return worst

    def newton(self, x: Array) -> Array:
        """Step on the groups that are not zero, as long as the objective falls."""
        on = np.flatnonzero(self._used(x))
        if not on.size:
            return x
        curvature = self.H.copy()
        force = self.score - self.H @ x
        for place, limit in zip(self.penalty.places, self.penalty.limits, strict=True):
            size = float(np.linalg.norm(x[place]))
            if size == 0 or limit == 0:
                continue
            unit = x[place] / size
            force[place] -= limit * unit
            if place.size > 1:
                bend = np.eye(place.size) - np.outer(unit, unit)
                curvature[np.ix_(place, place)] += limit / size * bend
        steady = FLAT * float(np.diagonal(curvature).max(initial=0.0)) * np.eye(on.size)
        try:
            factor = scipy.linalg.cho_factor(curvature[np.ix_(on, on)] + steady)
        except scipy.linalg.LinAlgError:
            return x
        step = np.zeros(x.size)
        step[on] = scipy.linalg.cho_solve(factor, force[on])
        now = self.miss(x)
        before = self.objective(x)
        for halved in range(HALVINGS):
            moved = x + step / 2**halved
            rounding = 4 * EPS * abs(before)
            falls = self.objective(moved) <= before + rounding
            if falls and (halved or self.miss(moved) < now):
                return np.asarray(moved)
        return x

    def _used(self, x: Array) -> Array:
        used = np.zeros(x.size)
        for place, norm in zip(self.penalty.places, self.penalty.norms(x), strict=True):
            used[place] = norm > 0
        return used


def minimize_block(e: Array, pull: Array, limit: float) -> Array:
    """Return argmin_v v'diag(e)v/2 - pull'v + limit |v|."""
    size = float(np.linalg.norm(pull))
    if size <= limit or not e.any():
        return np.zeros(pull.size)
    if limit == 0 or pull.size == 1:
        return np.asarray((pull - limit * pull / size) / e)

    def excess(norm: float) -> float:
        return float(np.linalg.norm(pull / (e * norm + limit))) - 1.0

    # The norm of the solution: excess falls from size / limit - 1 to below zero.
    most = (size - limit) / e.min() * (1 + ROUNDING) + ROUNDING
    norm = brentq(excess, 0.0, most, xtol=SMALLEST, rtol=4 * EPS)
    return np.asarray(pull / (e + limit / norm))


@one_thread()
def solve_group_step(H: Array, slopes: Array, penalty: GroupL1, b: Array) -> Array:
    """Minimize slopes'(x - b) + (x - b)'H(x - b)/2 + penalty(x)."""
    problem = _Problem(H, H @ b - slopes, penalty)
    tolerance = EXACT * float(np.abs(problem.score).max(initial=0.0))
    largest = float(np.diagonal(H).max(initial=0.0))
    x = b
    for _ in range(ROUNDS):
        x = problem.newton(problem.sweep(x))
        if problem.miss(x) <= tolerance + 4 * EPS * largest * float(np.abs(x).sum()):
            break
    return x
