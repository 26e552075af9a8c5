"""Arrow columns, of data frames and of Parquet files, as `Values`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.tables.values import Values, empty, make_numbers, make_texts

_COLUMNS_AT_ONCE = 64


class TableSource(Protocol):
    """Where the columns of a table are."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Values]]:
        """Yield some columns."""


class ArrowTable:
    """An Arrow table in memory."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.names = tuple(table.schema.names)
        self.kinds = tuple(map(kind_of_type, table.schema.types))

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Values]]:
        for name in names:
            yield name, from_arrow(self._table.column(name))


class ParquetFile:
    """A Parquet file, with few of its columns in memory at a time."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow.parquet as pq
        except ModuleNotFoundError:
            need = "reading Parquet requires pyarrow: pip install 'fedlasso[fit]'"
            raise FedLassoError(f"{path}: {need}") from None
        self._path = path
        try:
            schema = pq.read_schema(path)
        except (OSError, ValueError) as error:
            raise FedLassoError(f"{path} is not a Parquet file") from error
        self.names = tuple(schema.names)
        self.kinds = tuple(map(kind_of_type, schema.types))

    def columns(self, names: Sequence[str]) -> Iterator[tuple[str, Values]]:
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self._path, memory_map=False) as file:
                for at in range(0, len(names), _COLUMNS_AT_ONCE):
                    part = list(names[at : at + _COLUMNS_AT_ONCE])
                    table = file.read(columns=part, use_threads=False)
                    for name in part:
                        yield name, from_arrow(table.column(name))
        except OSError as error:
            raise FedLassoError(f"cannot read {self._path}: is it damaged?") from error


def kind_of_type(kind: Any) -> str:
    """Return the kind of `Values` of a type of Arrow."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind):
        return "empty"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    return str(kind)


def from_arrow(column: Any) -> Values:
    """Return a column of an Arrow table."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = kind_of_type(column.type)
    rows = len(column)
    if kind == "empty":
        return empty(rows)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # `to_numpy` imports pandas, but `from_dlpack` does not; it takes no nulls and no bits.
    missing = _to_numpy(pc.is_null(column).cast(pa.uint8())).astype(np.bool_)
    if kind == "boolean":
        bits = _to_numpy(pc.fill_null(column, False).cast(pa.uint8()))
        return make_numbers(bits.astype(np.bool_), missing)
    if kind == "integer":
        return make_numbers(_to_numpy(pc.fill_null(column, 0)), missing)
    if kind == "number":
        numbers = column.cast(pa.float64(), safe=False)
        return make_numbers(_to_numpy(pc.fill_null(numbers, np.nan)), missing)
    try:
        texts = column.cast(pa.string())
    except pa.ArrowNotImplementedError:
        return Values(kind, np.zeros(rows, np.int64), missing, (kind,))
    levels = texts.unique().drop_null()
    places = _to_numpy(pc.fill_null(pc.index_in(texts, value_set=levels), 0)).astype(np.int64)
    return replace(make_texts(levels.to_pylist(), places, missing), kind=kind)


def _to_numpy(column: Any) -> Any:
    import pyarrow as pa

    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(np.from_dlpack(whole))
