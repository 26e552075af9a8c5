"""Bounds on how far a model is from the pooled optimum, computed from sums over sites."""

from dataclasses import dataclass

import numpy as np

from fedlasso.numerics.machine import Array
from fedlasso.numerics.penalties import Penalty

# Bounds assume that unpenalised coefficients are within REACH * (1 + abs(b)) of their optimum. If
# columns separate the classes, that is infinite, but the objective is as close to its infimum.
REACH = 100.0
# Smaller relative bounds are printed as this one.
NEXT_TO_NOTHING = 1e-8


@dataclass(frozen=True)
class Certificate:
    """A bound on the distance of a model from the pooled optimum, without pooling records.

    Attributes
    ----------
    objective : F(b), the pooled objective
    gap : pooled duality gap, an upper bound on F(b) - min F; infinite if no bound is known
    stationary : for a penalty without a duality gap, such as a non-convex one, the distance from a
        stationary point, as a fraction of the penalty's strength

    Examples
    --------
    >>> from fedlasso import Certificate
    >>> print(Certificate(objective=2.0, gap=0.02))
    at most 1% above the best possible objective
    """

    objective: float
    gap: float
    stationary: float | None = None

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the best possible objective."""
        best = self.objective - self.gap
        return self.gap / best if best > 0 else (0.0 if self.gap == 0 else float("inf"))

    def reaches(self, tol: float, finest: float = 0.0) -> bool:
        """Return whether the relative gap is at most `tol`, but for `finest`, the gap of rounding.

        For a penalty without a duality gap, whether the model is stationary to within `tol`.
        """
        if self.stationary is not None:
            return self.stationary <= tol
        beyond = self.gap - finest
        return beyond <= 0 or beyond <= tol * (self.objective - self.gap)

    def __str__(self) -> str:
        if self.stationary is not None:
            return (
                f"{_percent(self.stationary)} of the penalty's strength away from a stationary "
                "point, with no bound on the distance to the global optimum: the penalty has no "
                "duality gap"
            )
        if not np.isfinite(self.relative_gap):
            return (
                "at an unknown distance from the best possible objective: no bound is known "
                "without a penalty"
            )
        return f"{_percent(self.relative_gap)} above the best possible objective"


def _percent(fraction: float) -> str:
    if fraction < NEXT_TO_NOTHING:
        return "less than 0.000001%"
    rounded = float(f"{100 * fraction:.2g}")
    return f"at most {np.format_float_positional(rounded, trim='-')}%"


def duality_gap(
    rss: float, residual_y: float, y_ss: float, gradient: Array, b: Array, penalty: Penalty, m: int
) -> float:
    """Return an upper bound on F(b) - min F for least squares, F = ||y - Xb||^2 / (2m) + penalty.

    With r = y - Xb, it follows from rss = ||r||^2, r'y, ||y||^2 and the gradient, -X'r/m.

    The dual value of s r is (||y||^2 - ||y - s r||^2) / (2m), and s r is feasible up to the
    penalty's `dual_limit`. The s used is the best one in that interval. An elastic net is a Lasso
    with p more records, sqrt(m ridge) times the unit vectors, whose responses are zero. With
    bounds s is the `feasible_scale`, as for any loss.
    """
    primal = rss / (2 * m) + penalty.value(b)
    if not penalty.unbounded:
        s = feasible_scale(b, gradient, penalty)
        dual = s * (2 * residual_y - s * rss) / (2 * m)
        return min(certify_loss(rss / (2 * m), dual, b, gradient, penalty).gap, primal)
    ridges = penalty.smooth_part(b.size)
    if ridges is not None:
        rss += m * float(ridges @ (b * b))
        gradient = gradient + ridges * b
        penalty = penalty.nonsmooth
    gradient, slack = settle_slopes(b, gradient, penalty)
    s = residual_y / rss if rss > 0 else 0.0
    limit = penalty.dual_limit(gradient if s >= 0 else -gradient)
    if abs(s) > limit:
        s = float(np.copysign(limit, s))
    # ||y||^2 - ||y - s r||^2 without forming y - s r
    dual = s * (2 * residual_y - s * rss) / (2 * m)
    # s = 0 is always feasible with dual value 0, and no dual value exceeds ||y||^2 / (2m)
    dual = min(max(dual, 0.0), y_ss / (2 * m))
    return min(max(primal - dual, 0.0) + slack, primal)


def settle_slopes(b: Array, gradient: Array, penalty: Penalty) -> tuple[Array, float]:
    """Return the gradient with zero slopes for unpenalised coefficients, and what that costs.

    Dual feasibility needs those slopes to be exactly zero. Their remainder at b can lower the
    objective by at most itself times the distance to the optimum, which `REACH` or a bound limits:
    the second number.
    """
    free = penalty.free(b.size)
    left = np.abs(gradient[free])
    settled = np.where(free, 0.0, gradient)
    bounds = penalty.bounds
    if bounds is None:
        return settled, REACH * float(left @ (1 + np.abs(b[free])))
    end = np.abs(bounds.toward(-gradient)[free])
    reach = np.where(np.isfinite(end), end, REACH * (1 + np.abs(b[free])))
    return settled, float(left @ reach)


def feasible_scale(b: Array, gradient: Array, penalty: Penalty) -> float:
    """Return the factor, at most one, that makes the slopes at b dual feasible for a smooth loss.

    A slope above its threshold costs in proportion to the distance to the bound. So only
    coefficients that are at their bound, or unpenalised, may have such slopes.
    """
    settled, _ = settle_slopes(b, gradient, penalty)
    limit = penalty.dual_limit(settled)
    if penalty.bounds is not None:
        pull = penalty.bounds.allowed(b, -settled)
        penalised = np.where(penalty.thresholds(b.size) > 0, pull, 0.0)
        limit = min(limit, penalty.without_bounds().dual_limit(-penalised))
    return min(1.0, limit)


def certify_loss(
    loss: float, dual: float, b: Array, gradient: Array, penalty: Penalty
) -> Certificate:
    """Return the certificate of b for any smooth loss, F = loss + penalty, from its gradient.

    `dual` is the mean dual value of the slopes at b times their `feasible_scale`.
    """
    objective = loss + penalty.value(b)
    settled, slack = settle_slopes(b, gradient, penalty)
    low = dual - penalty.conjugate(-feasible_scale(b, gradient, penalty) * settled) - slack
    return Certificate(objective, max(objective - low, 0.0))


def certify_stationary(loss: float, b: Array, gradient: Array, penalty: Penalty) -> Certificate:
    """Return a certificate of stationarity, for penalties that have no duality gap."""
    distance = stationarity(b, gradient, penalty) / (penalty.strength or 1.0)
    return Certificate(loss + penalty.value(b), np.inf, distance)


def stationarity(b: Array, gradient: Array, penalty: Penalty) -> float:
    """Return ||b - prox(b - gradient)||_inf, zero exactly at a stationary point."""
    return float(np.abs(b - penalty.prox(b - gradient, 1.0)).max(initial=0.0))
