"""Adjusted p-values as textbooks define them, one at a time."""

import numpy as np

from fedlasso.numerics import Array


def benjamini_hochberg(p_values: Array) -> Array:
    """The smallest rate at which each would be found, by trying all thresholds."""
    count = p_values.size
    out = np.ones(count)
    for i in range(count):
        rates = [
            threshold * count / (p_values <= threshold).sum()
            for threshold in p_values
            if threshold >= p_values[i]
        ]
        out[i] = min(1.0, *rates, 1.0)
    return out


def holm(p_values: Array) -> Array:
    """Step by step from the smallest: each is multiplied by how many are left."""
    order = sorted(range(p_values.size), key=lambda i: p_values[i])
    out = np.ones(p_values.size)
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, p_values[i] * (p_values.size - rank))
        out[i] = min(largest, 1.0)
    return out
