"""Pairs of rows in the right order: concordance, the area under the ROC curve, and their errors."""

from typing import Any

import numpy as np

from fedlasso.numerics import Array, Response

# Rows that are compared with all others at once.
PAIR_BLOCK = 1000
# Rows that may be distinguished in a count.
FEWEST = 5


def survival_pairs(eta: Array, response: Response) -> tuple[Array, Array]:
    """Return every row's comparable pairs, whose earlier time is an event, and concordant ones.

    Equal linear predictors count half (Harrell). A pair counts for both of its rows.
    """
    times = response.times
    comparable = np.zeros(len(eta))
    concordant = np.zeros(len(eta))
    events = np.flatnonzero(response.events)
    for at in range(0, len(events), PAIR_BLOCK):
        own = events[at : at + PAIR_BLOCK]
        later = times[None, :] > times[own, None]
        # Of an event and a censoring at the same time, the censored row is the later one.
        later |= (times[None, :] == times[own, None]) & ~response.events[None, :]
        right = later * (0.5 + 0.5 * np.sign(eta[own, None] - eta[None, :]))
        comparable[own] += later.sum(axis=1)
        comparable += later.sum(axis=0)
        concordant[own] += right.sum(axis=1)
        concordant += right.sum(axis=0)
    return comparable, concordant


def class_pairs(eta: Array, y: Array) -> tuple[Array, Array]:
    """Return every row's pairs with rows of the other class, and those in the right order."""
    ones = y == 1
    comparable = np.where(ones, float((~ones).sum()), float(ones.sum()))
    concordant = np.empty(len(eta))
    for own, sign in ((ones, 1.0), (~ones, -1.0)):
        others = np.sort(sign * eta[~own])
        mine = sign * eta[own]
        both = np.searchsorted(others, mine, "left") + np.searchsorted(others, mine, "right")
        concordant[own] = both / 2
    return comparable, concordant


def count_pairs(eta: Array, response: Response) -> tuple[float, float]:
    """Count comparable pairs of survival times, and concordant ones."""
    comparable, concordant = survival_pairs(eta, response)
    return float(comparable.sum()) / 2, float(concordant.sum()) / 2


def concordance_error(value: float, pairs: float, squares: Any) -> float:
    """Return the standard error of a fraction of concordant pairs, by the infinitesimal jackknife.

    `squares` are sums over rows of n^2, n c and c^2, for n comparable and c concordant pairs.
    """
    nn, nc, cc = squares
    return float(np.sqrt(max(cc - 2 * value * nc + value**2 * nn, 0.0))) / max(pairs, 1.0)


def square_pairs(comparable: Array, concordant: Array) -> Array:
    """Return the sums of squares and products that `concordance_error` takes."""
    return np.array(
        [comparable @ comparable, comparable @ concordant, concordant @ concordant], np.float64
    )


def join_few(counts: Array) -> Any:
    """Return where each cell is counted, so that each has no rows or `FEWEST` and more.

    Neighbours are joined from the first cell on, and counted at their middle row.
    """
    place = np.arange(len(counts))
    groups: list[list[int]] = [[]]
    held = 0.0
    for k in np.flatnonzero(counts):
        groups[-1].append(int(k))
        held += counts[k]
        if held >= FEWEST:
            groups.append([])
            held = 0.0
    left = groups.pop()
    if left and groups:
        groups[-1] += left
    elif left:
        groups.append(left)
    for group in groups:
        below = np.cumsum(counts[group])
        place[group] = group[int(np.searchsorted(below, below[-1] / 2))]
    return place
