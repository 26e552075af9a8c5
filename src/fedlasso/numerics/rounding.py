"""What counts as rounding: the one rule by which a coefficient has moved or stands still.

A coefficient is computed from sums whose terms are as large as the fitted values that the
coefficients make. What moves it by no more than a few roundings of such a sum is no progress:
without this rule an iteration that has arrived trembles in its last digits, and whether it ever
repeats itself is luck of a draw and of a processor.
"""

import numpy as np

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.compiled import compiled

# Four roundings of the sum of absolute contributions, which itself is far above the usual sum.
ROUNDING = 2.0**-50


@compiled
def total_size(base: float, units: Array, b: Array) -> float:
    """Return base + sum_k units_k |b_k|: how large the sums behind a coefficient can be."""
    total = base
    for k in range(b.size):
        total += units[k] * abs(b[k])
    return total


@compiled
def moved(new: float, old: float, unit: float, size: float) -> bool:
    """Whether a coefficient moved by more than rounding; a NaN has moved."""
    return not abs(new - old) * unit <= ROUNDING * size


def settle(new: Array, old: Array) -> Array:
    """Return the columns of `new`, where a coefficient that has not moved keeps its old bits.

    The server knows neither responses nor the scales of columns, so a model's size is the sum of
    its absolute coefficients.
    """
    size = np.abs(new).sum(axis=0)
    return np.where(np.abs(new - old) <= ROUNDING * size, old, new)
