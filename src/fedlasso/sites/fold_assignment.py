"""How a site draws its splits: anybody can repeat a draw by name, nobody one with a secret.

A site with a secret also sees to it that no part of its rows has only a few at a column's rarer
value, for sums over such a part would tell of those few: it puts a draw back and draws again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from fedlasso.errors import RefusalCode, Refused
from fedlasso.numerics import Array, Table
from fedlasso.numerics.designs import RowIndex
from fedlasso.sites.rows import dealt, divide, folds, name_draw

# Draws that are put back before a site gives up.
TRIES = 300


@dataclass(eq=False)
class FoldDraw:
    """The splits of one site.

    Attributes
    ----------
    secret : what only the site knows; without it draws are seeded by the name
    tables : columns and response, of which rows that train must have none, or at least `cell`,
        beside each column's commonest value, and rows that are held out none or `part`
    """

    site: str
    secret: bytes = b""
    tables: tuple[Table, ...] = ()
    cell: int = 0
    part: int = 0
    _again: dict[str, int | None] = field(default_factory=dict, init=False)

    def divide(self, split: str, n: int) -> dict[str, RowIndex]:
        """Training rows and held-out rows by purpose."""
        return divide(split, self.site, n, self.secret, self.again(split, n))

    def deal(self, split: str, n: int) -> list[RowIndex]:
        """Return the rows of every fold of a deal; without one, all rows as a single fold."""
        return dealt(split, self.site, n, self.secret, self.again(split, n) if split else 0)

    def again(self, split: str, n: int) -> int:
        """Return how many draws are put back for a split before one suits."""
        if not self.secret or max(self.cell, self.part) < 2:
            return 0
        name = name_draw(split)
        if name not in self._again:
            tries = (again for again in range(TRIES) if self._suits(split, n, again))
            self._again[name] = next(tries, None)
        again = self._again[name]
        if again is None:
            dealt_out = name.startswith("folds")
            words = "ask for fewer folds" if dealt_out else "hold out another share"
            raise Refused(
                f"no split of the rows here has {self.cell} rows that train and {self.part} held "
                f"out, or none, beside each column's commonest value; {words}, or leave out "
                "columns with rare values",
                code=RefusalCode.FEWER_FOLDS if dealt_out else RefusalCode.OTHER,
            )
        return again

    def _suits(self, split: str, n: int, again: int) -> bool:
        return not any(
            few_apart(table, rows, fewest).any() or few_missing(table, rows, fewest).any()
            for rows, fewest in self._parts(split, n, again)
            for table in self.tables
        )

    def _parts(self, split: str, n: int, again: int) -> Iterator[tuple[RowIndex, int]]:
        """All parts that a draw may be asked about, and how few rows are too few in each."""
        names: tuple[str, ...] = (split,)
        if name_draw(split).startswith("folds"):
            _, count, seed = name_draw(split).split()
            names = folds(int(count), int(seed))
        for name in names:
            parts = divide(name, self.site, n, self.secret, again)
            for purpose, rows in parts.items():
                yield rows, self.cell if purpose == "training" else self.part
            # Sums over all rows, minus those that train, are over the others.
            yield np.setdiff1d(np.arange(n), parts["training"]), self.part


def few_missing(table: Table, rows: RowIndex, cell: int) -> Array:
    """Return which columns are missing in some rows, but in too few.

    A missing value is at a mean that whoever asks has chosen, so two means tell such rows apart.
    """
    if table.holes is None or cell < 2:
        return np.zeros(table.p, dtype=bool)
    missing = np.asarray(table.holes.tocsr()[rows].sum(axis=0)).ravel()
    return np.asarray((missing > 0) & (missing < cell))


def few_apart(table: Table, rows: RowIndex, cell: int) -> Array:
    """Return which columns differ from their commonest value in some rows, but in too few.

    A value that all but a few rows have is the median of any `2 cell - 1` rows.
    """
    if cell < 2 or len(rows) == 0:
        return np.zeros(table.p, dtype=bool)
    first = np.median(table.take(rows[: 2 * cell - 1]), axis=1)
    if table.sparse is None:
        apart = (table.columns[:, rows] != first[:, None]).sum(axis=1)
    else:
        chosen = table.sparse[rows]
        apart = np.asarray((chosen != 0).sum(axis=0)).ravel()
        # Few columns of a sparse table have another commonest value than zero.
        for k in np.flatnonzero(first):
            apart[k] = len(rows) - int((chosen[:, [k]].toarray() == first[k]).sum())
    return np.asarray((apart > 0) & (apart < cell))
