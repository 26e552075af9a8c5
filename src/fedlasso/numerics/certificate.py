"""How far a model is from the best possible objective, from sums that sites can add up."""

from dataclasses import dataclass

import numpy as np

from fedlasso.numerics.machine import Array
from fedlasso.numerics.penalties import Penalty

# A bound holds against all models whose coefficients that pay nothing are off by up to so many
# times their size and one: with columns that separate the classes the best ones are infinite.
REACH = 1e4
# A bound that is a smaller share of the objective is told as this one.
NEXT_TO_NOTHING = 1e-8


@dataclass(frozen=True)
class Certificate:
    """How far a model can be from the pooled optimum, known without pooling a record.

    Attributes
    ----------
    objective : F(b), the pooled objective
    gap : pooled duality gap: F(b) is at most this much above the smallest possible value; infinite
        where no bound is known
    stationary : for a penalty without a duality gap, such as a non-convex one, how far the model is
        from a stationary point, as a fraction of the penalty's strength

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
        """The gap as a share of the best possible objective."""
        best = self.objective - self.gap
        return self.gap / best if best > 0 else (0.0 if self.gap == 0 else float("inf"))

    def reaches(self, tol: float, finest: float = 0.0) -> bool:
        """Return whether it proves a relative gap of `tol`, or a gap that rounding may leave.

        Without a duality gap, whether the model is a stationary point to that tolerance.
        """
        if self.stationary is not None:
            return self.stationary <= tol
        return self.relative_gap <= tol or self.gap <= finest

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
    """Return a bound as a percentage with two digits, without powers of ten."""
    if fraction < NEXT_TO_NOTHING:
        return "less than 0.000001%"
    rounded = float(f"{100 * fraction:.2g}")
    return f"at most {np.format_float_positional(rounded, trim='-')}%"


def duality_gap(
    residual_ss: float,
    residual_y: float,
    y_ss: float,
    gradient: Array,
    b: Array,
    penalty: Penalty,
    m: int,
) -> float:
    """Bound F(b) - min F from above for least squares, F(b) = ||y - Xb||^2 / (2m) + penalty(b).

    With r = y - Xb, it is known from ||r||^2, r'y, ||y||^2 and the gradient, -X'r/m.

    Notes
    -----
    The dual value of s r is (||y||^2 - ||y - s r||^2) / (2m), and s r is feasible up to the
    penalty's `dual_limit`. The s used is the best one in that interval. An elastic net is a Lasso
    with p more records, sqrt(m ridge) times the unit vectors, whose responses are zero. With
    bounds s is the `feasible_scale`, as for any loss.
    """
    primal = residual_ss / (2 * m) + penalty.value(b)
    if not penalty.unbounded:
        s = feasible_scale(b, gradient, penalty)
        dual = s * (2 * residual_y - s * residual_ss) / (2 * m)
        found = certify_loss(residual_ss / (2 * m), dual, b, gradient, penalty)
        return min(found.gap, primal)
    ridges = penalty.smooth_part(b.size)
    if ridges is not None:
        residual_ss += m * float(ridges @ (b * b))
        gradient = gradient + ridges * b
        penalty = penalty.nonsmooth
    gradient, slack = settle_slopes(b, gradient, penalty)
    s = residual_y / residual_ss if residual_ss > 0 else 0.0
    limit = penalty.dual_limit(gradient if s >= 0 else -gradient)
    if abs(s) > limit:
        s = float(np.copysign(limit, s))
    # ||y||^2 - ||y - s r||^2 without forming y - s r
    dual = s * (2 * residual_y - s * residual_ss) / (2 * m)
    # s = 0 is always feasible and worth 0, and no dual value exceeds ||y||^2 / (2m)
    dual = min(max(dual, 0.0), y_ss / (2 * m))
    return min(max(primal - dual, 0.0) + slack, primal)


def settle_slopes(b: Array, gradient: Array, penalty: Penalty) -> tuple[Array, float]:
    """Return a gradient without the slopes of coefficients that pay nothing, and what that costs.

    Those coefficients have no dual slack: their slopes must be zero. What is left of them at a
    model in which they are solved for can lower the objective by no more than itself times how far
    they may be off, the second number. Toward a bound they can go no further than that. Without
    any penalty nothing is claimed.
    """
    if penalty.lam == 0.0:
        return gradient, 0.0
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
    """Return how far the slopes at b must be scaled down to be feasible for any smooth loss.

    A slope that pushes a coefficient beyond what it pays costs as much as its bound is far. So only
    coefficients that stand at the bound, or pay nothing, may have such slopes.
    """
    settled, _ = settle_slopes(b, gradient, penalty)
    limit = penalty.dual_limit(settled)
    if penalty.bounds is not None:
        pull = penalty.bounds.allowed(b, -settled)
        paying = np.where(penalty.thresholds(b.size) > 0, pull, 0.0)
        limit = min(limit, penalty.without_bounds().dual_limit(-paying))
    return min(1.0, limit)


def certify_loss(
    loss: float, dual: float, b: Array, gradient: Array, penalty: Penalty
) -> Certificate:
    """Certify a model of any smooth loss, F(b) = loss + penalty(b), given the gradient of the loss.

    `dual` is the mean dual value of the slopes at b times their `feasible_scale`.
    """
    objective = loss + penalty.value(b)
    settled, slack = settle_slopes(b, gradient, penalty)
    scale = feasible_scale(b, gradient, penalty)
    low = dual - penalty.conjugate(-scale * settled) - slack
    return Certificate(objective, max(objective - low, 0.0))


def certify_stationary(loss: float, b: Array, gradient: Array, penalty: Penalty) -> Certificate:
    """Certify a model whose penalty has no duality gap: only that it is a stationary point."""
    distance = stationarity(b, gradient, penalty) / (penalty.strength or 1.0)
    return Certificate(loss + penalty.value(b), np.inf, distance)


def stationarity(b: Array, gradient: Array, penalty: Penalty) -> float:
    """Return ||b - prox(b - gradient)||_inf, zero exactly at a stationary point."""
    return float(np.abs(b - penalty.prox(b - gradient, 1.0)).max(initial=0.0))
