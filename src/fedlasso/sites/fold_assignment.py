"""Random splits of a site's rows: reproducible from the name, or secret.

A site with a secret also draws again until no part has only a few rows at a column's rarer values:
sums over such a part would disclose those rows.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlasso.errors import RefusalCode, Refused
from fedlasso.numerics import Array, Table
from fedlasso.numerics.designs import RowIndex
from fedlasso.numerics.response import Places
from fedlasso.sites.rows import divide, fill_batches, fold_rows, folds, name_draw, shuffle

# Maximum number of draws.
TRIES = 300
# Rows of a batch, and batches of a site.
BATCH_ROWS = 10
MOST_BATCHES = 50


@dataclass(eq=False)
class FoldDraw:
    """The splits of one site.

    Attributes
    ----------
    site : text that seeds the draws of a site without a secret
    secret : known to the site only
    tables : columns and response; each column must differ from its commonest value in none or at
        least `cell` of the training rows, and in none or at least `part` of the held-out rows
    strata : which rows have the rarer kind of response, such as an event; every part of a split
        gets its proportion of both kinds
    batch : minimum rows of a batch
    clusters : number of each row's cluster, from 0; rows of a cluster are never separated
    """

    site: str
    secret: bytes = b""
    tables: tuple[Table, ...] = ()
    cell: int = 0
    part: int = 0
    strata: NDArray[np.bool_] | None = None
    batch: int = BATCH_ROWS
    clusters: Places | None = None
    # Minimum rows of a cell in the site's policy, if it has one.
    cell_rows: int = field(default=0, init=False)
    _redraws: dict[str, int | None] = field(default_factory=dict, init=False)

    def divide(self, split: str, n: int) -> dict[str, RowIndex]:
        return self._divide(split, n, self.redraws(split, n))

    def _divide(self, split: str, n: int, redraws: int) -> dict[str, RowIndex]:
        count = self._count(n)
        parts = divide(split, self.site, count, self.secret, redraws, self._strata(count))
        return {purpose: self._rows_of(part) for purpose, part in parts.items()}

    def fold_rows(self, split: str, n: int) -> list[RowIndex]:
        """Return the rows of every fold; without a split, all rows as a single fold."""
        redraws = self.redraws(split, n) if split else 0
        count = self._count(n)
        parts = fold_rows(split, self.site, count, self.secret, redraws, self._strata(count))
        return [self._rows_of(part) for part in parts]

    def _count(self, n: int) -> int:
        """Return the number of clusters, or of rows without any."""
        return n if self.clusters is None else int(self.clusters.max()) + 1

    def _strata(self, count: int) -> NDArray[np.bool_] | None:
        """Return which clusters have a row of the rarer kind, or which rows without clusters."""
        if self.strata is None or self.clusters is None:
            return self.strata
        return np.bincount(self.clusters[self.strata], minlength=count) > 0

    def _rows_of(self, part: RowIndex) -> RowIndex:
        return part if self.clusters is None else np.flatnonzero(np.isin(self.clusters, part))

    @property
    def rows(self) -> int:
        """Number of rows of the site."""
        return self.tables[0].n if self.tables else 0

    def batches(self, n: int) -> Places:
        """Return the batch of each row: random batches of whole clusters, the same for ever."""
        clusters = np.arange(n) if self.clusters is None else self.clusters
        sizes = np.bincount(clusters)
        order = shuffle(self.site, len(sizes), [], self.secret, f"batches {n}")
        return fill_batches(sizes, order, max(self.batch, -(-n // MOST_BATCHES)))[clusters]

    def redraws(self, split: str, n: int) -> int:
        """Return how many draws are rejected for a split before one is accepted."""
        if not self.secret or max(self.cell, self.part) < 2:
            return 0
        name = name_draw(split)
        if name not in self._redraws:
            accepted = (k for k in range(TRIES) if self._accepts(split, n, k))
            self._redraws[name] = next(accepted, None)
        redraws = self._redraws[name]
        if redraws is None:
            in_folds = name.startswith("folds")
            remedy = "request fewer folds" if in_folds else "hold out another fraction"
            raise Refused(
                f"no split of the rows here has {self.cell} training rows and {self.part} held-out "
                f"rows, or none, beside each column's commonest value; {remedy}, or leave out "
                "columns with rare values",
                code=RefusalCode.FEWER_FOLDS if in_folds else RefusalCode.OTHER,
            )
        return redraws

    def _accepts(self, split: str, n: int, redraws: int) -> bool:
        return not any(
            few_apart(table, rows, fewest).any() or few_missing(table, rows, fewest).any()
            for rows, fewest in self._parts(split, n, redraws)
            for table in self.tables
        )

    def _parts(self, split: str, n: int, redraws: int) -> Iterator[tuple[RowIndex, int]]:
        """Yield all parts whose sums a draw discloses, and the minimum rows of each."""
        names: tuple[str, ...] = (split,)
        if name_draw(split).startswith("folds"):
            _, count, seed = name_draw(split).split()
            names = folds(int(count), int(seed))
        for name in names:
            parts = self._divide(name, n, redraws)
            for purpose, rows in parts.items():
                yield rows, self.cell if purpose == "training" else self.part
            # Sums over all rows minus sums over the training rows are sums over the others.
            yield np.setdiff1d(np.arange(n), parts["training"]), self.part


def few_missing(table: Table, rows: RowIndex, cell: int) -> Array:
    """Return which columns are missing in some rows, but in fewer than `cell`.

    The coordinator chooses the mean that replaces missing values: two means disclose such rows.
    """
    if table.holes is None or cell < 2:
        return np.zeros(table.p, dtype=bool)
    missing = np.asarray(table.holes.tocsr()[rows].sum(axis=0)).ravel()
    return np.asarray((missing > 0) & (missing < cell))


def few_apart(table: Table, rows: RowIndex, cell: int) -> Array:
    """Return which columns differ from their commonest value in some rows, but fewer than `cell`.

    A value that all but so few rows have is the median of any `2 cell - 1` rows.
    """
    if cell < 2 or len(rows) == 0:
        return np.zeros(table.p, dtype=bool)
    first = np.median(table.take(rows[: 2 * cell - 1]), axis=1)
    if table.sparse is None:
        apart = (table.columns[:, rows] != first[:, None]).sum(axis=1)
    else:
        chosen = table.sparse[rows]
        apart = np.asarray((chosen != 0).sum(axis=0)).ravel()
        # In a sparse table the commonest value of most columns is zero.
        for k in np.flatnonzero(first):
            apart[k] = len(rows) - int((chosen[:, [k]].toarray() == first[k]).sum())
    return np.asarray((apart > 0) & (apart < cell))


def digest_records(X: Any, y: Array) -> str:
    """Return a hash of records, whatever the order of the columns."""
    columns = X.T
    if sp.issparse(X):
        table = X.tocsc()
        ends = table.indptr[1:-1]
        values, places = (np.split(own, ends) for own in (table.data, table.indices))
        columns = map(np.append, values, places)
    digests = [hashlib.sha256(np.asarray(k, np.float64).tobytes()).digest() for k in columns]
    return hashlib.sha256(y.tobytes() + b"".join(sorted(digests))).hexdigest()
