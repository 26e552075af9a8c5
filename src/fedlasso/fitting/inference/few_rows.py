"""A check, from sums over batches, whether a few rows far from the others decide an inference.

Such rows are often errors: a wrong unit, a misplaced decimal point. If they do not follow the
model, neither rates nor levels hold, and standard errors from batches do not mend that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedlasso.federation import total_together
from fedlasso.fitting.inference.estimates import CANNOT_PROMISE
from fedlasso.sites import CLEARLY, BatchSlopes

if TYPE_CHECKING:
    from fedlasso.fitting.inference.debiased import Start
    from fedlasso.numerics import Array
    from fedlasso.numerics.response import Places
    from fedlasso.sites.inference import BatchSums

# Columns that are looked at: at the fit, and at each of some far models.
MOST_COLUMNS = 200
FAR_COLUMNS = 50
FAR_MODELS = 3
# Residuals of a far model, over those of the fit: there the noise does not matter.
FAR_RESIDUALS = 30.0
# Rows far from the others fit badly if variances of slopes exceed those of the model by so much, in
# the average column.
MISFIT = 0.1
# They decide the fit if squared products of two columns are so many times those of normal columns.
DISTANT = 3.5
FEW_ROWS = (
    f"{CANNOT_PROMISE} a few rows far from the others {{}}; check these data for wrong values and "
    "units"
)


def ask_rows(start: Start, seed: int) -> tuple[BatchSums, str]:
    """Return variances of slopes in batches of rows, and what a few rows far from the others do.

    That is empty if there is no such sign. Only least squares has far models: their residuals are
    random combinations of the columns. Rows far from the others then have large slopes in all
    columns, so that slopes vary more than second derivatives imply.
    """
    p = start.problem.p
    H = start.H
    sizes = np.diagonal(H)
    used = np.flatnonzero(~start.problem.penalty.free(p) & (sizes > 0))
    federation = start.federation
    if not (start.problem.quadratic and used.size and start.dispersion > 0):
        return federation.total(BatchSlopes(start.b, np.eye(p, 1))), ""
    near = _spread(used, MOST_COLUMNS)
    apart = _spread(used, FAR_COLUMNS)
    steps = np.zeros((p, FAR_MODELS))
    steps[used] = np.random.default_rng(seed).standard_normal((used.size, FAR_MODELS))
    steps *= FAR_RESIDUALS * np.sqrt(start.dispersion / np.einsum("ik,ik->k", steps, H @ steps))
    questions = [BatchSlopes(start.b, np.eye(p)[:, near])]
    questions += [BatchSlopes(start.b + step, np.eye(p)[:, apart]) for step in steps.T]
    sums, *far = total_together([(federation, question) for question in questions])
    if sums.clusters or not sums.degrees:
        return sums, ""
    residuals = start.dispersion * FAR_RESIDUALS**2
    squares = (H[apart] @ steps) ** 2 / (sizes[apart, None] * residuals)
    distances = [_average(own, residuals) for own in far]
    distance = float(np.mean(distances / (1 + squares.mean(axis=0))))
    left = 1 - start.active / start.problem.m
    misfit = _average(sums, start.dispersion * left) - 1
    # Of a mean over columns that are correlated, and over rows whose distances vary.
    correlations = H[np.ix_(near, near)] / np.sqrt(np.outer(sizes[near], sizes[near]))
    variance = 2 * float((correlations**2).mean()) / sums.degrees
    variance += 3 * max(distance - 1, 0.0) / start.problem.m
    if distance > DISTANT:
        return sums, "decide the estimates"
    if misfit > max(MISFIT, CLEARLY * np.sqrt(variance)):
        return sums, "do not follow the model"
    return sums, ""


def _spread(places: Places, most: int) -> Places:
    """Return at most so many places, evenly spread."""
    picked: Places = places[np.linspace(0, places.size - 1, min(most, places.size)).astype(int)]
    return picked


def _average(sums: BatchSums, residuals: float) -> float:
    """Return variances of slopes over those of equal squared residuals, of the average column."""
    of_model: Array = residuals * sums.curvatures
    known = of_model > 0
    return float((sums.variances[known] / of_model[known]).mean()) if known.any() else 1.0
