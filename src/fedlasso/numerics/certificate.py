"""How far a model is from the best possible objective, from sums that sites can add up."""

from dataclasses import dataclass

import numpy as np

from fedlasso.numerics.machine import Array
from fedlasso.numerics.penalties import ElasticNet, Penalty


@dataclass(frozen=True)
class Certificate:
    """How far a model can be from the pooled Lasso, known without pooling a record.

    Attributes
    ----------
    objective : F(b), the pooled objective
    gap : pooled duality gap: F(b) is at most this much above the smallest possible value

    Examples
    --------
    >>> from fedlasso import Certificate
    >>> print(Certificate(objective=2.0, gap=0.02))
    at most 1% above the best possible objective
    """

    objective: float
    gap: float

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the best possible objective."""
        best = self.objective - self.gap
        return self.gap / best if best > 0 else (0.0 if self.gap == 0 else float("inf"))

    def __str__(self) -> str:
        if not np.isfinite(self.relative_gap):
            return (
                "at an unknown distance from the best possible objective: no bound is known "
                "without a penalty"
            )
        return f"at most {100 * self.relative_gap:.2g}% above the best possible objective"


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

    Parameters
    ----------
    residual_ss, residual_y, y_ss : ||r||^2, r'y and ||y||^2 with r = y - Xb
    gradient : X'(Xb - y)/m
    b, penalty, m : the coefficients, what they pay and the number of records

    Notes
    -----
    The dual value of s r is (||y||^2 - ||y - s r||^2) / (2m), and s r is feasible up to the
    penalty's `dual_limit`. The s used is the best one in that interval. An elastic net is a Lasso
    with p more records, sqrt(m ridge) times the unit vectors, whose responses are zero.
    """
    primal = residual_ss / (2 * m) + penalty.value(b)
    if isinstance(penalty, ElasticNet):
        residual_ss += m * penalty.ridge * float(b @ b)
        gradient = gradient + penalty.ridge * b
    s = residual_y / residual_ss if residual_ss > 0 else 0.0
    limit = penalty.dual_limit(gradient)
    if abs(s) > limit:
        s = float(np.copysign(limit, s))
    # ||y||^2 - ||y - s r||^2 without forming y - s r
    dual = s * (2 * residual_y - s * residual_ss) / (2 * m)
    # s = 0 is always feasible and worth 0, and no dual value exceeds ||y||^2 / (2m)
    dual = min(max(dual, 0.0), y_ss / (2 * m))
    return max(primal - dual, 0.0)


def stationarity(b: Array, gradient: Array, penalty: Penalty) -> float:
    """Return ||b - prox(b - gradient)||_inf, zero exactly at a minimizer."""
    return float(np.abs(b - penalty.prox(b - gradient, 1.0)).max(initial=0.0))
