"""Rows that look repeated, such as several visits of one patient."""

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics import Array

# Rows look repeated if this fraction of them does.
MANY_REPEATED = 0.2
# Rows and columns that are compared.
MOST_ROWS = 2000
MOST_COLUMNS = 50
# Two rows have the same value of a many-valued column with at most this probability.
MANY_VALUED = 0.05
# Repeated rows agree in this many such columns or more, most of them in the same ones.
AGREEING = 3
MOSTLY = 0.5


def find_repeated(X: Array) -> float:
    """Return the fraction of rows that agree with another one in too many columns to be chance.

    Two rows agree in a column with a probability that its values show. If columns were independent,
    the agreements that are counted would be expected for one pair of all rows. Pairs that agree by
    chance do so in different columns, and repeated rows in the same.
    """
    rows = min(len(X), MOST_ROWS)
    compared: list[NDArray[np.int64]] = []
    pairs = []
    weights = []
    for column in X[:rows].T:
        numbers = np.unique(column, return_inverse=True)[1]
        counts = np.bincount(numbers)
        agree = float(counts @ (counts - 1.0)) / max(rows * (rows - 1), 1)
        if not 0 < agree <= MANY_VALUED or len(compared) == MOST_COLUMNS:
            continue
        compared.append(numbers)
        order = np.argsort(numbers, kind="stable")
        # Rows with equal values are neighbours: pair each with the next one, the second next, ...
        for step in range(1, int(counts.max())):
            same = numbers[order[step:]] == numbers[order[:-step]]
            first, second = order[:-step][same], order[step:][same]
            pairs.append(np.minimum(first, second) * rows + np.maximum(first, second))
            weights.append(np.full(len(first), -np.log(agree)))
    if len(compared) < AGREEING:
        return 0.0
    keys, place = np.unique(np.concatenate(pairs), return_inverse=True)
    surprise = np.bincount(place, np.concatenate(weights))
    likely = (np.bincount(place) >= AGREEING) & (surprise > np.log(rows * (rows - 1) / 2))
    one, other = np.divmod(keys[likely], rows)
    values = np.array(compared)
    alike = (values[:, one] == values[:, other]).mean(axis=1) if one.size else np.zeros(1)
    if (alike >= MOSTLY).sum() < AGREEING:
        return 0.0
    return len(np.unique([one, other])) / rows
