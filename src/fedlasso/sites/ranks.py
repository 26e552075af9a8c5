"""Pairs of rows in the right order: concordance, the area under the ROC curve, and their errors."""

import numpy as np

from fedlasso.numerics import Array, Response

# Rows that are compared with all others at once.
PAIR_BLOCK = 1000


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


def spread_pairs(comparable: Array, concordant: Array, value: float) -> float:
    """Return the sum of squares behind the standard error of a fraction of concordant pairs.

    Its root over the number of pairs is the infinitesimal jackknife's standard error.
    """
    return float(((concordant - value * comparable) ** 2).sum())
