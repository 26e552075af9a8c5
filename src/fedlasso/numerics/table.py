"""Records as they are stored: dense columns or a sparse matrix, possibly with holes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.compiled import compiled, subtract_product
from fedlasso.numerics.designs import inner_products

Rows = NDArray[np.int64]


class Table:
    """X (n by p) behind the few products that a fit needs; it is never copied nor changed.

    Parameters
    ----------
    X : dense array or scipy sparse matrix
        float64, in Fortran order or CSC not copied.
    holes : sparse matrix of ones where a value is missing; X holds a zero there
    """

    def __init__(self, X: Any, holes: Any = None) -> None:
        self.sparse: Any = None
        self.columns: Array = np.empty((0, 0))
        if sp.issparse(X):
            self.sparse = sp.csc_array(X, dtype=np.float64)
            self.sparse.sum_duplicates()
        else:
            self.columns = np.asfortranarray(X, dtype=np.float64).T
        self.n, self.p = (int(size) for size in X.shape)
        self.holes: Any = holes

    def product(self, b: Array) -> Array:
        """X b, reading only the columns where b is nonzero when X is dense."""
        if self.sparse is not None:
            out: Array = self.sparse @ b
            return out
        minus = np.zeros(self.n)
        subtract_product(minus, self.columns, np.ascontiguousarray(b))
        return -minus

    def inner(self, r: Array) -> Array:
        """X'r."""
        if self.sparse is not None:
            out: Array = self.sparse.T @ r
            return out
        return inner_products(self.columns, np.ascontiguousarray(r))

    def missing(self, w: Array) -> Array:
        """Holes of every column, each counted with its row's weight."""
        if self.holes is None:
            return np.zeros(self.p)
        count: Array = self.holes.T @ w
        return count

    def squares(self, means: Array, w: Array) -> Array:
        """sum_i w_i (x_ik - means_k)^2 for every column, holes left out."""
        if self.sparse is None:
            out = centred_squares(self.columns, means, w)
        else:
            X = self.sparse
            out = sparse_squares(X.data, X.indices, X.indptr, means, w, float(w.sum()))
        filled: Array = np.maximum(out - self.missing(w) * means**2, 0.0)
        return out if self.holes is None else filled

    def take(self, rows: Rows) -> Array:
        """Some rows as a new dense array, a column of X in each row."""
        if self.sparse is not None:
            taken: Array = np.ascontiguousarray(self.sparse[rows].toarray().T)
            return taken
        return np.ascontiguousarray(self.columns[:, rows])


@compiled
def centred_squares(Xt: Array, means: Array, w: Array) -> Array:
    """Weighted sums of squares about the means, column by column."""
    out = np.zeros(Xt.shape[0])
    for k in range(Xt.shape[0]):
        total = 0.0
        for i in range(w.size):
            d = Xt[k, i] - means[k]
            total += w[i] * d * d
        out[k] = total
    return out


@compiled
def sparse_squares(
    data: Array, indices: Rows, indptr: Rows, means: Array, w: Array, weight: float
) -> Array:
    """The same over CSC: what is not stored is a zero."""
    out = np.zeros(means.size)
    for k in range(means.size):
        total, left = 0.0, weight
        for i in range(indptr[k], indptr[k + 1]):
            d = data[i] - means[k]
            total += w[indices[i]] * d * d
            left -= w[indices[i]]
        out[k] = total + left * means[k] * means[k]
    return out
