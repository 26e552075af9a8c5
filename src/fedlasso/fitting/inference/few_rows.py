"""A check, from sums over batches, whether a few rows far from the others decide an inference.

Such rows are often errors: a wrong unit, a misplaced decimal point. If they do not follow the
model, neither rates nor levels hold, and standard errors from batches do not mend that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedlasso.federation import total_together
from fedlasso.sites import CLEARLY, BatchSlopes

if TYPE_CHECKING:
    from fedlasso.fitting.inference.debiased import Start
    from fedlasso.numerics import Array
    from fedlasso.sites.inference import BatchSums

# Columns that are looked at.
MOST_COLUMNS = 200
# Residuals of a far model, over those of the fit: there the noise does not matter.
FAR_RESIDUALS = 30.0
# Rows far from the others fit badly if variances of slopes exceed those of the model by so much, in
# the average column.
MISFIT = 0.1
# They decide the fit if squared products of two columns are so many times those of normal columns.
DISTANT = 6.0
FEW_ROWS = (
    "cannot promise the false discovery rate or the level of intervals here: a few rows far from "
    "the others {}; check these data for wrong values and units"
)


def ask_rows(start: Start, seed: int) -> tuple[BatchSums, str]:
    """Return variances of slopes in batches of rows, and what a few rows far from the others do.

    That is empty if there is no such sign. Only least squares has a far model: its residuals are a
    random combination of the columns. Rows far from the others then have large slopes in all
    columns, so their squares in batches vary more than the second derivatives imply.
    """
    p = start.problem.p
    H = start.H
    sizes = np.diagonal(H)
    used = np.flatnonzero(~start.problem.penalty.free(p) & (sizes > 0))
    if used.size > MOST_COLUMNS:
        used = used[np.linspace(0, used.size - 1, MOST_COLUMNS).astype(int)]
    if not used.size:
        used = np.arange(1)
    columns = np.eye(p)[:, used]
    near = BatchSlopes(start.b, columns)
    federation = start.federation
    if not start.problem.quadratic:
        return federation.total(near), ""
    direction = np.zeros(p)
    direction[used] = np.random.default_rng(seed).standard_normal(used.size)
    length = float(direction @ H @ direction)
    step = FAR_RESIDUALS * np.sqrt(start.dispersion / length) if length > 0 else 0.0
    far = BatchSlopes(start.b + step * direction, columns)
    sums, apart = total_together([(federation, near), (federation, far)])
    if sums.clusters or not (length > 0 and sums.degrees and start.dispersion > 0):
        return sums, ""
    correlations = H[np.ix_(used, used)] / np.sqrt(np.outer(sizes[used], sizes[used]))
    squares = (H[used] @ direction) ** 2 / (sizes[used] * length)
    distance = _average(apart, step**2 * length) / float(1 + squares.mean())
    left = 1 - start.active / start.problem.m
    misfit = _average(sums, start.dispersion * left) - 1
    # Of a mean over columns that are correlated, and over rows whose distances vary.
    variance = 2 * float((correlations**2).mean()) / sums.degrees
    variance += 3 * max(distance - 1, 0.0) / start.problem.m
    if distance > DISTANT:
        return sums, "decide the estimates"
    if misfit > max(MISFIT, CLEARLY * np.sqrt(variance)):
        return sums, "do not follow the model"
    return sums, ""


def _average(sums: BatchSums, residuals: float) -> float:
    """Return variances of slopes over those of equal squared residuals, of the average column."""
    of_model: Array = residuals * sums.curvatures
    known = of_model > 0
    return float((sums.variances[known] / of_model[known]).mean()) if known.any() else 1.0
