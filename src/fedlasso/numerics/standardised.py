"""Some rows of a table, centred and scaled on the fly: no second copy of X."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.numerics.arrays import Array
from fedlasso.numerics.compiled import dot
from fedlasso.numerics.designs import Design
from fedlasso.numerics.table import Rows, Table
from fedlasso.numerics.threads import one_thread

# Numbers that a procedure working on columns may copy: 2 GiB.
LARGEST_COPY = 1 << 28
BLOCK = 4096


class Standardised(Design):
    """Z with z_ik = (x_ik - means_k) factors_k over the given rows of a table.

    Products come straight from the table, Zb = X(factors b) - means'(factors b), so a sparse X
    stays sparse and folds cost no memory. A missing value is at its column's mean. A factor of zero
    leaves a column out. `columns` and `gram` are made when a procedure asks.
    """

    def __init__(self, table: Table, rows: Rows | None, means: Array, factors: Array) -> None:
        self._table = table
        self._all = rows is None
        self._rows = np.arange(table.n) if rows is None else rows
        self._means = np.ascontiguousarray(means)
        self._factors = np.ascontiguousarray(factors)
        self.m, self.p = len(self._rows), table.p

    def product(self, b: Array) -> Array:
        """Return Z b."""
        v = self._factors * b
        out = self._table.product(v)
        if self._table.holes is not None:
            out = out + self._table.holes @ (self._means * v)
        return (out if self._all else out[self._rows]) - dot(self._means, v)

    def inner(self, r: Array) -> Array:
        """Return Z'r."""
        if not self._all:
            full = np.zeros(self._table.n)
            full[self._rows] = r
        else:
            full = np.ascontiguousarray(r)
        about = r.sum() - self._table.missing(full)
        out: Array = (self._table.inner(full) - self._means * about) * self._factors
        return out

    def subtract(self, out: Array, b: Array) -> None:
        out -= self.product(b)

    @cached_property
    def norms(self) -> Array:
        """||z_k||^2 / m for every column."""
        w = np.zeros(self._table.n)
        w[self._rows] = 1.0
        return self._table.squares(self._means, w) * self._factors**2 / max(self.m, 1)

    def _take(self, rows: Rows) -> Array:
        Z = self._table.take(rows)
        Z -= self._means[:, None]
        if self._table.holes is not None:
            Z += self._means[:, None] * self._table.holes[rows].toarray().T
        Z *= self._factors[:, None]
        return Z

    @cached_property
    def columns(self) -> Array:
        """Z, a column in each row: a copy, for procedures that sweep over columns."""
        if self.m * self.p > LARGEST_COPY:
            raise FedLassoError(
                f"{self.m} rows x {self.p} columns are too many for a procedure that sweeps over "
                "columns; fit by goal or by Secant or FISTA, which need gradients only"
            )
        columns = self._take(self._rows)
        columns.flags.writeable = False
        return columns

    @cached_property
    def gram(self) -> Array:
        """Z'Z / m, a block of rows at a time."""
        total = np.zeros((self.p, self.p))
        with one_thread():
            for at in range(0, self.m, BLOCK):
                Z = self._take(self._rows[at : at + BLOCK])
                total += Z @ Z.T
        total /= max(self.m, 1)
        return total
