"""A table in a file, read a few columns at a time."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.tables.formats import check_file, ending_of, is_text, read_excel, read_text, stem_of

# Text is parsed as a whole; tables up to this size are kept in memory.
_KEEP_BYTES = 200 << 20
_COLUMNS_AT_ONCE = 64
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


def require_reader() -> None:
    """Refuse to read files if the package that reads them is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        need = "reading files requires pyarrow: pip install 'fedlasso[fit]'"
        raise FedLassoError(need) from None


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
        self._by_columns = ending_of(path) == ".parquet"
        self._name = site or stem_of(path)
        self._site_column = site_column
        self._kept: Any = None
        self.schema = self._read_schema()
        # pandas stores its index in Parquet files under such names.
        named = [name for name in self.schema.names if not name.startswith("__index_level_")]
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
        # A large table is parsed again when its columns are needed.
        if self._kept is not None and self._kept.nbytes > _KEEP_BYTES:
            self._kept = None

    def _read_schema(self) -> Any:
        require_reader()
        import pyarrow.parquet as pq

        check_file(self.path)
        if not self._by_columns:
            return self._table().schema
        try:
            return pq.read_schema(self.path)
        except (OSError, ValueError) as error:
            raise FedLassoError(f"{self.path} is not a Parquet file") from error

    def _table(self) -> Any:
        if self._kept is None:
            read = read_text if self.by_text else read_excel
            self._kept = read(self.path, self.na)
        return self._kept

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns that identify the rows, by their values: numbers of rows, patients' numbers."""
        import pyarrow.types as types

        kinds = (types.is_integer, types.is_string, types.is_large_string)
        suspects = [
            name
            for name in self.names
            if any(is_one(self.schema.field(name).type) for is_one in kinds)
            or _ROW_NUMBERS.fullmatch(name.strip())
        ]
        suspects = [name for name in suspects if name not in self.categorical]
        columns = self.columns(suspects)
        return tuple(name for name, values in columns if _identifies_rows(name.strip(), values))

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yield names and Arrow columns, with few of them in memory at a time."""
        import pyarrow.parquet as pq

        if not names:
            return
        if not self._by_columns:
            table = self._table()
            for name in names:
                yield name, self._read(name, table.column(name))
            return
        try:
            with pq.ParquetFile(self.path, memory_map=False) as file:
                for at in range(0, len(names), _COLUMNS_AT_ONCE):
                    part = list(names[at : at + _COLUMNS_AT_ONCE])
                    table = file.read(columns=part, use_threads=False)
                    for name in part:
                        yield name, self._read(name, table.column(name))
        except OSError as error:
            raise FedLassoError(f"cannot read {self.path}: is it damaged?") from error

    def _read(self, name: str, column: Any) -> Any:
        values = self._without_codes(column)
        return to_texts(values) if name in self.categorical else values

    def _without_codes(self, column: Any) -> Any:
        """Return a column with its codes for missing values replaced by null; -999.0 is -999."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.na:
            return column
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        if any(is_one(column.type) for is_one in numeric):
            codes = pa.array([n for n in map(to_float, self.na) if n is not None], pa.float64())
            coded = pc.is_in(column.cast(pa.float64(), safe=False), value_set=codes)
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            coded = pc.is_in(column, value_set=pa.array(self.na, column.type))
        else:
            return column
        return pc.if_else(coded, pa.scalar(None, column.type), column)

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
        if column.null_count:
            raise FedLassoError(
                f"{self.path}: {column.null_count} rows have no site in {self._site_column!r}"
            )
        labels = np.array([str(value) for value in column.to_pylist()])
        names, place = np.unique(labels, return_inverse=True)
        order = np.argsort(place, kind="stable")
        ends = np.cumsum(np.bincount(place))[:-1]
        return {str(n): rows for n, rows in zip(names, np.split(order, ends), strict=True)}


def to_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def to_texts(values: Any) -> Any:
    """Return an Arrow column as text; 1 and 1.0 are the same code."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not pa.types.is_floating(values.type):
        return values.cast(pa.string())
    numbers = values.to_pylist()
    texts = [None if n is None or n != n else f"{n:.15g}" for n in numbers]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _identifies_rows(name: str, values: Any) -> bool:
    """Whether values differ in every row as row numbers do, or as identifiers of patients."""
    import pyarrow as pa

    n = len(values)
    if values.null_count or n < 2:
        return False
    # Most columns repeat a value soon.
    start = values.slice(0, 100)
    if len(start.unique()) < len(start) or len(values.unique()) < n:
        return False
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        # Numbers with a stray text among them are refused elsewhere.
        texts = [text.replace(",", ".") for text in start.to_pylist()]
        return n >= _FEWEST_DIFFERING and all(to_float(text) is None for text in texts)
    numbers = values.to_numpy().astype(np.float64)
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
