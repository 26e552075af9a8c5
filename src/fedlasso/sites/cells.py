"""Cells of rows that answers are sums over: ranks of a prediction, and intervals of time.

The coordinator chooses models, so it could move single rows over any cut of its own. Therefore
ranks are cut by the number of rows alone, times on a grid of powers of two, and cumulative sums
are rounded to what more than one row adds: two answers that differ by one row disclose no row.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from fedlasso.numerics import Array

# Minimum rows of a cell, and of each class behind a measure.
CELL_ROWS = 5
# Twentieths of the risk; at sites with few rows each cell covers several.
SLOTS = 20
# Cumulative sums are multiples of so many standard deviations of a row, and of so many events.
ROW_STEP = 3.0
EVENT_STEP = 2.0
# Groups of the risk for survival curves, intervals of time, and their minimum length in a site's
# mean times.
THIRDS = 3
STRETCHES = 40
TIME_FLOOR = 1 / 64
# Rows of a text level by default, and the first of the numbers that a coordinator may ask for.
LEVEL_ROWS = 10
# Predictions nearer than this fraction of the largest are equal.
TIES = 2.0**-30


def rank_ends(rows: int, cells: int) -> Array:
    """Return the ranks at which so many cells end; zero first."""
    return np.rint(rows * np.arange(cells + 1) / cells)


def count_cells(rows: int, least: int) -> int:
    """Return the most cells, by which `SLOTS` can be divided, with at least so many rows each."""
    fit = [k for k in range(1, SLOTS + 1) if SLOTS % k == 0 and rows >= k * least]
    return max(fit, default=1)


def weigh_ranks(scores: Array, ends: Array) -> Iterator[Array]:
    """Yield for every cell of ranks how much of each row it has.

    Rows with equal scores are in the cells of their ranks alike, so that no order of theirs counts.
    """
    width = TIES * (float(np.abs(scores).max(initial=0.0)) or 1.0)
    _, place, counts = np.unique(np.rint(scores / width), return_inverse=True, return_counts=True)
    above = np.cumsum(counts)
    below = above - counts
    for start, end in pairwise(ends):
        within = np.minimum(above, end) - np.maximum(below, start)
        yield (np.maximum(within, 0) / counts)[place]


def round_sums(sums: Array, sizes: Array, values: Array) -> Array:
    """Round the sums over cells of ranks of some rows' values; that over all rows remains.

    Cumulative sums are rounded less what as many rows have on average, so that neither shifted nor
    scaled values are rounded differently.
    """
    step = ROW_STEP * float(np.std(values))
    if (values == np.rint(values)).all():
        step = max(step, EVENT_STEP)
    if step <= 0:
        return sums
    trend = np.cumsum(sizes) / sizes.sum() * sums.sum()
    below = np.rint((np.cumsum(sums) - trend) / step) * step + trend
    return np.asarray(np.diff(below, prepend=0.0))


def round_counts(counts: Array, step: float, most: Array, whole: bool = True) -> Array:
    """Round cumulative counts of cells to multiples of a step, and return the cells again.

    No cell counts more than `most`. If `whole`, the sum over all cells remains as it is.
    """
    if step <= 0:
        return counts
    below = np.rint(np.cumsum(counts) / step) * step
    if whole:
        below[-1] = counts.sum()
    for k in range(len(below)):
        below[k] = min(below[k], (below[k - 1] if k else 0.0) + most[k])
    for k in range(len(below) - 2, -1, -1):
        below[k] = np.clip(below[k], below[k + 1] - most[k + 1], below[k + 1])
    return np.asarray(np.diff(below, prepend=0.0))


def even(counts: Array) -> Array:
    """Return the largest multiples of the step of events that are no larger than some counts."""
    return counts - counts % EVENT_STEP if EVENT_STEP > 0 else counts


def time_width(length: float) -> float:
    """Return the power of two that is the length of intervals of about this length."""
    return float(2.0 ** np.ceil(np.log2(max(length, 1e-30))))


def place_times(times: Array, length: float) -> Any:
    """Return the interval, closed above, of each time; those below a site's floor are joined."""
    width = time_width(length)
    joined = max(width, time_width(TIME_FLOOR * float(times.mean())))
    # Rows of joined intervals are in the last one.
    last = np.ceil(times / joined) * (joined / width) - 1
    return np.clip(last, 0, STRETCHES - 1).astype(np.int64)


def floor_times(asked: Array, times: Array) -> Array:
    """Return times on the grid of a site whose rows have some times, no later than asked."""
    width = time_width(TIME_FLOOR * float(times.mean()))
    return np.asarray(np.floor(asked / width) * width)


def join_events(counts: Any, least: int) -> Any:
    """Return for every number of event times passed the last at which `least` more have passed."""
    full = np.append(0, np.cumsum(counts) // least)
    return np.searchsorted(full, full, side="left")


def withholds(counts: Iterable[int]) -> bool:
    """Return whether sites' numbers of rows are withheld, because some site has few."""
    return any(0 < count < CELL_ROWS for count in counts)


def level_rows(asked: int) -> int:
    """Return the rows that a text level needs: beyond the default, the next of 20, 40, 80, ...

    With any number a coordinator could find the rows of every level at a site.
    """
    rows = asked
    if asked > LEVEL_ROWS:
        rows = LEVEL_ROWS
        while rows < asked:
            rows *= 2
    return rows
