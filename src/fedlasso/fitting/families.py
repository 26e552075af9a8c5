"""Families of models from second moments: Lasso and adaptive Lasso, each relaxed.

All of them are judged by one cross-validation, whose folds are sums that the server adds up; the
chosen one is then fitted to all rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedlasso.numerics import L1, Array, ElasticNet
from fedlasso.numerics.moment_path import solve_path
from fedlasso.numerics.moments import Moments, Normal, residuals

# Shares of the Lasso's shrinkage that a relaxed fit keeps; one is the Lasso itself.
BLENDS = (1.0, 0.75, 0.5, 0.25, 0.0)
PENALTIES = 100
# The last penalty as a share of the first, where rows outnumber columns and where they do not.
RATIO_MANY_ROWS = 1e-4
RATIO_FEW_ROWS = 1e-2
# Penalties below the grid are tried while the best is the last, down to this share of the first.
SMALLEST_RATIO = 1e-6
# Errors beyond this many times the response's squares are all alike.
HOPELESS = 1e6


@dataclass(frozen=True, eq=False)
class Folded:
    """Moments of the folds of one or more deals of the same rows.

    Attributes
    ----------
    deals : for each deal, the moments of its folds
    centre, scale : how training rows are standardised
    """

    deals: tuple[tuple[Moments, ...], ...]
    centre: bool = True
    scale: bool = True

    @property
    def whole(self) -> Moments:
        """Moments of all rows."""
        return Moments(sum(fold.products for fold in self.deals[0]))  # type: ignore[arg-type]

    def normal(self, moments: Moments) -> Normal:
        """Return the normal equations of some rows, standardised by themselves."""
        return moments.normal(centre=self.centre, scale=self.scale)


@dataclass(frozen=True)
class Family:
    """A kind of Lasso: what each coefficient pays, by the rows that train, and a ridge penalty."""

    name: str
    weigh: Callable[[Normal], Array | None] = lambda normal: None
    ridge: float = 0.0

    def adapt(self, normal: Normal) -> Normal:
        """Return normal equations in which this family is a Lasso."""
        weights = self.weigh(normal)
        steady = normal.steadied(self.ridge) if self.ridge else normal
        return steady if weights is None else steady.weighted(weights)

    def penalty(self, lam: float, weights: Array | None) -> L1:
        """Return what the family's coefficients pay at one strength."""
        return ElasticNet(lam, weights, self.ridge) if self.ridge else L1(lam, weights)


def adaptive_weights(normal: Normal) -> Array:
    """One over the size of the least squares coefficients: the adaptive Lasso of Zou (2006)."""
    return 1.0 / np.maximum(np.abs(normal.least_squares), 1e-10)


LASSO = Family("Lasso")
ADAPTIVE = Family("adaptive Lasso", adaptive_weights)
ELASTIC = Family("elastic net", ridge=0.01)


@dataclass(frozen=True, eq=False)
class Judged:
    """Cross-validated errors of one family at every share of shrinkage and penalty.

    Attributes
    ----------
    penalties : array (L,)
    error, se : arrays (shares, L): mean over the deals, and the standard error of one deal
    """

    family: Family
    penalties: Array
    error: Array
    se: Array

    @property
    def best(self) -> tuple[int, int]:
        """Share and penalty with the smallest error; a tie goes to the larger penalty."""
        share, at = np.unravel_index(int(np.argmin(self.error)), self.error.shape)
        return int(share), int(at)


def judge(folded: Folded, family: Family, shares: int = len(BLENDS)) -> Judged:
    """Cross-validate a family over penalties that reach beyond the one with the smallest error."""
    whole = folded.normal(folded.whole)
    largest = family.adapt(whole).largest_penalty
    decades = -np.log10(RATIO_MANY_ROWS if whole.rows > whole.p else RATIO_FEW_ROWS)
    per_decade = (PENALTIES - 1) / decades
    while True:
        count = round(per_decade * decades) + 1
        penalties = largest * np.logspace(0.0, -decades, count)
        judged = Judged(family, penalties, *_cross_validate(folded, family, penalties, shares))
        decades += 1
        if judged.best[1] < count - 1 or 10.0**-decades < SMALLEST_RATIO:
            return judged


def _cross_validate(
    folded: Folded, family: Family, penalties: Array, shares: int
) -> tuple[Array, Array]:
    errors = []
    spreads = []
    for deal in folded.deals:
        sums = np.array(list(_fold_errors(folded, deal, family, penalties)))[:, :shares]
        rows = np.array([fold.rows for fold in deal], dtype=np.float64)
        error = sums.sum(axis=0) / rows.sum()
        each = sums / rows[:, None, None]
        share = rows / rows.sum()
        spread = np.tensordot(share, (each - error) ** 2, axes=1)
        errors.append(error)
        spreads.append(np.sqrt(spread / (len(deal) - 1)))
    return np.mean(errors, axis=0), np.mean(spreads, axis=0)


def _fold_errors(
    folded: Folded, deal: Sequence[Moments], family: Family, penalties: Array
) -> Iterator[Array]:
    """Sums of squared errors on every fold, of models of the other folds: (shares, L) each."""
    whole = folded.whole
    for fold in deal:
        normal = family.adapt(folded.normal(whole.without(fold)))
        path = solve_path(normal, penalties)
        lasso = residuals(*normal.original(path.lasso))
        refit = residuals(*normal.original(path.refits))
        squares = fold.between(lasso, lasso), fold.between(lasso, refit), fold.between(refit, refit)
        sums = [
            g**2 * squares[0] + 2 * g * (1 - g) * squares[1] + (1 - g) ** 2 * squares[2]
            for g in BLENDS
        ]
        yield np.clip(sums, 0.0, HOPELESS * fold.products[-1, -1])
