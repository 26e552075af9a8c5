"""Rows that count differently, about their own mean or not, as rows of least squares."""

from functools import cached_property

import numpy as np

from fedlasso.numerics.designs import BLOCK, Design, Rows
from fedlasso.numerics.machine import Array, one_thread
from fedlasso.numerics.response import Places


class Weighted(Design):
    """The rows of a design times the roots of their weights, less their mean if that is asked for.

    Least squares with weights is least squares of such rows, and so is one in which the sample has
    an intercept of its own: both products go through one projection of the rows.
    """

    def __init__(self, inner: Design, weights: Array, centred: bool = False) -> None:
        self._inner = inner
        self._root = np.sqrt(weights)
        self._centred = centred
        self.m = inner.m
        self.p = inner.p

    def turn_rows(self, v: Array) -> Array:
        """Return numbers of the rows, one each, as they enter the sums of squares."""
        return self._project(self._root * v)

    def _project(self, v: Array) -> Array:
        if not self._centred:
            return v
        root = self._root
        return np.asarray(v - np.multiply.outer(v @ root / float(root @ root), root))

    def product(self, b: Array) -> Array:
        return self.turn_rows(self._inner.product(b))

    def subtract(self, out: Array, b: Array) -> None:
        out -= self.product(b)

    def inner(self, r: Array) -> Array:
        return self._inner.inner(self._root * self._project(r))

    def pick(self, columns: Places) -> Array:
        return self._project(self._root * self._inner.pick(columns))

    @cached_property
    def columns(self) -> Array:
        columns = self._project(self._root * self._inner.columns)
        columns.flags.writeable = False
        return columns

    @cached_property
    def norms(self) -> Array:
        columns = self.columns
        return np.asarray(np.einsum("km,km->k", columns, columns) / max(self.m, 1))

    @cached_property
    @one_thread()
    def gram(self) -> Array:
        columns = self.columns
        return np.asarray(columns @ columns.T) / max(self.m, 1)

    def take(self, rows: Rows) -> Array:
        return self.columns[:, rows]

    @one_thread()
    def moments(self, rows: Rows, y: Array) -> Array:
        """Return sums over some rows of all products of (root of the weight, x, y)."""
        total = np.zeros((self.p + 2, self.p + 2))
        for at in range(0, len(rows), BLOCK):
            part = slice(at, at + BLOCK)
            A = np.vstack([self._root[rows[part]], self.take(rows[part]), y[part]])
            total += A @ A.T
        return total
