"""Families of models from second moments: Lasso, elastic net and adaptive Lasso, each relaxed.

All of them are judged by one cross-validation, whose folds are sums that the server adds up; the
chosen one is then fitted to all rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedlasso.numerics import L1, Array, ElasticNet
from fedlasso.numerics.moment_path import Walk, solve_path
from fedlasso.numerics.moments import Moments, Normal, residuals

# Shares of the Lasso's shrinkage that a relaxed fit keeps; one is the Lasso itself. Without any,
# a refit of nearly dependent columns predicts badly now and then.
BLENDS = (1.0, 0.75, 0.5, 0.25)
PENALTIES = 100
# The last penalty as a share of the first, where rows outnumber columns and where they do not.
RATIO_MANY_ROWS = 1e-4
RATIO_FEW_ROWS = 1e-2
# Penalties below the grid are tried while the best is the last, down to this share of the first.
SMALLEST_RATIO = 1e-6
# A family is taken instead of the plain Lasso when it is better by this many standard errors of
# the difference, fold by fold.
SURE = 2.0
# What a refit without shrinkage still pays, as a share of the largest useful penalty: without any
# there is no duality gap to certify by.
REFIT = 1e-8
# Penalties on the way to a single one: nearly dependent columns need a good start.
STEPS = 20
# Where there are more folds than this, prediction leaves out two at a time: in half as many folds,
# dealt anew from the same sums so many times, there is less luck.
PLENTY = 10
DEALS = 3
# Errors beyond this many times the response's squares are all alike.
HOPELESS = 1e6


@dataclass(frozen=True, eq=False)
class Folded:
    """Moments of the folds of a cross-validation.

    Attributes
    ----------
    folds : the moments of every fold's rows
    centre, scale : how training rows are standardised
    seed : of the halves that the folds are cut into
    deals : how many cross-validations these are, one after another: every row is in as many folds
    """

    folds: tuple[Moments, ...]
    centre: bool = True
    scale: bool = True
    seed: int = 0
    deals: int = 1

    @cached_property
    def whole(self) -> Moments:
        """Moments of all rows."""
        return Moments(np.sum([fold.products for fold in self.folds], axis=0) / self.deals)

    def paired(self) -> "Folded":
        """Return the same rows in half as many folds, in several deals, where folds are plenty."""
        count = len(self.folds)
        if count <= PLENTY:
            return self
        rng = np.random.default_rng(self.seed)
        deals = [rng.permutation(count) for _ in range(DEALS)]
        halved = (count + 1) // 2
        pairs = [pair for deal in deals for pair in np.array_split(deal, halved)]
        sums = [np.sum([self.folds[k].products for k in pair], axis=0) for pair in pairs]
        return replace(self, folds=tuple(map(Moments, sums)), deals=DEALS)

    @property
    def rows(self) -> Array:
        """Rows of every fold."""
        return np.array([float(fold.rows) for fold in self.folds])

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


def adaptive(lam: float) -> Family:
    """Return the adaptive Lasso of Zou (2006), with weights from the Lasso at one penalty."""

    def weigh(normal: Normal) -> Array:
        b = np.abs(solve_at(normal, L1(lam)))
        return np.where(b > 0, 1.0 / np.maximum(b, np.finfo(np.float64).tiny), np.inf)

    return Family("adaptive Lasso", weigh)


def solve_at(normal: Normal, penalty: L1) -> Array:
    """Return the Lasso at one penalty, by way of larger ones."""
    weights = np.ones(normal.p) if penalty.weights is None else penalty.weights
    own = normal.weighted(weights)
    lam = max(penalty.lam, REFIT * own.largest_penalty)
    grid = np.geomspace(max(own.largest_penalty, lam), lam, STEPS) if lam > 0 else np.zeros(1)
    b = solve_path(own, grid).lasso[:, -1]
    return np.divide(b, weights, out=np.zeros(b.size), where=b != 0)


LASSO = Family("Lasso")
ELASTIC = Family("elastic net", ridge=0.01)


@dataclass(frozen=True, eq=False)
class Judged:
    """Cross-validated errors of one family at every share of shrinkage and penalty.

    Attributes
    ----------
    penalties : array (L,)
    each : array (folds, shares, L): mean squared error on every fold
    rows : array (folds,): their rows
    deals : how many cross-validations these are
    """

    family: Family
    penalties: Array
    each: Array
    rows: Array
    deals: int = 1

    def average(self, each: Array) -> tuple[Array, Array]:
        """Return the mean over all rows and its standard error, by the mean on every fold."""
        return average(each, self.rows, self.deals)

    @cached_property
    def error(self) -> Array:
        """Mean squared errors, an array (shares, L)."""
        return self.average(self.each)[0]

    @cached_property
    def se(self) -> Array:
        """The standard errors of those."""
        return self.average(self.each)[1]

    @property
    def limit(self) -> float:
        """The smallest unrelaxed error and one standard error."""
        best = int(np.argmin(self.error[0]))
        return float(self.error[0, best] + self.se[0, best])

    @property
    def sparsest(self) -> int:
        """Place of the largest penalty whose unrelaxed error is within one standard error."""
        return int(np.flatnonzero(self.error[0] <= self.limit)[0])

    def largest_within(self, share: float) -> int:
        """Place of the largest penalty whose unrelaxed error exceeds the smallest by this share."""
        error = self.error[0]
        return int(np.flatnonzero(error <= error.min() * (1 + share))[0])

    @property
    def best(self) -> tuple[int, int]:
        """Share and penalty with the smallest error; a tie goes to the larger penalty.

        A relaxed fit takes no larger penalty than the sparsest within one standard error: the few
        columns of a larger one are too often not those of other rows.
        """
        allowed = self.error.copy()
        allowed[1:, : self.sparsest] = np.inf
        share, at = np.unravel_index(int(np.argmin(allowed)), allowed.shape)
        return int(share), int(at)


def judge(folded: Folded, family: Family, shares: int = len(BLENDS)) -> Judged:
    """Cross-validate a family over penalties that reach beyond the one with the smallest error."""
    whole = folded.normal(folded.whole)
    largest = family.adapt(whole).largest_penalty
    ratio = RATIO_MANY_ROWS if whole.rows > whole.p else RATIO_FEW_ROWS
    decade = round((PENALTIES - 1) / -np.log10(ratio))
    walks = [(fold, Walk(family.adapt(normal))) for fold, normal in training(folded)]
    penalties = np.empty(0)
    each = np.empty((len(walks), shares, 0))
    further = largest * np.geomspace(1.0, ratio, PENALTIES)
    while True:
        errors = [_follow(fold, walk, further)[:shares] for fold, walk in walks]
        penalties = np.append(penalties, further)
        each = np.concatenate([each, errors], axis=2)
        judged = Judged(family, penalties, each, folded.rows, folded.deals)
        ratio /= 10
        if judged.best[1] < penalties.size - 1 or ratio < SMALLEST_RATIO:
            return judged
        further = largest * np.geomspace(10 * ratio, ratio, decade + 1)[1:]


def training(folded: Folded) -> Iterator[tuple[Moments, Normal]]:
    """Every fold, and the normal equations of the rows that are not in it."""
    for fold in folded.folds:
        yield fold, folded.normal(folded.whole.without(fold))


def average(each: Array, rows: Array, deals: int = 1) -> tuple[Array, Array]:
    """Return the mean error over all rows and its standard error, by the mean on every fold.

    Several deals of the same rows know no more than one of how rows differ.
    """
    share = rows / rows.sum()
    error = np.tensordot(share, each, axes=1)
    spread = np.tensordot(share, (each - error) ** 2, axes=1)
    return error, np.sqrt(spread / max(len(rows) / deals - 1, 1))


def _follow(fold: Moments, walk: Walk, penalties: Array) -> Array:
    """Mean squared errors on a fold along a path, at every share of shrinkage: (shares, L)."""
    path = walk.follow(penalties)
    lasso = residuals(*walk.normal.original(path.lasso))
    refit = residuals(*walk.normal.original(path.refits))
    both = fold.between(lasso, lasso)
    mixed = fold.between(lasso, refit)
    alone = fold.between(refit, refit)
    sums = [g**2 * both + 2 * g * (1 - g) * mixed + (1 - g) ** 2 * alone for g in BLENDS]
    return np.clip(sums, 0.0, HOPELESS * fold.products[-1, -1]) / fold.rows
