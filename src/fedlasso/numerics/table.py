"""A data matrix, dense or sparse and possibly with missing values, and its standardised rows."""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedlasso.errors import FedLassoError
from fedlasso.numerics.designs import BLOCK, Design, RowIndex
from fedlasso.numerics.machine import (
    Array,
    compiled,
    frozen,
    one_thread,
    subtract_product,
    sum_products,
)

# Maximum size of a copy for procedures that sweep over columns: 2 GiB.
LARGEST_COPY = 1 << 28
# A mean of more standard deviations than this is subtracted from every value before products are
# summed: afterwards, digits would be lost.
FAR = 64.0
# Values that are centred at a time.
BLOCK_VALUES = 1 << 16


def find_far(means: Array, factors: Array) -> Any:
    """Return which columns have a mean far from zero, as a boolean array."""
    return np.abs(means * factors) > FAR


class Table:
    """A read-only X (n by p), dense or sparse, behind the few products that a fit needs.

    float64 in Fortran order or CSC is not copied. `holes` is a sparse matrix with ones where a
    value is missing; X has a zero there.
    """

    def __init__(self, X: Any, holes: Any = None) -> None:
        self.sparse: Any = None
        self.columns: Array = np.empty((0, 0))
        if sp.issparse(X):
            self.sparse = sp.csc_array(X, dtype=np.float64)
            self.sparse.sum_duplicates()
        else:
            self.columns = frozen(np.asfortranarray(X, dtype=np.float64).T)
        self.n, self.p = (int(size) for size in X.shape)
        self.holes: Any = holes

    @cached_property
    def largest(self) -> Array:
        if self.sparse is not None:
            return np.asarray(abs(self.sparse).max(axis=0).toarray()).ravel()
        return np.asarray(np.maximum(self.columns.max(axis=1), -self.columns.min(axis=1)))

    def product(self, b: Array) -> Array:
        """Return X b; if X is dense, only columns where b is nonzero are read."""
        if self.sparse is not None:
            return np.asarray(self.sparse @ b)
        minus = np.zeros(self.n)
        subtract_product(minus, self.columns, np.ascontiguousarray(b))
        return -minus

    @one_thread()
    def inner(self, r: Array) -> Array:
        if self.sparse is not None:
            return np.asarray(self.sparse.T @ r)
        return np.asarray(np.vecdot(self.columns, r))

    def missing(self, w: Array) -> Array:
        """Return the total weight of the missing values of every column."""
        return np.zeros(self.p) if self.holes is None else np.asarray(self.holes.T @ w)

    @one_thread()
    def squares(self, means: Array, w: Array) -> Array:
        """Return sum_i w_i (x_ik - means_k)^2 for every column, without missing values."""
        if self.sparse is None:
            out = np.empty(self.p)
            width = BLOCK_VALUES // self.n + 1
            for part in (slice(at, at + width) for at in range(0, self.p, width)):
                centred = self.columns[part] - means[part, None]
                centred *= centred
                out[part] = np.vecdot(centred, w)
        else:
            X = self.sparse
            out = sparse_squares(X.data, X.indices, X.indptr, means, w, float(w.sum()))
        filled: Array = np.maximum(out - self.missing(w) * means**2, 0.0)
        return out if self.holes is None else filled

    def take(self, rows: RowIndex) -> Array:
        taken = self.columns[:, rows] if self.sparse is None else self.sparse[rows].toarray().T
        return np.ascontiguousarray(taken)


@compiled
def sparse_squares(
    data: Array, indices: RowIndex, indptr: RowIndex, means: Array, w: Array, weight: float
) -> Array:
    """Return `squares` for CSC storage, where entries that are not stored are zeros."""
    out = np.zeros(means.size)
    for k in range(means.size):
        total = 0.0
        left = weight
        for i in range(indptr[k], indptr[k + 1]):
            d = data[i] - means[k]
            total += w[indices[i]] * d * d
            left -= w[indices[i]]
        out[k] = total + left * means[k] * means[k]
    return out


