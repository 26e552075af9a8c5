"""Designs: how the columns of a sample are held, behind the few products that fits need of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from fedlasso.numerics.machine import Array, inner_products, one_thread, subtract_product

RowIndex = NDArray[np.int64]
# Up to this size a dense eigenvalue is cheaper than starting Lanczos.
DENSE_EIGENVALUE = 64
# Rows that are copied at once where all of them would take too much memory.
BLOCK = 4096


class Design(ABC):
    """X, m rows by p columns, however it is stored.

    Attributes
    ----------
    m, p : rows and columns
    columns : X with a column in each row; a copy where X is not stored so

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics import Dense
    >>> Dense(np.array([[1.0, 2.0], [3.0, 4.0]])).inner(np.array([1.0, 1.0]))
    array([4., 6.])
    """

    m: int
    p: int

    @property
    @abstractmethod
    def columns(self) -> Array:
        """X, a column in each row."""

    @abstractmethod
    def subtract(self, out: Array, b: Array) -> None:
        """Subtract X b from `out`, in place."""

    @abstractmethod
    def inner(self, r: Array) -> Array:
        """Return X'r."""

    @cached_property
    def norms(self) -> Array:
        """||x_k||^2 / m for every column."""
        columns = self.columns
        return np.asarray(np.einsum("km,km->k", columns, columns) / max(self.m, 1))

    @cached_property
    @one_thread()
    def gram(self) -> Array:
        """X'X / m, a p x p array."""
        gram = self.columns @ self.columns.T
        gram /= max(self.m, 1)
        return gram

    def constant(self, rows: RowIndex) -> Array:
        """Return what an intercept adds to some rows."""
        return np.ones(len(rows))

    def take(self, rows: RowIndex) -> Array:
        """Return some rows, a column of X in each row."""
        return self.columns[:, rows]

    @one_thread()
    def moments(self, rows: RowIndex, y: Array) -> Array:
        """Return sums over some rows of all products of (constant, x, y), a block at a time."""
        total = np.zeros((self.p + 2, self.p + 2))
        for at in range(0, len(rows), BLOCK):
            part = slice(at, at + BLOCK)
            A = np.vstack([self.constant(rows[part]), self.take(rows[part]), y[part]])
            total += A @ A.T
        return total

    def product(self, b: Array) -> Array:
        """Return X b."""
        out = np.zeros(self.m)
        self.subtract(out, b)
        return -out

    def pick(self, columns: RowIndex) -> Array:
        """Return some columns, each in one row."""
        return self.columns[columns]

    @cached_property
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue of X'X / m, to about 1e-12 relative."""
        # X'X and XX' share it: work on the shorter side
        return find_largest_eigenvalue(self.turn, min(self.m, self.p)) / max(self.m, 1)

    def turn(self, v: Array) -> Array:
        """Return X'X v, or X X'v where that is the shorter side."""
        return self.inner(self.product(v)) if self.p <= self.m else self.product(self.inner(v))


@one_thread()
def find_largest_eigenvalue(times: Callable[[Array], Array], n: int) -> float:
    """Return the largest eigenvalue of a symmetric n x n matrix known by its products."""
    if n == 0:
        return 0.0
    if n <= DENSE_EIGENVALUE:
        square = np.column_stack([times(e) for e in np.eye(n)])
        top = scipy.linalg.eigh(square, eigvals_only=True, subset_by_index=(n - 1, n - 1))
    else:
        operator = LinearOperator((n, n), matvec=lambda v: times(v.ravel()), dtype=float)
        # a fixed start with no structure that an eigenvector could be orthogonal to
        v0 = np.random.default_rng(0).standard_normal(n)
        top = eigsh(operator, k=1, which="LA", v0=v0, tol=0, return_eigenvectors=False)
    return max(float(top[0]), 0.0)


class Dense(Design):
    """A dense X, kept as one Fortran-ordered float64 array.

    It is not copied when it already is one, so do not write to it afterwards.
    """

    def __init__(self, X: Array) -> None:
        # the transpose of a Fortran-ordered X is C-ordered: row k is the column x_k
        self._columns = np.asfortranarray(X, dtype=np.float64).T.view()
        if self._columns.ndim != 2:
            raise ValueError(f"X must be (m, p), not {np.shape(X)}.")
        if self._columns.shape[1] == 0:
            raise ValueError("X holds no records.")
        if not np.isfinite(self._columns).all():
            raise ValueError("X must be finite.")
        self._columns.flags.writeable = False
        self.p, self.m = self._columns.shape

    @property
    def columns(self) -> Array:
        return self._columns

    def subtract(self, out: Array, b: Array) -> None:
        subtract_product(out, self._columns, np.ascontiguousarray(b, dtype=np.float64))

    def inner(self, r: Array) -> Array:
        return inner_products(self._columns, np.ascontiguousarray(r))

    def turn(self, v: Array) -> Array:
        A = self._columns if self.p <= self.m else self._columns.T
        return np.asarray(A @ (A.T @ v))


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

    def pick(self, columns: RowIndex) -> Array:
        return self._project(self._root * self._inner.pick(columns))

    @cached_property
    def columns(self) -> Array:
        columns = self._project(self._root * self._inner.columns)
        columns.flags.writeable = False
        return columns

    def constant(self, rows: RowIndex) -> Array:
        return self._root[rows]
