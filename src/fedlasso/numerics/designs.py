"""Design matrices: storage of the columns behind the few products that fits need."""

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
# Rows that are copied at once, to limit memory.
BLOCK = 4096


class Design(ABC):
    """A design matrix X with m rows and p columns, stored in any form.

    Attributes
    ----------
    m, p : number of rows and columns
    columns : the transpose of X; a copy if X is not stored that way

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
        """The transpose of X, p by m."""

    @abstractmethod
    def product(self, b: Array) -> Array:
        """Return X b."""

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
        """Return the column of the intercept in some rows."""
        return np.ones(len(rows))

    def take(self, rows: RowIndex) -> Array:
        """Return the transpose of some rows of X."""
        return self.columns[:, rows]

    @one_thread()
    def moments(self, rows: RowIndex, y: Array) -> Array:
        """Return the sums over some rows of all products of (constant, x, y), block by block."""
        total = np.zeros((self.p + 2, self.p + 2))
        for at in range(0, len(rows), BLOCK):
            part = slice(at, at + BLOCK)
            A = np.vstack([self.constant(rows[part]), self.take(rows[part]), y[part]])
            total += A @ A.T
        return total

    def subtract(self, out: Array, b: Array) -> None:
        """Subtract X b from `out`, in place."""
        out -= self.product(b)

    def pick(self, columns: RowIndex) -> Array:
        """Return the transpose of some columns of X."""
        return self.columns[columns]

    @cached_property
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue of X'X / m, to about 1e-12 relative."""
        # X'X and XX' have the same: use the smaller one
        return find_largest_eigenvalue(self.gram_matvec, min(self.m, self.p)) / max(self.m, 1)

    def gram_matvec(self, v: Array) -> Array:
        """Return X'X v, or X X'v if that matrix is smaller."""
        return self.inner(self.product(v)) if self.p <= self.m else self.product(self.inner(v))


@one_thread()
def find_largest_eigenvalue(times: Callable[[Array], Array], n: int) -> float:
    """Return the largest eigenvalue of a symmetric n x n matrix, given by its products."""
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
    """A dense X as a Fortran-ordered float64 array, which is not copied if it is one already."""

    def __init__(self, X: Array) -> None:
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

    def product(self, b: Array) -> Array:
        out = np.zeros(self.m)
        self.subtract(out, b)
        return -out

    def subtract(self, out: Array, b: Array) -> None:
        subtract_product(out, self._columns, np.ascontiguousarray(b, dtype=np.float64))

    def inner(self, r: Array) -> Array:
        return inner_products(self._columns, np.ascontiguousarray(r))

    def gram_matvec(self, v: Array) -> Array:
        A = self._columns if self.p <= self.m else self._columns.T
        return np.asarray(A @ (A.T @ v))


class Weighted(Design):
    """The rows of a design times the square roots of their weights, centred on request.

    Weighted least squares is least squares on such rows, and so is a fit in which the sample has
    its own intercept: centring projects the intercept out.
    """

    def __init__(self, inner: Design, weights: Array, centred: bool = False) -> None:
        self._inner = inner
        self._root = np.sqrt(weights)
        self._centred = centred
        self.m = inner.m
        self.p = inner.p

    def transform_rows(self, v: Array) -> Array:
        """Return one number per row, weighted and centred as the rows are."""
        return self._project(self._root * v)

    def _project(self, v: Array) -> Array:
        if not self._centred:
            return v
        root = self._root
        return np.asarray(v - np.multiply.outer(v @ root / float(root @ root), root))

    def product(self, b: Array) -> Array:
        return self.transform_rows(self._inner.product(b))

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
