"""Groups of nearly collinear columns, and discoveries among columns and groups.

Rows may show that one of several nearly collinear columns has an effect, but not which. Such
columns are discovered as a group, the smallest one that is probable enough (Spector and Janson
2024 call this resolution-adaptive). A group is false if none of its columns has an effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from fedlasso.numerics import Array
from fedlasso.numerics.spike_slab import BURN_IN, DRAWS, FDR_MARGIN, Posterior

# All columns of a group are correlated at least so much.
COLLINEAR = 0.9
# Smallest probabilities of a discovered column, and of a group in every run of the sampler: there
# a wrong prior does more harm.
FLOOR = 0.5
GROUP_FLOOR = 0.95
# If runs of the sampler differ more in a column's probability, the smallest one is used.
DISAGREE = 0.25


@dataclass(frozen=True)
class Group:
    """Nearly collinear columns, and the posterior probability that one or more have an effect.

    `main` is the most probable one; it represents the group in the model.
    """

    columns: tuple[int, ...]
    probability: float
    main: int

    def move(self, to: NDArray[np.int64]) -> Group:
        """Return the group with the indices that its columns have elsewhere."""
        columns = tuple(to[list(self.columns)].tolist())
        return replace(self, columns=columns, main=int(to[self.main]))

    def temper(self, ratio: float) -> Group:
        """Return the group with the logarithm of its odds divided by a ratio above one.

        Draws show no odds above their number.
        """
        if ratio == 1.0:
            return self
        most = 1.0 - 1.0 / (DRAWS - BURN_IN)
        return replace(self, probability=float(expit(logit(min(self.probability, most)) / ratio)))


def correlate(H: Array) -> Array:
    """Return absolute correlations of the columns, with zeros on the diagonal."""
    sizes = np.sqrt(np.diagonal(H))
    scale = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    near: Array = np.abs(H * np.outer(scale, scale))
    np.fill_diagonal(near, 0.0)
    return near


def spread_starts(H: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return effects from which runs of the sampler start: b, zero, and b's closest columns.

    One run alone may stay with some of several interchangeable columns.
    """
    near = correlate(H)
    moved = np.zeros_like(b)
    for k in np.flatnonzero(b):
        to = int(near[k].argmax())
        if near[k, to] > 0:
            moved[to] += b[k] * H[k, to] / H[to, to]
    return b, np.zeros_like(b), moved


def lower(runs: Array) -> Array:
    """Return the mean over runs, or the minimum where they disagree, along the first axis."""
    least, most = runs.min(axis=0), runs.max(axis=0)
    return np.asarray(np.where(most - least > DISAGREE, least, runs.mean(axis=0)))


def find_groups(H: Array, runs: Sequence[Posterior]) -> tuple[Group, ...]:
    """Return probable groups, if more probable than each of their parts, the smaller ones first.

    They come from complete linkage of the columns, by the absolute correlations in H. A group's
    probability is the smallest of all runs of the sampler.
    """
    near = correlate(H)
    some = np.flatnonzero(near.max(axis=0, initial=0.0) >= COLLINEAR)
    if not some.size:
        return ()
    # A tenth of all imports of a fit, and rarely used.
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    apart = np.maximum(1.0 - near[np.ix_(some, some)], 0.0)
    np.fill_diagonal(apart, 0.0)
    each = lower(np.array([run.probabilities for run in runs]))
    drawn = np.array([run.drawn for run in runs])
    # The columns of every node, its draws by run, and the largest probability of its parts.
    nodes: list[tuple[tuple[int, ...], NDArray[np.bool_], float]]
    nodes = [((int(k),), drawn[:, :, k], float(each[k])) for k in some]
    groups = []
    for left, right, height, _ in linkage(squareform(apart, checks=False), "complete"):
        if height > 1.0 - COLLINEAR:
            break
        one, other = nodes[int(left)], nodes[int(right)]
        columns = tuple(sorted(one[0] + other[0]))
        together = one[1] | other[1]
        parts = max(one[2], other[2])
        probability = float(together.mean(axis=1).min())
        nodes.append((columns, together, max(probability, parts)))
        if probability >= GROUP_FLOOR and probability > parts:
            main = max(columns, key=lambda k: each[k])
            groups.append(Group(columns, probability, main))
    return tuple(sorted(groups, key=lambda group: len(group.columns)))


def discover(
    probabilities: Array, groups: Sequence[Group], rate: float
) -> tuple[NDArray[np.bool_], tuple[Group, ...]]:
    """Return the discovered columns, and the discovered groups without such columns.

    A column or group is discovered if it is at least as probable as a limit and no part of it is.
    The limit is the smallest one, and FLOOR at least, at which the expected proportion of false
    discoveries is at most FDR_MARGIN * rate, among the columns and among columns and groups.
    """
    each = np.append(probabilities, [group.probability for group in groups])
    for limit in np.unique(each[each >= FLOOR]):
        columns = probabilities >= limit
        covered = columns.copy()
        found = []
        for group in groups:
            own = list(group.columns)
            if group.probability >= limit and not covered[own].any():
                found.append(group)
                covered[own] = True
        alone = 1 - probabilities[columns]
        every = np.append(alone, [1 - group.probability for group in found])
        if all(own.sum() <= FDR_MARGIN * rate * own.size for own in (alone, every)):
            return columns, tuple(found)
    return np.zeros(probabilities.size, dtype=bool), ()
