"""Records and the moments of their folds, for tests that compare the two."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlasso.fitting import GOALS, Rule
from fedlasso.fitting.evidence import Folded
from fedlasso.fitting.tuning import Chosen
from fedlasso.numerics import Array
from fedlasso.numerics.moments import Moments


@dataclass(frozen=True, eq=False)
class Records:
    """Rows, the fold of each, and what a cross-validation makes of them."""

    X: Array
    y: Array
    fold: Array

    @property
    def folded(self) -> Folded:
        """The moments of the folds."""
        parts = [np.flatnonzero(self.fold == k) for k in np.unique(self.fold)]
        A = np.column_stack([np.ones(len(self.y)), self.X, self.y])
        return Folded(tuple(Moments(A[rows].T @ A[rows]) for rows in parts))

    @property
    def standard(self) -> "Records":
        """The same rows with columns that are centred and scaled, and a centred response."""
        Z = (self.X - self.X.mean(axis=0)) / self.X.std(axis=0)
        return Records(Z, self.y - self.y.mean(), self.fold)

    def splits(self) -> "Iterator[tuple[Records, Records]]":
        """The rows without a fold, and that fold."""
        for k in np.unique(self.fold):
            yield self.take(self.fold != k), self.take(self.fold == k)

    def take(self, rows: "Array | NDArray[np.bool_]") -> "Records":
        """Some of the rows."""
        return Records(self.X[rows], self.y[rows], self.fold[rows])


def choose(folded: Folded, goal: str, rule: Rule) -> Chosen:
    """What a goal chooses."""
    return GOALS[goal].choose(folded, rule)


def draw_records(
    seed: int, m: int = 60, p: int = 8, folds: int = 5, noise: float = 1.0, active: int = 3
) -> Records:
    """Correlated columns, a few of which matter, and folds of nearly equal size."""
    rng = np.random.default_rng([seed, m, p])
    X = rng.standard_normal((m, p)) + 0.7 * rng.standard_normal((m, 1))
    X = X * rng.uniform(0.5, 3, p) + rng.standard_normal(p)
    b = np.zeros(p)
    b[:active] = rng.choice([-1.0, 1.0], active) * rng.uniform(0.5, 2, active)
    y = X @ b + noise * rng.standard_normal(m) + 4
    return Records(X, y, rng.permutation(np.arange(m) % folds))
