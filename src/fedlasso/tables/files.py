"""One CSV or Parquet file, read a few columns at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError

# A CSV file is parsed as a whole; a small one is kept between the two times it is needed.
_KEEP_BYTES = 200 << 20
# One row of a CSV file must fit a block: 50,000 columns take about a megabyte.
_BLOCK_BYTES = 64 << 20
_COLUMNS_AT_ONCE = 64
_EMPTY = "is empty; give a table with a header and rows"
_NOT_UTF8 = "is not UTF-8 text; save it as CSV in UTF-8"


class File:
    """A table in a file, and which of its rows belong to which site.

    Parameters
    ----------
    path : a .csv or .parquet file
    site_column : the column that names each row's site; without it the file is one site
    site : the site's name in that case; the file's name without its ending by default
    """

    def __init__(self, path: Path, site_column: str | None = None, site: str | None = None) -> None:
        self.path = path
        self._name = site or path.stem
        self._site_column = site_column
        self._kept: Any = None
        self.schema = self._read_schema()
        # pandas keeps its row numbers in Parquet files under such names
        self.names: tuple[str, ...] = tuple(
            name for name in self.schema.names if not name.startswith("__index_level_")
        )
        for name, count in Counter(self.names).items():
            if count > 1:
                raise FedLassoError(f"{path}: two columns are called {name!r}; rename one")
        if site_column is not None and site_column not in self.names:
            raise FedLassoError(
                f"{path} has no column {site_column!r} to tell the sites apart; "
                f"{columns_of(self.names)}"
            )
        self.groups = self._group()
        # Only the columns that are asked for are read again.
        if path.stat().st_size > _KEEP_BYTES:
            self._kept = None

    def _read_schema(self) -> Any:
        try:
            import pyarrow.parquet as pq
        except ModuleNotFoundError:
            raise FedLassoError(
                "reading files takes pyarrow: pip install 'fedlasso[fit]'"
            ) from None
        if not self.path.exists():
            raise FedLassoError(f"{self.path}: no such file")
        if self.path.is_dir():
            raise FedLassoError(f"{self.path} is a folder; name a .csv or .parquet file")
        if self.path.stat().st_size == 0:
            raise FedLassoError(f"{self.path} {_EMPTY}")
        if self.path.suffix.lower() not in (".csv", ".parquet"):
            raise FedLassoError(f"{self.path}: cannot read this kind of file; use .csv or .parquet")
        if self.path.suffix.lower() == ".csv":
            return self._table().schema
        try:
            return pq.read_schema(self.path)
        except (OSError, ValueError) as error:
            raise FedLassoError(f"{self.path} is not a Parquet file") from error

    def _table(self) -> Any:
        """A CSV file as an Arrow table."""
        import pyarrow as pa
        import pyarrow.csv as csv

        if self._kept is not None:
            return self._kept
        with self.path.open("rb") as start:
            if b"\0" in start.read(4096):
                raise FedLassoError(f"{self.path} {_NOT_UTF8}")
        try:
            table = csv.read_csv(
                self.path,
                read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
                convert_options=csv.ConvertOptions(strings_can_be_null=True),
            )
            for name in table.schema.names:
                name.encode()
        except (pa.ArrowInvalid, UnicodeError) as error:
            wrong = f"is not a CSV table: {error}"
            if isinstance(error, UnicodeError) or "UTF8" in str(error):
                wrong = _NOT_UTF8
            elif "Empty CSV" in str(error):
                wrong = _EMPTY
            raise FedLassoError(f"{self.path} {wrong}") from error
        except OSError as error:
            raise FedLassoError(f"cannot read {self.path}: {error.strerror}") from error
        for field in table.schema:
            # A column of another encoding is read as bytes.
            if pa.types.is_binary(field.type):
                raise FedLassoError(
                    f"{self.path}: column {field.name!r} is not UTF-8 text; "
                    "save the file as CSV in UTF-8"
                )
        self._kept = table
        return table

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Name and Arrow column, a few of them in memory at a time."""
        import pyarrow.parquet as pq

        if self.path.suffix.lower() == ".csv":
            table = self._table()
            for name in names:
                yield name, table.column(name)
            return
        with pq.ParquetFile(self.path, memory_map=False) as file:
            for at in range(0, len(names), _COLUMNS_AT_ONCE):
                part = list(names[at : at + _COLUMNS_AT_ONCE])
                table = file.read(columns=part, use_threads=False)
                for name in part:
                    yield name, table.column(name)

    def forget(self) -> None:
        """Let go of what was kept."""
        self._kept = None

    def _group(self) -> dict[str, NDArray[np.int64]]:
        if not self.names:
            raise FedLassoError(f"{self.path} has no columns")
        ((_, column),) = self.columns([self._site_column or self.names[0]])
        n = len(column)
        if n == 0:
            raise FedLassoError(f"{self.path} has a header but no rows; give it rows")
        if self._site_column is None:
            return {self._name: np.arange(n)}
        if column.null_count:
            raise FedLassoError(
                f"{self.path}: {column.null_count} rows name no site in {self._site_column!r}"
            )
        labels = np.array([str(value) for value in column.to_pylist()])
        names, place = np.unique(labels, return_inverse=True)
        order = np.argsort(place, kind="stable")
        ends = np.cumsum(np.bincount(place))[:-1]
        return {str(n): rows for n, rows in zip(names, np.split(order, ends), strict=True)}


def columns_of(names: Sequence[str]) -> str:
    """A short list of columns for a message."""
    some = ", ".join(map(repr, names[:6]))
    return f"its columns are {some}" + (f" and {len(names) - 6} more" if len(names) > 6 else "")
