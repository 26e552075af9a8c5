"""The one walk down a list of penalties, and the rules that end it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from fedlasso.numerics import Array

P = TypeVar("P")
# A path ends after this many fits in a row that do not lower the error.
PATH_PATIENCE = 4
# Held-out errors at the penalties so far.
Errors = Sequence[float] | Array


def walk_down(
    penalties: Iterable[P], visit: Callable[[P], Errors | None], ended: Callable[[Errors], bool]
) -> bool:
    """Visit decreasing penalties, or blocks of them; return whether uploads ran out.

    `visit` returns the held-out errors so far, or None out of uploads; `ended` stops by them.
    """
    for penalty in penalties:
        errors = visit(penalty)
        if errors is None:
            return True
        if ended(errors):
            break
    return False


def has_risen(errors: Errors, patience: int = PATH_PATIENCE) -> bool:
    """Return whether the last errors, as many as `patience`, are all above the smallest."""
    return min(errors) < min(errors[-patience:])


def log_grid(largest: float, count: int, ratio: float) -> Array:
    """Return penalties from the largest one down to a fraction of it, log-spaced."""
    return np.asarray(largest * np.logspace(0, np.log10(ratio), count))


def go_below(grid: Array, smallest: float) -> Iterator[float]:
    """Yield the penalties of a grid, then more in its steps, down to a fraction of the first."""
    yield from grid.tolist()
    step = float(grid[1] / grid[0]) if grid[0] > 0 else 0.0
    lam = float(grid[-1]) * step
    while lam > smallest * grid[0]:
        yield lam
        lam *= step


def step_down(lam: float, step: float, ratio: float) -> Iterator[float]:
    """Yield penalties in steps down to a fraction of the first, which is the last."""
    smallest = ratio * lam
    yield lam
    while lam > smallest:
        lam = max(lam * step, smallest)
        yield lam


def grid_and_decades(largest: float, count: int, ratio: float, smallest: float) -> Iterator[Array]:
    """Yield a whole grid as one block, and then one decade of penalties at a time."""
    decade = round((count - 1) / -np.log10(ratio))
    yield largest * np.geomspace(1.0, ratio, count)
    ratio /= 10
    while ratio >= smallest:
        yield largest * np.geomspace(10 * ratio, ratio, decade + 1)[1:]
        ratio /= 10