class Standardised(Design):
    """Z with z_ik = (x_ik - means_k) factors_k over some rows of a table.

    Products use the table, Zb = X(factors b) - means'(factors b), so a sparse X stays sparse and
    folds take no memory; only columns whose mean is far from zero are centred value by value. A
    missing value is imputed by its column's mean. A factor of zero removes a column. `columns` and
    `gram` are computed on first use.
    """

    def __init__(self, table: Table, rows: RowIndex | None, means: Array, factors: Array) -> None:
        self._table = table
        self._all = rows is None
        self._rows = np.arange(table.n) if rows is None else rows
        self._means = np.ascontiguousarray(means)
        self._factors = np.ascontiguousarray(factors)
        self._far = np.flatnonzero(find_far(self._means, self._factors))
        self.m = len(self._rows)
        self.p = table.p

    def product(self, b: Array) -> Array:
        v = self._factors * b
        v[self._far] = 0.0
        out = self._table.product(v)
        if self._table.holes is not None:
            out = out + self._table.holes @ (self._means * v)
        out = (out if self._all else out[self._rows]) - sum_products(self._means, v)
        for k in self._far[b[self._far] != 0.0]:
            out += b[k] * self.pick(np.array([k]))[0]
        return out

    def inner(self, r: Array) -> Array:
        full = r
        if not self._all:
            full = np.zeros(self._table.n)
            full[self._rows] = r
        about = r.sum() - self._table.missing(full)
        out = np.asarray((self._table.inner(full) - self._means * about) * self._factors)
        for k in self._far:
            out[k] = sum_products(self.pick(np.array([k]))[0], r)
        return out

    @cached_property
    def norms(self) -> Array:
        w = np.zeros(self._table.n)
        w[self._rows] = 1.0
        return self._table.squares(self._means, w) * self._factors**2 / max(self.m, 1)

    def take(self, rows: RowIndex) -> Array:
        chosen = self._rows[rows]
        Z = self._table.take(chosen)
        Z -= self._means[:, None]
        if self._table.holes is not None:
            Z += self._means[:, None] * self._table.holes[chosen].toarray().T
        Z *= self._factors[:, None]
        return Z

    def pick(self, columns: RowIndex) -> Array:
        if self._table.sparse is None:
            Z = self._table.columns[columns][:, self._rows]
        else:
            Z = self._table.sparse[:, columns][self._rows].toarray().T
        means = self._means[columns][:, None]
        Z = Z - means
        if self._table.holes is not None:
            Z += means * self._table.holes[:, columns].tocsr()[self._rows].toarray().T
        Z *= self._factors[columns][:, None]
        return Z

    def moments(self, rows: RowIndex, y: Array) -> Array:
        if self._table.sparse is None or self._far.size:
            return super().moments(rows, y)
        chosen = self._rows[rows]
        X = self._table.sparse[chosen]
        if self._table.holes is not None:
            X = X + self._table.holes[chosen] @ sp.diags_array(self._means)
        products = (X.T @ X).tocoo()
        A = np.zeros((self.p + 2, self.p + 2))
        A[products.row + 1, products.col + 1] = products.data
        A[0, 1:-1] = A[1:-1, 0] = X.sum(axis=0)
        A[-1, 1:-1] = A[1:-1, -1] = X.T @ y
        A[0, -1] = A[-1, 0] = y.sum()
        A[0, 0] = len(rows)
        A[-1, -1] = sum_products(y, y)
        # (x - means) * factors, in the rows and then in the columns of A
        A[1:-1] = (A[1:-1] - np.outer(self._means, A[0])) * self._factors[:, None]
        A[:, 1:-1] = (A[:, 1:-1] - np.outer(A[:, 0], self._means)) * self._factors
        return A

    @cached_property
    def columns(self) -> Array:
        if self.m * self.p > LARGEST_COPY:
            raise FedLassoError(
                f"{self.m} rows x {self.p} columns are too many for a procedure that sweeps over "
                "columns; fit by goal or by Secant or FISTA, which need gradients only"
            )
        columns = self.take(np.arange(self.m))
        columns.flags.writeable = False
        return columns

    @cached_property
    @one_thread()
    def gram(self) -> Array:
        total = np.zeros((self.p, self.p))
        for at in range(0, self.m, BLOCK):
            Z = self.take(np.arange(at, min(at + BLOCK, self.m)))
            total += Z @ Z.T
        total /= max(self.m, 1)
        return total
