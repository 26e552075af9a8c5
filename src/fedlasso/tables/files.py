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
# Names of columns that may just number the rows.
_ROW_NUMBERS = re.compile(
    r"unnamed: ?\d+|index|level_0|id|#|rows?|rownum|rownames|row[ _.](number|names?|id|index)",
    re.IGNORECASE,
)


class File:
    """A table in a file, with the rows of each site.

    Parameters
    ----------
    path : a .csv, .tsv, .txt (also with .gz), .parquet or .xlsx file
    site_column : column that names each row's site; without it the file is one site
    site : name of that one site; by default the file's name without its extension
    na : texts and numbers that mean a missing value, besides the usual ones

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
    ) -> None:
        self.path = path
        self.na = tuple(na)
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
        try:
            import pyarrow.parquet as pq
        except ModuleNotFoundError:
            need = "reading files requires pyarrow: pip install 'fedlasso[fit]'"
            raise FedLassoError(need) from None
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
    def row_numbers(self) -> tuple[str, ...]:
        """Columns that just number the rows, by their names and values."""
        suspects = [name for name in self.names if _ROW_NUMBERS.fullmatch(name.strip())]
        return tuple(name for name, values in self.columns(suspects) if _numbers_rows(values))

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yield names and Arrow columns, with few of them in memory at a time."""
        import pyarrow.parquet as pq

        if not names:
            return
        if not self._by_columns:
            table = self._table()
            for name in names:
                yield name, self._without_codes(table.column(name))
            return
        try:
            with pq.ParquetFile(self.path, memory_map=False) as file:
                for at in range(0, len(names), _COLUMNS_AT_ONCE):
                    part = list(names[at : at + _COLUMNS_AT_ONCE])
                    table = file.read(columns=part, use_threads=False)
                    for name in part:
                        yield name, self._without_codes(table.column(name))
        except OSError as error:
            raise FedLassoError(f"cannot read {self.path}: is it damaged?") from error

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


def _numbers_rows(values: Any) -> bool:
    """Whether values are 0, 1, 2, ... or 1, 2, 3, ..."""
    import pyarrow as pa

    whole = pa.types.is_integer(values.type)
    if values.null_count or not (whole or pa.types.is_floating(values.type)):
        return False
    numbers = values.to_numpy().astype(np.float64)
    return len(numbers) > 1 and numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


def columns_of(names: Sequence[str]) -> str:
    """Return a short list of columns for a message."""
    some = ", ".join(map(repr, names[:6]))
    return f"its columns are {some}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")
