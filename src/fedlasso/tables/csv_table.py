"""Text tables: cells become numbers, Boolean values or texts, some rows at a time."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError, QuotesRecords
from fedlasso.tables.values import Values, classify, empty, make_numbers, make_texts

# Texts that mean a missing value, besides blanks.
NULLS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
# A cell of at most so many blanks is empty.
_BLANKS = 8
NOT_UTF8 = "is not UTF-8 text; save it as CSV in UTF-8"
# Cells that are converted at a time.
_BATCH_CELLS = 1 << 16
# A whole number has none of these marks of a fraction, an exponent, infinity or NaN.
_FRACTION = re.compile(r"[.,eEnN]")


@dataclass(frozen=True)
class Dialect:
    """Separator and decimal mark of a text file."""

    separator: str = ","
    decimal: str = "."


def null_texts(na: Sequence[str]) -> frozenset[str]:
    """Return texts that mean a missing value: the usual ones, blanks, and `na`."""
    return frozenset([*NULLS, *(" " * count for count in range(1, _BLANKS + 1)), *na])


class CsvTable:
    """The columns of a text file, read as a whole; `packed` means by gzip."""

    def __init__(self, path: Path, packed: bool, dialect: Dialect, na: Sequence[str]) -> None:
        self.path = path
        self._packed = packed
        self._dialect = dialect
        self._nulls = null_texts(na)
        with self._naming_problems():
            self.names, self.values = self._read()

    def _read(self) -> tuple[list[str], list[Values]]:
        with self._open() as file:
            names, batches = self._batches(file)
            cells = [_Cells(self._nulls, self._dialect.decimal) for _ in names]
            _add(cells, batches)
        if any(own.is_mixed for own in cells):
            # Texts after many numbers: the numbers are read again, as texts.
            cells = [_Cells(self._nulls, "") if own.is_mixed else own for own in cells]
            with self._open() as file:
                _add(cells, self._batches(file)[1], again=True)
        values = [
            self._join_lines(name, own.finish(), len(names))
            for name, own in zip(names, cells, strict=True)
        ]
        return names, values

    def _open(self, errors: str = "strict") -> Any:
        how: dict[str, Any] = {"encoding": "utf-8-sig", "newline": "", "errors": errors}
        return gzip.open(self.path, "rt", **how) if self._packed else self.path.open(**how)

    def _batches(self, file: Any) -> tuple[list[str], Iterator[list[tuple[str, ...]]]]:
        """Return the header, and the columns of some rows at a time."""
        reader = csv.reader(file, delimiter=self._dialect.separator)
        header = next((row for row in reader if row), [])
        return header, self._columns(reader, len(header))

    def _columns(self, reader: Any, width: int) -> Iterator[list[tuple[str, ...]]]:
        done = 0
        while rows := list(islice(reader, _BATCH_CELLS // max(width, 1) + 1)):
            # Empty lines are no rows.
            rows = list(filter(None, rows))
            for k, row in enumerate(rows, start=done + 1):
                if len(row) != width:
                    cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                    remedy = "correct that row, or close a quotation mark that is left open"
                    raise QuotesRecords(
                        f"{self.path} is not a CSV table: row {k} has {cells}, but the header has "
                        f"{width}; {remedy}",
                        f"{self.path} is not a readable table",
                    )
            done += len(rows)
            if rows:
                yield list(zip(*rows, strict=True))

    @contextmanager
    def _naming_problems(self) -> Iterator[None]:
        """Name what is wrong with a file that cannot be read."""
        try:
            yield
        except UnicodeError as error:
            raise FedLassoError(self._describe_encoding()) from error
        except csv.Error as error:
            raise FedLassoError(
                f"{self.path} is not a CSV table: {error}; close a quotation mark that is left open"
            ) from error

    def _describe_encoding(self) -> str:
        """Return the sentence that names the column that is not UTF-8."""
        with self._open("surrogateescape") as file:
            reader = csv.reader(file, delimiter=self._dialect.separator)
            header = next(reader, [])
            if all(map(_is_utf8, header)):
                for row in reader:
                    for name, cell in zip(header, row, strict=False):
                        if not _is_utf8(cell):
                            remedy = "save the file as CSV in UTF-8"
                            return f"{self.path}: column {name!r} is not UTF-8 text; {remedy}"
        return f"{self.path} {NOT_UTF8}"

    def _join_lines(self, name: str, values: Values, width: int) -> Values:
        """Return texts with the lines within a quoted cell joined by blanks.

        A line that is a whole row is not part of a cell: a quotation mark before it was left open.
        """
        if not any("\n" in level for level in values.levels):
            return values
        mark = self._dialect.separator
        row = re.compile(rf"\n([^{mark}\n]*{mark}){{{max(width - 1, 1)}}}[^\n]*(\n|\Z)")
        swallowed = [bool(row.search(level)) for level in values.levels]
        if any(swallowed):
            where = int((np.array(swallowed)[values.data] & ~values.missing).argmax())
            raise FedLassoError(
                f"{self.path}: column {name!r} holds whole rows in row {where + 1}; close the "
                "quotation mark that is left open there"
            )
        joined = [re.sub(r"\s*\n\s*", " ", level) for level in values.levels]
        return make_texts(joined, values.data, values.missing)


def _is_utf8(text: str) -> bool:
    return not any("\udc80" <= letter <= "\udcff" for letter in text)


def _add(
    columns: Sequence[_Cells], batches: Iterator[list[tuple[str, ...]]], again: bool = False
) -> None:
    for batch in batches:
        for own, cells in zip(columns, batch, strict=True):
            if own.as_text or not again:
                own.add(cells)


class _Cells:
    """The cells of one column so far, as numbers or as texts; without a `decimal` they are texts.

    `is_mixed` is whether texts came after numbers, whose own texts are gone.
    """

    def __init__(self, nulls: frozenset[str], decimal: str) -> None:
        self._nulls = nulls
        self._decimal = decimal
        self.as_text = not decimal
        self.is_mixed = False
        self._numbers: list[Values] = []
        self._index: dict[str, int] = {}
        self._places: list[NDArray[np.int64]] = []

    def add(self, cells: Sequence[str]) -> None:
        if self.is_mixed:
            return
        if not self.as_text and not self._places:
            part = self._convert(cells)
            if part is not None:
                self._numbers.append(part)
                return
            self.is_mixed = any(part.kind != "empty" for part in self._numbers)
        for cell in dict.fromkeys(cells):
            self._index.setdefault(cell, len(self._index))
        self._places.append(np.fromiter(map(self._index.__getitem__, cells), np.int64, len(cells)))

    def _convert(self, cells: Sequence[str]) -> Values | None:
        """Return cells as numbers; None if one is neither a number nor missing."""
        try:
            values = make_numbers(read_numbers(cells, self._decimal))
        except ValueError:
            pass
        else:
            if not values.missing.any():
                return values
        known = [cell not in self._nulls for cell in cells]
        filled = [cell for cell in cells if cell not in self._nulls]
        if not filled:
            return empty(len(cells))
        try:
            numbers = read_numbers(filled, self._decimal)
        except ValueError:
            return None
        data = np.zeros(len(cells), numbers.dtype)
        data[known] = numbers
        return make_numbers(data, ~np.array(known))

    def finish(self) -> Values:
        """Return all cells as one column."""
        gaps = sum(map(len, self._numbers)) if self._places else 0
        if not self._places:
            return _concatenate(self._numbers)
        # Before the first text there may be missing values.
        places = np.concatenate([np.full(gaps, len(self._index)), *self._places])
        null = np.array([level in self._nulls for level in self._index] + [True])
        return classify(Values("text", places, null[places], (*self._index, "")))


def _concatenate(parts: Collection[Values]) -> Values:
    held = [part for part in parts if part.kind != "empty"]
    if not held:
        return empty(sum(map(len, parts)))
    kind = np.result_type(*(part.data.dtype for part in held))
    data = np.concatenate([part.data.astype(kind) for part in parts])
    return make_numbers(data, np.concatenate([part.missing for part in parts]))


def read_numbers(cells: Sequence[str], decimal: str) -> NDArray[Any]:
    """Return the numbers in cells, whole ones as integers; ValueError if a cell holds none."""
    joined = "".join(cells)
    # Python reads these as parts of numbers.
    if not joined.isascii() or "_" in joined:
        raise ValueError("not numbers")
    if decimal == ",":
        if "." in joined:
            raise ValueError("not numbers")
        cells = [cell.replace(",", ".") for cell in cells]
    if not _FRACTION.search(joined):
        try:
            return np.fromiter(map(int, cells), np.int64, len(cells))
        except OverflowError:
            pass
    return np.fromiter(map(float, cells), np.float64, len(cells))
