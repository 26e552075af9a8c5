"""Data frames as tables: pandas, Polars, Arrow and whatever exports Arrow columns."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.tables.arrow import ArrowTable, TableSource
from fedlasso.tables.files import File


class Frame(File):
    """An Arrow table in memory, with the rows of each site; messages call it X."""

    def __init__(
        self,
        table: Any,
        groups: Mapping[str, NDArray[np.int64]],
        na: Sequence[str] = (),
        categorical: Sequence[str] = (),
    ) -> None:
        self._frame = ArrowTable(table)
        self._rows = dict(groups)
        super().__init__(Path("X"), na=na, categorical=categorical)

    def _source(self) -> TableSource:
        return self._frame

    def _group(self) -> dict[str, NDArray[np.int64]]:
        return self._rows


def is_frame(X: Any) -> bool:
    """Return whether an object is a data frame or an Arrow table."""
    return any(hasattr(X, name) for name in ("__arrow_c_stream__", "__dataframe__"))


def holds_measurements(frame: Any) -> bool:
    """Return whether every column of a data frame has numbers or booleans, and none identifies."""
    kinds = (getattr(kind, "kind", str(kind)[:1].lower()) for kind in getattr(frame, "dtypes", "O"))
    if not all(kind in "biuf" for kind in kinds):
        return False
    # Without pyarrow, numbers are read as they are.
    return find_spec("pyarrow") is None or not Frame(to_arrow(frame), {}).identifiers


def to_arrow(frame: Any) -> Any:
    """Return a data frame as an Arrow table; values of a categorical column become texts."""
    try:
        import pyarrow as pa
        import pyarrow.interchange
    except ModuleNotFoundError:
        need = "text columns require pyarrow: pip install 'fedlasso[fit]'"
        raise FedLassoError(need) from None
    try:
        if hasattr(frame, "iloc"):
            table = pa.Table.from_pandas(frame, preserve_index=False)
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            table = pyarrow.interchange.from_dataframe(frame)
    except (TypeError, ValueError) as error:
        reason = ", ".join(map(str, error.args))
        raise FedLassoError(f"X: {reason}; give each column one name and one type") from error
    for k, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            texts = [own.dictionary.cast(pa.string()).take(own.indices) for own in column.chunks]
        elif pa.types.is_string_view(column.type):
            texts = [own.cast(pa.string()) for own in column.chunks]
        else:
            continue
        table = table.set_column(k, table.schema.names[k], pa.chunked_array(texts, pa.string()))
    return table
