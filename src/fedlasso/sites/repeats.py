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
# A column is computed from another one, such as a spline, if it is a function of it that rises and
# falls by at most so many times its range, and by at most this multiple of the number of values.
# Unrelated values vary by a third of their number.
MOST_TURNS = 4.0
PER_VALUE = 1 / 8


def find_repeated(X: Array) -> float:
    """Return the fraction of rows that agree with another one in too many columns to be chance.

    Two rows agree in a column with a probability that its values show. If columns were independent,
    the agreements that are counted would be expected for one pair of all rows. Pairs that agree by
    chance do so in different columns, and repeated rows in the same. Of columns that are computed
    from one another, such as those of a spline, one is compared.
    """
    rows = min(len(X), MOST_ROWS)
    compared: list[NDArray[np.int64]] = []
    firsts: list[NDArray[np.int64]] = []
    pairs = []
    weights = []
    for column in X[:rows].T:
        _, first, numbers = np.unique(column, return_index=True, return_inverse=True)
        counts = np.bincount(numbers)
        agree = float(counts @ (counts - 1.0)) / max(rows * (rows - 1), 1)
        if not 0 < agree <= MANY_VALUED or len(compared) == MOST_COLUMNS:
            continue
        known = zip(compared, firsts, strict=True)
        if any(_computed(numbers, own, at) or _computed(own, numbers, first) for own, at in known):
            continue
        compared.append(numbers)
        firsts.append(first)
        order = np.argsort(numbers, kind="stable")
        # Rows with equal values are neighbours: pair each with the next one, the second next, ...
        for step in range(1, int(counts.max())):
            same = numbers[order[step:]] == numbers[order[:-step]]
            one, other = order[:-step][same], order[step:][same]
            pairs.append(np.minimum(one, other) * rows + np.maximum(one, other))
            weights.append(np.full(len(one), -np.log(agree)))
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


def _computed(ranks: NDArray[np.int64], other: NDArray[np.int64], first: NDArray[np.int64]) -> bool:
    """Return whether values follow smoothly from those of another column.

    Both are given by their ranks, and the other one's values also by their first rows.
    """
    along = ranks[first]
    if not np.array_equal(along[other], ranks):
        return False
    turns = np.abs(np.diff(along)).sum() / max(int(along.max()), 1)
    return bool(turns <= min(MOST_TURNS, PER_VALUE * len(along)))
