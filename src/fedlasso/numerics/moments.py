"""Least squares from second moments, which the sites add up.

The Lasso, its refits and errors on other rows need X'X, X'y and y'y only, never the records. So one
exchange of moments is enough for all penalties, weights and folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from fedlasso.numerics.certificate import Certificate, duality_gap
from fedlasso.numerics.designs import RowIndex
from fedlasso.numerics.machine import Array, one_thread
from fedlasso.numerics.penalties import Penalty
from fedlasso.numerics.sample import LeastSquares

# A column is constant unless its variance exceeds this fraction of its second moment.
VARIES = 1e-12
# Eigenvalues below this fraction of the largest are zero.
RANK = 1e-12


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over rows of all products of (1, x, y): counts, sums and second moments."""

    products: Array

    @property
    def rows(self) -> int:
        return round(float(self.products[0, 0]))

    @classmethod
    def of(cls, sample: LeastSquares, rows: RowIndex) -> Moments:
        return cls(sample.design.moments(rows, np.ascontiguousarray(sample.y[rows])))

    def without(self, part: Moments) -> Moments:
        return Moments(self.products - part.products)

    def normal(self, *, centre: bool = True, scale: bool = True) -> Normal:
        """Return the normal equations of columns centred and scaled with these rows."""
        m = max(self.rows, 1)
        second = self.products / m
        means = second[0, 1:].copy() if centre else np.zeros(len(second) - 1)
        covariance = second[1:, 1:] - np.outer(means, means)
        squares = np.diagonal(second)[1:-1]
        variance = np.diagonal(covariance)[:-1]
        varies = variance > VARIES * squares
        spread = np.sqrt(np.where(varies, variance, 1.0)) if scale else np.ones(len(varies))
        factors = np.where(varies, 1.0 / spread, 0.0)
        gram = covariance[:-1, :-1] * np.outer(factors, factors)
        score = covariance[:-1, -1] * factors
        rank = min(m - 1 if centre else m, int(varies.sum()))
        y_variance = float(max(covariance[-1, -1], 0.0))
        return Normal(gram, score, y_variance, m, means, factors, rank)

    def between(self, V: Array, W: Array) -> Array:
        """Return sums over rows of products of residuals, column by column; see `residuals`."""
        # Columns that no model uses are skipped.
        left = np.flatnonzero(V.any(axis=1))
        right = np.flatnonzero(W.any(axis=1))
        product = self.products[np.ix_(right, left)] @ V[left]
        return np.asarray(np.einsum("il,il->l", product, W[right]))


def residuals(B: Array, intercepts: Array) -> Array:
    """Return the residuals of models (columns of B) as linear combinations of (1, x, y)."""
    return np.vstack([-intercepts, -B, np.ones(B.shape[1])])


@dataclass(frozen=True, eq=False)
class Normal:
    """The normal equations of least squares on standardised columns."""

    gram: Array  # X'X/m
    score: Array  # X'y/m
    variance: float  # y'y/m
    rows: int  # m
    means: Array  # of the columns, then of the response
    factors: Array  # by which columns are scaled; zero for a constant column
    rank: int  # upper bound on the rank of X

    @classmethod
    def of_products(cls, products: Array, rows: int) -> Normal:
        """Return the equations of unstandardised columns, from sums of all products of (x, y)."""
        second = products / rows
        squares = np.diagonal(second)[:-1]
        gram, score, variance = second[:-1, :-1], second[:-1, -1], float(second[-1, -1])
        factors = (squares > 0).astype(np.float64)
        rank = min(rows, int((squares > 0).sum()))
        return cls(gram, score, variance, rows, np.zeros(len(second)), factors, rank)

    @property
    def p(self) -> int:
        return len(self.score)

    @cached_property
    def largest_penalty(self) -> float:
        """The smallest penalty at which the Lasso is empty."""
        return float(np.abs(self.score).max(initial=0.0))

    def original(self, B: Array) -> tuple[Array, Array]:
        """Return the coefficients and intercepts of models (columns of B) on the original scale."""
        coefficients = (B.T * self.factors).T
        return coefficients, self.means[-1] - self.means[:-1] @ coefficients

    def weighted(self, weights: Array) -> Normal:
        """Return the equations of columns divided by penalty weights."""
        shrink = np.where(np.isfinite(weights), 1.0 / weights, 0.0)
        gram, score = self.gram * np.outer(shrink, shrink), self.score * shrink
        rank = min(self.rank, int((shrink > 0).sum()))
        return replace(self, gram=gram, score=score, factors=self.factors * shrink, rank=rank)

    def steadied(self, ridge: float) -> Normal:
        """Return the equations with a ridge penalty, as for an elastic net."""
        varies = self.factors > 0
        gram = self.gram + ridge * np.diag(varies.astype(np.float64))
        return replace(self, gram=gram, rank=int(varies.sum()))

    def certificates(self, B: Array, penalties: Sequence[Penalty]) -> list[Certificate]:
        """Return the certificates of models (columns of B), one per penalty."""
        product = self.gram @ B
        found = []
        for j, penalty in enumerate(penalties):
            b = B[:, j]
            fitted = float(b @ product[:, j])
            explained = float(b @ self.score)
            residual = max(self.variance - 2 * explained + fitted, 0.0)
            against = self.variance - explained
            gradient = product[:, j] - self.score
            gap = duality_gap(residual, against, self.variance, gradient, b, penalty, 1)
            found.append(Certificate(residual / 2 + penalty.value(b), gap))
        return found


@one_thread()
def from_moments(G: Array, c: Array) -> LeastSquares:
    """Return a minimal sample with X'X/m = G and X'y/m = c, for solvers that need records.

    With G = V D V', its n rows are X = sqrt(n) D^1/2 V', and y = sqrt(n) D^-1/2 V'c; the score c
    must lie in the range of G, as it does for moments of real records.
    """
    d, V = scipy.linalg.eigh(G)
    seen = d > RANK * d[-1]
    n = int(seen.sum())
    if n == 0:
        return LeastSquares(np.zeros((1, c.size)), np.zeros(1))
    root = np.sqrt(d[seen])
    X = np.sqrt(n) * root[:, None] * V[:, seen].T
    y = np.sqrt(n) * (V[:, seen].T @ c) / root
    return LeastSquares(X, y)
