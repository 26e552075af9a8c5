"""A table in a file, read a few columns at a time."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.tables.arrow import ParquetFile, TableSource
from fedlasso.tables.formats import check_file, ending_of, is_text, read_excel, read_text, stem_of
from fedlasso.tables.values import Values, to_float

# Names of columns that may just number the rows, and of columns that identify patients.
_ROW_NUMBERS = re.compile(
    r"unnamed: ?\d+|index|level_0|id|#|rows?|rownum|rownames|row[ _.](number|names?|id|index)",
    re.IGNORECASE,
)
_IDENTIFIERS = re.compile(
    r"(?i:(.*[ _.-])?(id|mrn|pid|uid|key)|(patient|subject|participant|person|record|case)"
    r"([ _.-]?(no|nr|number|code|key))?)|.*[a-z](ID|Id)"
)
# Fewest rows whose differing values may identify them. Differing whole numbers do if, drawn at
# random from their range, they would all differ with a probability below exp(-_SURELY).
_FEWEST_DIFFERING = 10
_SURELY = 14.0


class File:
    """A table in a file, with the rows of each site.

    Parameters
    ----------
    path : a .csv, .tsv, .txt (also with .gz), .parquet or .xlsx file
    site_column : column that names each row's site; without it the file is one site
    site : name of that one site; by default the file's name without its extension
    na : texts and numbers that mean a missing value, besides the usual ones
    categorical : columns whose numbers are codes of levels, read as text

    Attributes
    ----------
    by_text : whether the file stores numbers as text
    names, unnamed : columns with a name, and the number of those without, which are left out
    types : the kind of every column; see `Values`
    groups : rows of each site
    """

    def __init__(
        self,
        path: Path,
        site_column: str | None = None,
        site: str | None = None,
        na: Sequence[str] = (),
        categorical: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.na = tuple(na)
        self.categorical = frozenset(categorical)
        self.by_text = is_text(path)
        self._name = site or stem_of(path)
        self._site_column = site_column
        self._kept: TableSource | None = None
        source = self._source()
        self.types = dict(zip(source.names, source.kinds, strict=True))
        # pandas stores its index in Parquet files under such names.
        named = [name for name in source.names if not name.startswith("__index_level_")]
        self.names: tuple[str, ...] = tuple(name for name in named if name.strip())
        self.unnamed = len(named) - len(self.names)
        for name, count in Counter(self.names).items():
            if count > 1:
                raise FedLassoError(f"{path}: two columns are called {name!r}; rename one")
        if site_column is not None and site_column not in self.names:
            raise FedLassoError(
                f"{path} has no site column {site_column!r}; {columns_of(self.names)}"
            )
        self.groups = self._group()

    def _source(self) -> TableSource:
        if self._kept is None:
            check_file(self.path)
            self._kept = self._open()
        return self._kept

    def _open(self) -> TableSource:
        if ending_of(self.path) == ".parquet":
            return ParquetFile(self.path)
        return read_text(self.path, self.na) if self.by_text else read_excel(self.path, self.na)

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns that identify the rows, by their values: numbers of rows, patients' numbers."""
        suspects = [
            name
            for name in self.names
            if self.types[name] in ("integer", "text") or _ROW_NUMBERS.fullmatch(name.strip())
        ]
        suspects = [name for name in suspects if name not in self.categorical]
        columns = self.columns(suspects)
        return tuple(name for name, values in columns if _identifies_rows(name.strip(), values))

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Values]]:
        """Yield names and columns; of a Parquet file few are in memory at a time."""
        for name, column in self._source().columns(names):
            values = column.without(self.na) if self.na else column
            yield name, values.texts() if name in self.categorical else values

    def forget(self) -> None:
        """Release the memory of the table."""
        self._kept = None

    def _group(self) -> dict[str, NDArray[np.int64]]:
        if not self.names:
            raise FedLassoError(f"{self.path} has no columns")
        ((_, column),) = self.columns([self._site_column or self.names[0]])
        n = len(column)
        if n == 0:
            raise FedLassoError(f"{self.path} has a header but no rows; add rows")
        if self._site_column is None:
            return {self._name: np.arange(n)}
        if column.gaps:
            raise FedLassoError(
                f"{self.path}: {column.gaps} row{'s' * (column.gaps > 1)} without a site in "
                f"{self._site_column!r}; fill it, or remove those rows"
            )
        labels = np.array([str(value) for value in column.to_list()])
        names, place = np.unique(labels, return_inverse=True)
        order = np.argsort(place, kind="stable")
        ends = np.cumsum(np.bincount(place))[:-1]
        return {str(n): rows for n, rows in zip(names, np.split(order, ends), strict=True)}


def _identifies_rows(name: str, values: Values) -> bool:
    """Whether values differ in every row as row numbers do, or as identifiers of patients."""
    n = len(values)
    if values.gaps or n < 2:
        return False
    # Most columns repeat a value soon.
    start = values.take(slice(100))
    if start.distinct() < len(start) or values.distinct() < n:
        return False
    if values.kind not in ("integer", "number"):
        # Numbers with a stray text among them are refused elsewhere.
        texts = [text.replace(",", ".") for text in start.texts().to_list()]
        return n >= _FEWEST_DIFFERING and all(to_float(text) is None for text in texts)
    numbers = values.numbers()
    if not (numbers == np.rint(numbers)).all():
        return False
    if _ROW_NUMBERS.fullmatch(name) and numbers[0] in (0, 1) and (np.diff(numbers) == 1).all():
        return True
    reach = float(np.ptp(numbers)) + 1
    dense = reach == n or n * n > 2 * _SURELY * reach
    return n >= _FEWEST_DIFFERING and (dense or _IDENTIFIERS.fullmatch(name) is not None)


def columns_of(names: Sequence[str]) -> str:
    """Return a short list of columns for a message."""
    some = ", ".join(map(repr, names[:6]))
    return f"its columns are {some}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")
