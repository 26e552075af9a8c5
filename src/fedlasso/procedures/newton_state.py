"""Where a fit by Newton stands: its working set of columns, and how far from solved that is."""

from dataclasses import KW_ONLY

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation.messages import Whole
from fedlasso.numerics import Array, soft_threshold
from fedlasso.procedures.procedure import Problem, State

# Stands for what is not known yet: a state travels, and infinite numbers do not.
UNKNOWN = float(np.finfo(np.float64).max)


class NewtonState(State):
    """Where a fit stands.

    The best model b with its loss and gradient, which is known in the columns of A, and elsewhere
    as of the last look; H on A, of which the first `curved` columns are known; the model to try,
    how far along the step it lies, and what the step promises; a lower bound on the objective; how
    close A is to be solved; how far it is from that now, and was when H was asked for so many tries
    ago; whether corrections of H were found slow, how often nothing got better, and how often H was
    asked for anew because of that.
    """

    _: KW_ONLY
    A: Whole
    b: Array
    loss: float = UNKNOWN
    slopes: Array
    H: Array
    curved: int = 0
    trial: Array
    along: float = 1.0
    promise: float = 0.0
    low: float = -UNKNOWN
    aim: float
    miss: float = UNKNOWN
    first: float = UNKNOWN
    tries: int = 0
    slow: bool = False
    idle: int = 0
    stalls: int = 0
    step: str


def find_objective(problem: Problem, loss: float, b: Array) -> float:
    """Return the loss and the penalty."""
    return loss + problem.penalty.value(b)


def free_columns(problem: Problem) -> NDArray[np.int64]:
    """Return the columns that pay nothing."""
    return np.flatnonzero(problem.penalty.free(problem.p))


def free_places(problem: Problem, state: NewtonState) -> NDArray[np.int64]:
    """Return where in A the columns that pay nothing stand."""
    return np.flatnonzero(np.isin(state.A, free_columns(problem)))


def open_slopes(problem: Problem, b: Array, slopes: Array) -> Array:
    """Return slopes at b without those that lead a coefficient beyond the bound it stands at."""
    bounds = problem.penalty.bounds
    return slopes if bounds is None else -bounds.allowed(b, -slopes)


def smooth_part(problem: Problem, state: NewtonState) -> tuple[Array, Array, Array]:
    """Return gradient and second derivatives of the loss and the ridge on A, and what it pays."""
    on = state.A
    thresholds = problem.penalty.thresholds(problem.p)[on]
    slopes = state.slopes[on]
    H = state.H
    ridges = problem.penalty.smooth_part(problem.p)
    if ridges is not None:
        slopes = slopes + ridges[on] * state.b[on]
        H = H + np.diag(ridges[on])
    return slopes, H, thresholds


def find_miss(problem: Problem, state: NewtonState) -> float:
    """Return how far A is from being solved: the worst slope, as a share of the penalty."""
    slopes, _, thresholds = smooth_part(problem, state)
    b = state.b[state.A]
    wrong = np.where(b == 0, soft_threshold(slopes, thresholds), slopes + thresholds * np.sign(b))
    if (bounds := problem.penalty.bounds) is not None:
        wrong = bounds.part(state.A).allowed(b, -wrong)
    scale = problem.penalty.lam or float(np.abs(state.slopes).max(initial=0.0)) or 1.0
    return float(np.abs(wrong).max(initial=0.0)) / scale


def surely_falls(problem: Problem, state: NewtonState, slopes: Array) -> bool:
    """Tell whether the slopes at the trial prove that the objective is no higher there than at b.

    The loss is convex, so it lies above its tangent at the trial. Sums of losses are rounded
    more coarsely than that.
    """
    if state.loss == UNKNOWN:
        return False
    on = state.A
    back = float(slopes[on] @ (state.b - state.trial)[on])
    return back + problem.penalty.value(state.b) >= problem.penalty.value(state.trial)
