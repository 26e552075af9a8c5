"""Random splits of a site's rows: reproducible from the name, or unions of secret atoms.

A site with a secret cuts its rows into atoms once, so that no atom has only a few rows at a
column's rarer values: sums over it would disclose those rows.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlasso.errors import RefusalCode, Refused
from fedlasso.numerics import Array, Table
from fedlasso.numerics.designs import RowIndex
from fedlasso.numerics.response import Places
from fedlasso.sites.atoms import (
    ATOM_ROWS,
    ROWS_PER_COLUMN,
    TRIES,
    choose_atoms,
    count_atoms,
    draw_atoms,
    halve,
    merge,
    place_in_folds,
    smallest,
)
from fedlasso.sites.repeats import find_repeated
from fedlasso.sites.rows import divide, fill_batches, fold_rows, folds_in, name_draw, shuffle

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
    tables : columns and response; in an atom each column must differ from its commonest value in
        none or at least `part` rows
    strata : which rows have the rarer kind of response, such as an event; every part of a split
        gets its proportion of both kinds
    batch : minimum rows of a batch
    clusters : number of each row's cluster, from 0; rows of a cluster are never separated
    atom_rows : minimum rows of an atom
    moments : number of columns whose second moments a fit sends of every part, if rows suffice
    turn : place of the site among those of a fit
    pinned : the atom of each row, if the data file was cut before
    """

    site: str
    secret: bytes = b""
    tables: tuple[Table, ...] = ()
    part: int = 0
    strata: NDArray[np.bool_] | None = None
    batch: int = BATCH_ROWS
    clusters: Places | None = None
    atom_rows: int = ATOM_ROWS
    moments: int = 0
    turn: int = 0
    pinned: Places | None = field(default=None, init=False)
    # Minimum rows of a cell in the site's policy, if it has one.
    cell_rows: int = field(default=0, init=False)

    def divide(self, split: str, n: int) -> dict[str, RowIndex]:
        if self.secret:
            chosen = choose_atoms(split, self._count_parts(), self.turn, self.secret)
            return {purpose: self._rows_in(own) for purpose, own in chosen.items()}
        count = self._count(n)
        parts = divide(split, self.site, count, self._strata(count))
        return {purpose: self._rows_of(part) for purpose, part in parts.items()}

    def fold_rows(self, split: str, n: int) -> list[RowIndex]:
        """Return the rows of every fold; without a split, all rows as a single fold."""
        if split and self.secret:
            count = self._count_parts()
            choose_atoms(split, count, self.turn, self.secret)
            folds = folds_in(split)
            place = place_in_folds(count, folds, self.turn)
            return [self._rows_in(np.flatnonzero(place == fold)) for fold in range(folds)]
        count = self._count(n)
        parts = fold_rows(split, self.site, count, self._strata(count))
        return [self._rows_of(part) for part in parts]

    def _count_parts(self) -> int:
        """Return the number of atoms; refuse to split rows that are a single one."""
        count = int(self.atoms.max()) + 1
        if count < 2:
            raise Refused(
                "the rows here cannot be split: they are too few, or a column has rare values; "
                "give a penalty, or leave out columns with rare values",
                code=RefusalCode.FEWER_FOLDS,
            )
        return count

    def _rows_in(self, atoms: RowIndex) -> RowIndex:
        return np.flatnonzero(np.isin(self.atoms, atoms))

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

    @cached_property
    def finest(self) -> Places:
        """The atom of each row: cut before, or so that these columns suit."""
        if self.pinned is not None:
            return self.pinned
        members = np.arange(self.rows) if self.clusters is None else self.clusters
        sizes = np.bincount(members)
        strata = self._strata(len(sizes))
        most = count_atoms(self.rows, self.atom_rows)
        for count in halve(most):
            for redraws in range(TRIES if self.part > 1 else 1):
                atoms = draw_atoms(count, sizes, strata, self.secret, redraws)[members]
                if np.bincount(atoms).min() >= self.atom_rows and self._suits(atoms):
                    return atoms
        # Nothing suits these columns; others may suit the first draw.
        atoms = draw_atoms(most, sizes, strata, self.secret, 0)[members]
        few = np.bincount(atoms).min() < self.atom_rows
        return np.zeros(self.rows, np.int64) if few else atoms

    @cached_property
    def atoms(self) -> Places:
        """The same, merged until no atom has few rows at a rarer value of these columns.

        They are merged further until second moments can be sent, if that is possible.
        """
        suitable = [
            atoms
            for count in halve(int(self.finest.max()) + 1)
            if self._suits(atoms := merge(self.finest, count))
        ]
        enough = [a for a in suitable if smallest(a) >= ROWS_PER_COLUMN * self.moments]
        return (enough or suitable or [np.zeros(self.rows, np.int64)])[0]

    def _suits(self, atoms: Places) -> bool:
        """Return whether no atom has few rows at a column's rarer values; then no union has."""
        if self.part < 2:
            return True
        for atom in range(int(atoms.max()) + 1):
            rows = np.flatnonzero(atoms == atom)
            for table in self.tables:
                if (
                    few_apart(table, rows, self.part).any()
                    or few_missing(table, rows, self.part).any()
                ):
                    return False
        return True

    @cached_property
    def repeated(self) -> float:
        """Fraction of rows that look repeated, such as visits of a patient; zero with clusters."""
        if self.clusters is not None or not self.tables or self.tables[0].sparse is not None:
            return 0.0
        return find_repeated(self.tables[0].columns.T)

    def batches(self, n: int) -> Places:
        """Return the batch of each row: random batches of whole clusters, the same for ever.

        With a secret they are parts of atoms.
        """
        clusters = np.arange(n) if self.clusters is None else self.clusters
        sizes = np.bincount(clusters)
        order = shuffle(self.site, len(sizes), [], self.secret, f"batches {n}")
        rows = max(self.batch, -(-n // MOST_BATCHES))
        if not self.secret:
            return fill_batches(sizes, order, rows)[clusters]
        found = np.zeros(n, np.int64)
        for atom in range(int(self.finest.max()) + 1):
            inside = self.finest == atom
            own = np.unique(clusters[inside])
            ranks = np.searchsorted(own, clusters[inside])
            filled = fill_batches(sizes[own], np.argsort(np.argsort(order)[own]), rows)[ranks]
            found[inside] = filled + (int(found.max()) + 1 if atom else 0)
        return found

    def name_rows(self, split: str) -> str:
        """Return the same text for all splits that hold out the same rows."""
        if not self.secret:
            return name_draw(split)
        held_out = self.divide(split, self.rows).get("penalty", np.arange(0))
        if name_draw(split).startswith("folds"):
            return f"folds of {int(self.atoms.max()) + 1} atoms"
        return f"rows {hashlib.sha256(held_out.tobytes()).hexdigest()[:16]}"


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
