r"""Discoveries by data splitting (Dai, Lin, Xing and Liu 2022): a rival of the goal 'discoveries'.

The Lasso on half of the rows selects columns, least squares on the rest tests them. The mirror
statistic :math:`M_j = \operatorname{sign}(b_j^A b_j^B) (|b_j^A| + |b_j^B|)` of a null column is
symmetric about zero, so the number below a negative threshold estimates how many of those above the
positive one are false. Several splits are combined by their inclusion rates.
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

# The first half's path runs from lambda.max down to RATIO times that, and ends after RISES
# penalties without a new smallest error.
PENALTIES = 50
RATIO = 0.01
RISES = 5


@one_thread()
def split_rows(folded: Folded, times: int) -> Array:
    """Return the mirror statistics of all columns, an array (times, p)."""
    return np.array([mirror(*halves) for halves in cut_in_two(folded, times)])


def cut_in_two(folded: Folded, times: int) -> Iterator[tuple[Folded, Moments]]:
    """Yield random halves: the folds of the first, and the moments of the second."""
    rng = np.random.default_rng(folded.seed)
    count = len(folded.folds)
    for _ in range(times):
        order = rng.permutation(count)
        first = replace(folded, folds=tuple(folded.folds[k] for k in order[: count // 2]))
        yield first, folded.whole.without(first.whole)


def mirror(first: Folded, second: Moments) -> Array:
    """Return the mirror statistics of one split."""
    a = choose_columns(first)
    b = fit_columns(first, second, a)
    # Columns beyond what the second half can fit have b = 0 and count as not selected.
    return np.asarray(np.sign(a * b) * (np.abs(a) + np.abs(b)))


def choose_columns(first: Folded) -> Array:
    """Return the Lasso on the first half at lambda.min of its folds."""
    whole = first.normal(first.whole)
    penalties = whole.largest_penalty * np.geomspace(1.0, RATIO, PENALTIES)
    walks = [(fold, Walk(normal)) for fold, normal in first.training()]
    errors: list[float] = []

    def visit(lam: float) -> list[float]:
        error = 0.0
        for fold, walk in walks:
            path = walk.follow(np.array([lam]))
            V = residuals(*walk.normal.original(path.lasso))
            error += float(fold.between(V, V)[0])
        errors.append(error)
        return errors

    walk_down(penalties, visit, partial(has_risen, patience=RISES))
    path = Walk(whole).follow(penalties[: int(np.argmin(errors)) + 1])
    return whole.original(path.lasso[:, -1])[0]


def fit_columns(first: Folded, second: Moments, chosen: Array) -> Array:
    """Return least squares on the second half, on the largest columns up to half its rows."""
    normal = first.normal(second)
    largest = np.argsort(-np.abs(chosen), kind="stable")[: normal.rows // 2]
    places = largest[chosen[largest] != 0]
    b = np.zeros(normal.p)
    if places.size:
        gram = normal.gram[np.ix_(places, places)]
        b[places] = np.linalg.lstsq(gram, normal.score[places], rcond=None)[0]
    return normal.original(b)[0]


def select_above(mirrors: Array, rate: float) -> NDArray[np.bool_]:
    """Return the columns above the smallest threshold whose estimated FDP is at most `rate`."""
    thresholds = np.sort(np.append(0.0, np.abs(mirrors)))
    below = np.array([(mirrors < -threshold).sum() for threshold in thresholds])
    above = np.array([(mirrors > threshold).sum() for threshold in thresholds])
    # Nothing lies beyond the largest threshold, so at least one passes.
    passed = below <= rate * np.maximum(above, 1)
    return np.asarray(mirrors > thresholds[int(np.argmax(passed))])


def inclusion_rates(selected: NDArray[np.bool_]) -> Array:
    """Return each column's mean over splits of selected / number selected."""
    counts = np.maximum(selected.sum(axis=1, keepdims=True), 1)
    return np.asarray((selected / counts).mean(axis=0))


def combine_splits(selected: NDArray[np.bool_], rate: float) -> NDArray[np.bool_]:
    """Return the columns that several splits select together, from an array (splits, p).

    Columns with the smallest inclusion rates are left out, as many as sum to at most the rate.
    """
    inclusion = inclusion_rates(selected)
    ranked = np.sort(inclusion)
    left_out = int((np.cumsum(ranked) <= rate).sum())
    threshold = ranked[left_out - 1] if left_out else 0.0
    return np.asarray(inclusion > threshold)
