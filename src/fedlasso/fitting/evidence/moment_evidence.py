"""Evidence for least squares from second moments: one question answers for all folds and fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fedlasso.federation import Federation, Prepared, ask_together
from fedlasso.fitting.evidence.evidence import Evidence, PathPoint, Wanted
from fedlasso.numerics import Array, Penalty
from fedlasso.numerics.moment_path import solve_path
from fedlasso.numerics.moments import Moments, Normal, residuals
from fedlasso.numerics.triangles import unpack
from fedlasso.sites import FoldMoments, all_folds, count_numbers

# Penalty of a refit without shrinkage, as a fraction of the largest useful one: without any there
# is no duality gap to certify by.
REFIT = 1e-8
# Penalties on the way to a single one: nearly dependent columns need a good start.
WARM_STARTS = 20
# Beyond this many folds, prediction leaves out two at a time. Averaging over several assignments of
# folds to pairs, all from the same sums, depends less on chance.
PLENTY = 10
ASSIGNMENTS = 3


def vectors_of(p: int, folds: int) -> int:
    """Return the size of the second moments of all folds in vectors of p numbers, rounded up."""
    return -(-folds * count_numbers(p) // p)


@dataclass(frozen=True, eq=False)
class Folded(Evidence):
    """Moments of the folds of a cross-validation.

    Rows are named by the fold that they leave out: ``"0"`` is all rows but those of the first fold.

    Attributes
    ----------
    folds : the moments of every fold's rows
    centre, scale : how training rows are standardised
    seed : of the halves that the folds are cut into
    assignments : number of fold assignments in a row: every row is in as many folds
    split : name of the fold assignment, if no fold is empty
    """

    folds: tuple[Moments, ...]
    centre: bool = True
    scale: bool = True
    seed: int = 0
    assignments: int = 1
    split: str = ""

    @classmethod
    def ask(
        cls,
        view: Federation,
        folds: int,
        seed: int = 0,
        ask: Callable[[Sequence[Prepared]], tuple[Any, ...]] = ask_together,
        *,
        centre: bool,
        scale: bool,
    ) -> Folded:
        """Ask the sites for the second moments of every fold of their rows.

        `ask` may send another question first, in the same round trip.
        """
        question = view.prepare(FoldMoments(all_folds(folds, seed)))
        (total,) = ask([question])
        return cls.of_sums(total, len(view.columns), seed, centre=centre, scale=scale)

    @classmethod
    def of_sums(cls, total: Any, p: int, seed: int = 0, *, centre: bool, scale: bool) -> Folded:
        """Return the moments that the sites have sent for all folds of p columns."""
        moments = [Moments(unpack(packed, p + 2)) for packed in total.moments]
        folds = len(moments)
        split = all_folds(folds, seed)
        # With few rows a fold may be empty.
        filled = tuple(fold for fold in moments if fold.rows)
        return cls(filled, centre, scale, seed, split=split if len(filled) == folds else "")

    @cached_property
    def whole(self) -> Moments:
        """Moments of all rows."""
        return Moments(np.sum([fold.products for fold in self.folds], axis=0) / self.assignments)

    def paired(self) -> Folded:
        """Return the same rows in half as many folds, assigned several times, if folds are many."""
        count = len(self.folds)
        if count <= PLENTY:
            return self
        rng = np.random.default_rng(self.seed)
        orders = [rng.permutation(count) for _ in range(ASSIGNMENTS)]
        pairs = [pair for order in orders for pair in np.array_split(order, (count + 1) // 2)]
        sums = [np.sum([self.folds[k].products for k in pair], axis=0) for pair in pairs]
        return replace(self, folds=tuple(map(Moments, sums)), assignments=ASSIGNMENTS)

    @property
    def rows(self) -> Array:
        """Rows of every fold."""
        return np.array([float(fold.rows) for fold in self.folds])

    def normal(self, moments: Moments) -> Normal:
        """Return the normal equations of some rows, standardised by themselves."""
        return moments.normal(centre=self.centre, scale=self.scale)

    def training(self) -> Iterator[tuple[Moments, Normal]]:
        """Yield every fold, and the normal equations of the rows that are not in it."""
        for fold in self.folds:
            yield fold, self.normal(self.whole.without(fold))

    def fit_many(self, wanted: Sequence[Wanted]) -> tuple[PathPoint, ...]:
        """Make fits exactly, without another question."""
        points = []
        for one in wanted:
            own = self.whole.without(self.folds[int(one.rows)]) if one.rows else self.whole
            normal = self.normal(own)
            points.append(certify_point(normal, solve_at(normal, one.penalty), one.penalty))
        return tuple(points)


def certify_point(normal: Normal, b: Array, penalty: Penalty) -> PathPoint:
    """Certify a model by second moments."""
    (certificate,) = normal.certificates(b[:, None], [penalty])
    residual = normal.variance - 2 * float(b @ normal.score) + float(b @ normal.gram @ b)
    return PathPoint(penalty, b, normal.rows * max(residual, 0.0), certificate)


def solve_at(normal: Normal, penalty: Penalty) -> Array:
    """Return the Lasso at one penalty, by way of larger ones."""
    weights = np.ones(normal.p) if penalty.weights is None else penalty.weights
    own = normal.weighted(weights)
    lam = max(penalty.lam, REFIT * own.largest_penalty)
    grid = np.geomspace(max(own.largest_penalty, lam), lam, WARM_STARTS) if lam > 0 else np.zeros(1)
    b = solve_path(own, grid).lasso[:, -1]
    return np.divide(b, weights, out=np.zeros(b.size), where=b != 0)


def squared_error(rows: Moments, normal: Normal, b: Array) -> float:
    """Return the mean squared error of a model on some rows."""
    V = residuals(*normal.original(b[:, None]))
    return max(float(rows.between(V, V)[0]), 0.0) / rows.rows
