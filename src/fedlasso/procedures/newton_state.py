"""The state of a fit by Newton: its working set of columns, and how accurately it is solved."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation.messages import Whole
from fedlasso.numerics import Array, soft_threshold
from fedlasso.procedures.procedure import Problem, State

# Marks an unknown value: messages carry finite numbers only.
UNKNOWN = float(np.finfo(np.float64).max)


def free_columns(problem: Problem) -> NDArray[np.int64]:
    return np.flatnonzero(problem.penalty.free(problem.p))


def open_slopes(problem: Problem, b: Array, slopes: Array) -> Array:
    """Return the slopes at b, with zeros where a coefficient is at its bound and held there."""
    bounds = problem.penalty.bounds
    return slopes if bounds is None else -bounds.allowed(b, -slopes)


class NewtonState(State):
    """The state of a fit."""

    _: KW_ONLY
    A: Whole  # working set of columns
    b: Array  # best model
    loss: float = UNKNOWN  # at b
    slopes: Array  # gradient at b; outside A as of the last look
    H: Array  # approximate Hessian on A
    curved: int = 0  # how many columns of A, the first ones, H has
    trial: Array  # model to try
    along: float = 1.0  # fraction of the step that the trial takes
    promise: float = 0.0  # predicted decrease of the full step
    low: float = -UNKNOWN  # lower bound on the objective
    aim: float  # tolerance on A
    miss: float = UNKNOWN  # current error on A
    first: float = UNKNOWN  # error on A when H was requested
    tries: int = 0  # trials since then
    slow: bool = False  # whether updates of H converged slowly
    idle: int = 0  # rounds without progress
    stalls: int = 0  # how often H was requested again because of that
    step: str  # kind of the next round

    def free_places(self, problem: Problem) -> NDArray[np.int64]:
        """Return the positions in A of the unpenalised columns."""
        return np.flatnonzero(np.isin(self.A, free_columns(problem)))

    def leave_out_zeros(self, problem: Problem) -> NewtonState:
        """Return the state without columns of A that are zero and likely to stay zero.

        A large working set makes gradients and second derivatives costly.
        """
        if self.curved != self.A.size:
            return self
        thresholds = problem.penalty.thresholds(problem.p)
        used = (self.b != 0) | (np.abs(self.slopes) >= thresholds)
        kept = np.flatnonzero(used[self.A])
        H = np.ascontiguousarray(self.H[np.ix_(kept, kept)])
        return replace(self, A=self.A[kept], H=H, curved=kept.size)

    def smooth_part(self, problem: Problem) -> tuple[Array, Array, Array]:
        """Return gradient and Hessian of loss and ridge on A, and the soft thresholds."""
        on = self.A
        thresholds = problem.penalty.thresholds(problem.p)[on]
        slopes, H = self.slopes[on], self.H
        ridges = problem.penalty.smooth_part(problem.p)
        if ridges is not None:
            slopes = slopes + ridges[on] * self.b[on]
            H = H + np.diag(ridges[on])
        return slopes, H, thresholds

    def find_miss(self, problem: Problem) -> float:
        """Return the error on A: the largest violation of a slope, as a fraction of the penalty."""
        slopes, _, lams = self.smooth_part(problem)
        b = self.b[self.A]
        wrong = np.where(b == 0, soft_threshold(slopes, lams), slopes + lams * np.sign(b))
        if (bounds := problem.penalty.bounds) is not None:
            wrong = bounds.part(self.A).allowed(b, -wrong)
        scale = problem.penalty.lam or float(np.abs(self.slopes).max(initial=0.0)) or 1.0
        return float(np.abs(wrong).max(initial=0.0)) / scale

    def surely_falls(self, problem: Problem, slopes: Array) -> bool:
        """Return whether the slopes at the trial prove that its objective is no higher than b's.

        The loss is convex, so it lies above its tangent at the trial. This test is more accurate
        than the difference of two rounded sums of losses.
        """
        if self.loss == UNKNOWN:
            return False
        on = self.A
        back = float(slopes[on] @ (self.b - self.trial)[on])
        return back + problem.penalty.value(self.b) >= problem.penalty.value(self.trial)
