"""A check, from losses far away, whether the rows bound the effects of single columns.

If all rows that have a column have the same response, the best coefficient is infinite; a step from
a shrunken model is not, and neither is its error. So the loss is evaluated far away on both sides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlasso.sites import LossesAt

if TYPE_CHECKING:
    from fedlasso.fitting.inference.debiased import Start
    from fedlasso.fitting.inference.estimates import Estimates
    from fedlasso.numerics import Array

# Models of one question.
SIDE_BY_SIDE = 200
# So many standard errors away, a parabola is 50 higher. The rows do not bound an effect if the loss
# is not even 0.5 higher there (a deviance of one) on one side; below 16, few rows do, and intervals
# would be too narrow. Standard errors are at most those of rows with this second derivative.
FAR = 10.0
UNBOUNDED_RISE = 0.5
FEW_ROWS_RISE = 16.0
LEAST_CURVATURE = 0.01


def check_bounded(start: Start, estimates: Estimates) -> Estimates:
    """Leave out columns whose effects few rows bound, or none."""
    columns = estimates.columns[estimates.identified]
    if start.problem.quadratic or not columns.size:
        return estimates
    return estimates.leave_out(columns[find_rises(start, columns) < FEW_ROWS_RISE])


def find_rises(start: Start, columns: NDArray[np.int64]) -> Array:
    """Return how much higher the loss is far away, on the lower side of each column.

    Unpenalised columns move along.
    """
    p = start.problem.p
    H = start.H
    kept = np.flatnonzero(start.problem.penalty.free(p))
    steps = np.eye(p)[:, columns]
    for step, j in zip(steps.T, columns, strict=True):
        others = kept[kept != j]
        step[others] = -np.linalg.lstsq(H[np.ix_(others, others)], H[others, j], rcond=None)[0]
    curvatures = np.maximum(np.einsum("ik,ik->k", steps, H @ steps), LEAST_CURVATURE)
    steps *= FAR * np.sqrt(start.dispersion / (start.problem.m * curvatures))
    points = start.b[:, None] + np.hstack([steps, -steps])
    parts = np.array_split(points, -(-points.shape[1] // SIDE_BY_SIDE), axis=1)
    losses = np.hstack([start.federation.total(LossesAt(part)).losses for part in parts])
    return np.asarray((losses.reshape(2, -1).min(axis=0) - start.loss) / start.dispersion)


def free_unbounded(start: Start) -> Start:
    """Return the same without a penalty on columns whose effects the rows do not bound."""
    free = start.problem.penalty.free(start.problem.p)
    columns = np.flatnonzero(~free & (np.diagonal(start.H) > 0))
    free[columns[find_rises(start, columns) < UNBOUNDED_RISE]] = True
    penalty = replace(start.problem.penalty, weights=np.where(free, 0.0, 1.0))
    return replace(start, problem=replace(start.problem, penalty=penalty))
