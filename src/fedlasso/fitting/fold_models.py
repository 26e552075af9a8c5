"""Models of the folds of a cross-validation, each fitted without the rows of its fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedlasso.numerics import Array
from fedlasso.sites import Scaling, all_folds


@dataclass(frozen=True, eq=False)
class FoldModels:
    """One model per fold of a split, on the columns' original scale.

    Attributes
    ----------
    split : name of the fold assignment
    coefficients : array (p, folds), without an intercept
    intercepts : array (folds,)
    """

    split: str
    coefficients: Array
    intercepts: Array

    @classmethod
    def of(cls, split: str, models: Sequence[tuple[Array, float]]) -> FoldModels:
        """Return models from their coefficients and intercepts."""
        intercepts = np.array([intercept for _, intercept in models])
        return cls(split, np.column_stack([b for b, _ in models]), intercepts)

    @classmethod
    def of_splits(
        cls, splits: Sequence[str], models: Sequence[tuple[Array, float]]
    ) -> FoldModels | None:
        """Return one model per split, if the splits are all folds of an assignment."""
        words = splits[0].split()
        if words[:1] != ["fold"] or int(words[3]) != len(splits):
            return None
        _, _, _, count, seed = words
        return cls.of(all_folds(int(count), int(seed)), models)

    @property
    def count(self) -> int:
        """Number of folds."""
        return len(self.intercepts)

    def on(self, scaling: Scaling) -> tuple[Array, Array]:
        """Return coefficients of a view's columns, and what to add to linear predictors there."""
        p = len(self.coefficients)
        factors = scaling.factors[:p, None]
        zero = np.zeros((len(scaling.factors), self.count))
        zero[:p] = np.divide(self.coefficients, factors, out=zero[:p].copy(), where=factors != 0)
        shifts = self.intercepts + scaling.means[:p] @ self.coefficients - scaling.y_mean
        return zero, shifts
