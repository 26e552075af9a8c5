"""Data with the same bits on every machine, and the Lasso solved on them in exact fractions."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Entries are whole multiples of 1 / UNIT, so products round and yet sums for y are exact.
UNIT = 2**30
TRUTH = (1.0, -2.0, 1.0, 2.0)
SIZES = (20, 16, 12)
COLUMNS = 30
# Powers of two, which every machine has exactly.
PENALTIES = tuple(2.0**-k for k in range(1, 7))


def draw_exact(m: int, p: int, seed: int) -> tuple[Array, Array]:
    """Rows drawn as whole numbers: neither BLAS nor the mathematics library touches a digit."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-UNIT, UNIT, (m, p)) / UNIT
    y = rng.integers(-UNIT, UNIT, m) / UNIT
    for k, coefficient in enumerate(TRUTH):
        y += coefficient * X[:, k]
    return X, y


def pool() -> tuple[Array, Array]:
    """All rows of the small problem."""
    return draw_exact(sum(SIZES), COLUMNS, seed=0)


def split() -> list[tuple[str, Array, Array]]:
    """The same rows as three sites."""
    X, y = pool()
    ends = np.cumsum(SIZES)[:-1]
    return list(zip("abc", np.split(X, ends), np.split(y, ends), strict=True))


class Exact:
    """F(b) = ||y - Xb||^2 / (2m) + lam |b|_1 on the small problem, without any rounding."""

    def __init__(self) -> None:
        X, y = pool()
        self.columns = [[Fraction(x) for x in column] for column in X.T.tolist()]
        self.y = [Fraction(v) for v in y.tolist()]
        self.m = len(self.y)

    def objective(self, b: Sequence[float | Fraction], lam: float) -> Fraction:
        """F(b)."""
        squares = sum((r * r for r in self._residual(b)), Fraction(0))
        size = sum((abs(Fraction(v)) for v in b), Fraction(0))
        return squares / (2 * self.m) + Fraction(lam) * size

    def smallest(self, near: Sequence[float], lam: float) -> Fraction:
        """The minimum of F, proved: a point with the signs of `near` that meets every condition."""
        active = [k for k, v in enumerate(near) if v != 0]
        signs = [1 if near[k] > 0 else -1 for k in active]
        penalty = Fraction(lam)
        square = [[self._product(k, self.columns[l]) for l in active] for k in active]
        right = [
            self._product(k, self.y) - penalty * sign for k, sign in zip(active, signs, strict=True)
        ]
        b = [Fraction(0)] * len(self.columns)
        for k, sign, value in zip(active, signs, solve(square, right), strict=True):
            assert value * sign > 0
            b[k] = value
        residual = self._residual(b)
        for k in range(len(b)):
            assert abs(self._product(k, residual)) <= penalty
        return self.objective(b, lam)

    def _residual(self, b: Sequence[float | Fraction]) -> list[Fraction]:
        residual = list(self.y)
        for column, v in zip(self.columns, b, strict=True):
            if v != 0:
                value = Fraction(v)
                residual = [r - value * x for r, x in zip(residual, column, strict=True)]
        return residual

    def _product(self, k: int, v: Sequence[Fraction]) -> Fraction:
        pairs = zip(self.columns[k], v, strict=True)
        return sum((x * w for x, w in pairs), Fraction(0)) / self.m


@cache
def exact() -> Exact:
    """The small problem in fractions, made once."""
    return Exact()


def solve(square: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Solve a positive definite system by elimination."""
    rows = [[*row, value] for row, value in zip(square, right, strict=True)]
    for i, pivot in enumerate(rows):
        head = pivot[i]
        rows[i] = pivot = [v / head for v in pivot]
        for j, row in enumerate(rows):
            if j != i and row[i] != 0:
                share = row[i]
                rows[j] = [v - share * w for v, w in zip(row, pivot, strict=True)]
    return [row[-1] for row in rows]
