"""One column of a table: numbers, or texts stored as places among their levels."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics import Array

NUMBERS = ("integer", "number", "boolean")
_BOOLEAN = {"true": True, "false": False}
_TIME = r"\d\d:\d\d(:\d\d(\.\d+)?)?"
_DATE = re.compile(rf"\d{{4}}-\d\d-\d\d([ T]{_TIME}(Z|[+-]\d\d(:?\d\d)?)?)?|{_TIME}")
# What float accepts beyond numbers as they are written in tables.
_NO_NUMBER = re.compile(r"[^\x00-\x7f]|_")


@dataclass(frozen=True, eq=False)
class Values:
    """The values of one column.

    Attributes
    ----------
    kind : "integer", "number", "boolean", "text", "empty", or a name of what else they are
    data : a number per row, or the place of its text in `levels`; anything where one is missing
    missing : whether a row has no value; NaN is none
    levels : the different texts, also of what is neither numbers nor text
    """

    kind: str
    data: NDArray[Any]
    missing: NDArray[np.bool_]
    levels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.data)

    @property
    def by_levels(self) -> bool:
        return self.kind not in (*NUMBERS, "empty")

    @property
    def gaps(self) -> int:
        """Number of rows without a value."""
        return int(self.missing.sum())

    @property
    def filled(self) -> Values:
        """The rows that have a value."""
        return self.take(~self.missing)

    def take(self, rows: Any) -> Values:
        return replace(self, data=self.data[rows], missing=self.missing[rows])

    def without(self, codes: Sequence[str]) -> Values:
        """Return the column without its codes for missing values; -999.0 is -999."""
        if self.by_levels:
            places = [k for k, level in enumerate(self.levels) if level in codes]
            coded = np.isin(self.data, places)
        elif self.kind in ("integer", "number"):
            coded = np.isin(self.data, [n for n in map(to_float, codes) if n is not None])
        else:
            return self
        return replace(self, missing=self.missing | coded)

    def pooled(self, kept: Collection[str], other: str) -> Values:
        """Return texts with all levels replaced that are not kept."""
        return make_texts(
            [level if level in kept else other for level in self.levels], self.data, self.missing
        )

    def numbers(self) -> Array:
        """Return a number per row, with NaN for a missing value; ValueError if one is a text."""
        if self.kind == "text":
            used = np.unique(self.data[~self.missing])
            read = np.full(len(self.levels), np.nan)
            for place in used.tolist():
                read[place] = read_number(self.levels[place])
            out = read[self.data] if read.size else np.full(len(self), np.nan)
        elif self.by_levels:
            raise ValueError(f"{self.kind} are no numbers")
        else:
            out = np.array(self.data, np.float64)
        out[self.missing] = np.nan
        return out

    def texts(self) -> Values:
        """Return the values as texts; 1 and 1.0 are the same code."""
        if self.by_levels:
            return self
        found, places = np.unique(self.data[~self.missing], return_inverse=True)
        data = np.zeros(len(self), np.int64)
        data[~self.missing] = places
        if self.kind == "boolean":
            levels = ["true" if value else "false" for value in found.tolist()]
        elif self.kind == "number":
            levels = [f"{value:.15g}" for value in found.tolist()]
        else:
            levels = list(map(str, found.tolist()))
        return make_texts(levels, data, self.missing)

    def counts(self) -> dict[str, int]:
        """Return how many rows each text has, for texts that some row has."""
        texts = self.texts()
        rows = np.bincount(texts.data[~texts.missing], minlength=len(texts.levels)).tolist()
        return {level: count for level, count in zip(texts.levels, rows, strict=True) if count}

    def distinct(self) -> int:
        """Return the number of different values."""
        return len(np.unique(self.data[~self.missing]))

    def to_list(self) -> list[Any]:
        """Return Python's values, None for a missing one."""
        rows = zip(self.data.tolist(), self.missing.tolist(), strict=True)
        if self.by_levels:
            return [None if none else self.levels[place] for place, none in rows]
        return [None if none else value for value, none in rows]

    def places_in(self, levels: Sequence[str]) -> NDArray[np.int64]:
        """Return the place of each text among other levels, -1 for another and a missing one."""
        place = {level: k for k, level in enumerate(levels)}
        texts = self.texts()
        known = np.array([place.get(level, -1) for level in texts.levels], np.int64)
        found = known[texts.data] if known.size else np.full(len(texts), -1)
        found[texts.missing] = -1
        return found


def to_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def read_number(text: str) -> float:
    """Return the number that a cell of a table holds; ValueError if it is none."""
    if _NO_NUMBER.search(text):
        raise ValueError("not a number")
    return float(text)


def make_texts(
    levels: Sequence[str], places: NDArray[np.int64], missing: NDArray[np.bool_]
) -> Values:
    """Return texts by their places among levels, some of which may be the same."""
    different = tuple(dict.fromkeys(levels))
    if len(different) < len(levels):
        place = {level: k for k, level in enumerate(different)}
        places = np.array([place[level] for level in levels])[places]
    return Values("text", places, missing, different)


def classify(texts: Values) -> Values:
    """Return texts as what they are: Boolean values, dates, or nothing at all."""
    held = [texts.levels[place] for place in np.unique(texts.data[~texts.missing]).tolist()]
    if not held:
        return empty(len(texts))
    if all(text.lower() in _BOOLEAN for text in held):
        known = np.array([_BOOLEAN.get(text.lower(), False) for text in texts.levels])
        return Values("boolean", known[texts.data], texts.missing)
    if all(map(_DATE.fullmatch, held)):
        return replace(texts, kind="dates")
    return texts


def make_numbers(data: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Values:
    """Return numbers; NaN is a missing value."""
    kind = {"i": "integer", "u": "integer", "b": "boolean"}.get(data.dtype.kind, "number")
    gaps = np.zeros(len(data), np.bool_) if missing is None else missing
    return Values(kind, data, gaps | np.isnan(data) if kind == "number" else gaps)


def empty(rows: int) -> Values:
    return Values("empty", np.zeros(rows), np.ones(rows, np.bool_))


def from_cells(cells: Sequence[Any]) -> Values:
    """Return cells of a workbook, None if empty: numbers, also those stored as text, or texts."""
    missing = np.array([cell is None for cell in cells], np.bool_)
    filled = [cell for cell in cells if cell is not None]
    if not filled:
        return empty(len(cells))
    data: Any = np.zeros(len(cells), np.int64)
    if (numeric := _kind_of_cells(filled)) is not None:
        data = data.astype(numeric)
        data[~missing] = [float(cell) for cell in filled] if numeric == "float64" else filled
        return make_numbers(data, missing)
    index: dict[str, int] = {}
    data[~missing] = [index.setdefault(str(cell), len(index)) for cell in filled]
    dates = (datetime.date, datetime.time, datetime.timedelta)
    kind = "dates" if all(isinstance(cell, dates) for cell in filled) else "text"
    return replace(make_texts(list(index), data, missing), kind=kind)


def _kind_of_cells(filled: Sequence[Any]) -> Literal["bool", "int64", "float64"] | None:
    """Return the type of array that holds these cells; None for text."""
    kinds = {type(cell) for cell in filled}
    if kinds == {bool}:
        return "bool"
    if kinds == {int} and max(map(abs, filled)) < 1 << 63:
        return "int64"
    if bool in kinds or not kinds <= {int, float, str}:
        return None
    try:
        list(map(float, filled))
    except (ValueError, OverflowError):
        return None
    return "float64"
