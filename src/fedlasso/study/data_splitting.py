r"""Discoveries by splitting the rows in two: the method that debiased estimates are compared with.

The Lasso of one half of the rows chooses columns, and least squares on the other half judges them
(Dai, Lin, Xing and Liu 2022). A column that does not matter is as likely to come out with two signs
as with one, so its mirror statistic

.. math:: M_j = \operatorname{sign}(b_j^A b_j^B) (|b_j^A| + |b_j^B|)

is as often far below zero as far above. Columns above a bar are found, and those as far below zero
tell how many of them are false. Several splits are combined by how often each one finds a column.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fedlasso.fitting.evidence import Folded
from fedlasso.fitting.paths import has_risen, walk_down
from fedlasso.numerics import Array, one_thread
from fedlasso.numerics.moment_path import Walk
from fedlasso.numerics.moments import Moments, residuals

# Penalties of the first half from the largest useful one down to this share of it; the path ends
# once the error has not been the smallest so many times.
PENALTIES = 50
RATIO = 0.01
RISES = 5


@one_thread()
def split_rows(folded: Folded, times: int) -> Array:
    """Return the mirror statistics of all columns, an array (times, p): split after split."""
    return np.array([mirror(*halves) for halves in cut_in_two(folded, times)])


def cut_in_two(folded: Folded, times: int) -> Iterator[tuple[Folded, Moments]]:
    """Cut the folds into halves at random: the folds of the first, and all rows of the second."""
    rng = np.random.default_rng(folded.seed)
    count = len(folded.folds)
    for _ in range(times):
        order = rng.permutation(count)
        first = replace(folded, folds=tuple(folded.folds[k] for k in order[: count // 2]))
        yield first, folded.whole.without(first.whole)


def mirror(first: Folded, second: Moments) -> Array:
    """Return the mirror statistics of one split."""
    chosen = choose_columns(first)
    judged = fit_columns(first, second, chosen)
    # Columns that the second half has no room for count as not chosen.
    return np.asarray(np.sign(chosen * judged) * (np.abs(chosen) + np.abs(judged)))


def choose_columns(first: Folded) -> Array:
    """Return the Lasso of the first half, at the penalty with the smallest error on its folds."""
    whole = first.normal(first.whole)
    penalties = whole.largest_penalty * np.geomspace(1.0, RATIO, PENALTIES)
    walks = [(fold, Walk(normal)) for fold, normal in first.training()]
    errors: list[float] = []

    def visit(lam: float) -> list[float]:
        errors.append(sum(_error(fold, walk, lam) for fold, walk in walks))
        return errors

    walk_down(penalties, visit, partial(has_risen, patience=RISES))
    path = Walk(whole).follow(penalties[: int(np.argmin(errors)) + 1])
    return whole.original(path.lasso[:, -1])[0]


def _error(fold: Moments, walk: Walk, lam: float) -> float:
    """The squared error on a fold at the next penalty of a path."""
    path = walk.follow(np.array([lam]))
    V = residuals(*walk.normal.original(path.lasso))
    return float(fold.between(V, V)[0])


def fit_columns(first: Folded, second: Moments, chosen: Array) -> Array:
    """Return least squares of the chosen columns on the second half.

    If those are more than half of its rows, the largest ones alone.
    """
    normal = first.normal(second)
    most = normal.rows // 2
    largest = np.argsort(-np.abs(chosen), kind="stable")[:most]
    places = largest[chosen[largest] != 0]
    b = np.zeros(normal.p)
    if places.size:
        gram = normal.gram[np.ix_(places, places)]
        b[places] = np.linalg.lstsq(gram, normal.score[places], rcond=None)[0]
    return normal.original(b)[0]


def find_above(mirrors: Array, rate: float) -> NDArray[np.bool_]:
    """Return which columns one split finds at a false discovery rate.

    The bar is the lowest one below whose mirror image there are few enough columns.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.study.data_splitting import find_above
    >>> find_above(np.array([5.0, 4.0, 3.0, 1.0, -2.0, 0.0]), 0.2)
    array([ True,  True,  True, False, False, False])
    """
    bars = np.sort(np.append(0.0, np.abs(mirrors)))
    below = np.array([(mirrors < -bar).sum() for bar in bars])
    above = np.array([(mirrors > bar).sum() for bar in bars])
    # The largest bar has nothing beyond it, so one always passes.
    passed = below <= rate * np.maximum(above, 1)
    return np.asarray(mirrors > bars[int(np.argmax(passed))])


def combine_splits(found: NDArray[np.bool_], rate: float) -> NDArray[np.bool_]:
    """Return which columns several splits find together, from an array (splits, p).

    A column's share is the mean of one over the number of columns found, over the splits that find
    it. Columns with the smallest shares are left out, as many as have a sum of at most the rate.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.study.data_splitting import combine_splits
    >>> combine_splits(np.array([[True, True, False], [True, False, False]]), 0.3)
    array([ True, False, False])
    """
    counts = np.maximum(found.sum(axis=1, keepdims=True), 1)
    shares = (found / counts).mean(axis=0)
    ranked = np.sort(shares)
    left_out = int((np.cumsum(ranked) <= rate).sum())
    bar = ranked[left_out - 1] if left_out else 0.0
    return np.asarray(shares > bar)
