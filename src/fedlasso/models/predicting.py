"""Predictions for the rows of a file, and how good they are where the target is known."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.models.document import ModelDocument
from fedlasso.numerics import Array
from fedlasso.tables import File, columns_of, encode_rows, to_numbers

PREDICTION = "prediction"
ENDINGS = (".csv", ".parquet")


@dataclass(frozen=True)
class Errors:
    """How far predictions are from a known target: R^2 is missing where the target is constant."""

    rows: int
    mse: float
    r2: float | None

    def __str__(self) -> str:
        explained = "" if self.r2 is None else f", R^2 {self.r2:.4g}"
        return f"{self.rows} rows, MSE {self.mse:.4g}, RMSE {self.mse**0.5:.4g}{explained}"


@dataclass(frozen=True, eq=False)
class Predictions:
    """One value per row of a file, the identities of the rows, and errors if the target is there.

    `ids` is a column of the file, in Arrow, called `id_name`.
    """

    values: Array
    id_name: str | None = None
    ids: Any = None
    errors: Errors | None = None

    def to_bytes(self, ending: str) -> bytes:
        """Return them as a .csv or .parquet file."""
        if ending == ".parquet":
            return self._to_parquet()
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        told = [repr(float(value)) for value in self.values]
        if self.ids is None:
            table.writerow([PREDICTION])
            table.writerows([value] for value in told)
        else:
            table.writerow([self.id_name, PREDICTION])
            table.writerows(zip(self.ids.to_pylist(), told, strict=True))
        return out.getvalue().encode()

    def _to_parquet(self) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {PREDICTION: pa.array(self.values)}
        if self.id_name is not None:
            columns = {self.id_name: self.ids, **columns}
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns), sink)
        data: bytes = sink.getvalue().to_pybytes()
        return data


def predict_file(document: ModelDocument, path: Path, id_name: str | None = None) -> Predictions:
    """Return predictions for the rows of a file, which needs only the columns that the model uses.

    Parameters
    ----------
    document : the model
    path : a file with the columns whose coefficients are not zero
    id_name : a column of the file to show beside the predictions
    """
    file = File(path, na=document.schema.na)
    if id_name == PREDICTION:
        raise FedLassoError(f"the identities cannot be called {id_name!r} too; rename that column")
    if id_name is not None and id_name not in file.names:
        raise FedLassoError(f"{path} has no column {id_name!r}; {columns_of(file.names)}")
    values = _predict(document, file)
    ids = None if id_name is None else dict(file.columns([id_name]))[id_name]
    return Predictions(values, id_name, ids, _measure(document, file, values))


def _predict(document: ModelDocument, file: File) -> Array:
    schema = document.schema
    used = {row.name: row.value for row in document.coefficients}
    needed = tuple(c for c in schema.columns if used.keys() & set(c.encoded))
    if not needed:
        (rows,) = file.groups.values()
        return np.full(len(rows), document.intercept)
    schema = replace(schema, columns=needed)
    X = encode_rows(file, schema)
    holes = np.isnan(X)
    if holes.any():
        if document.means is None:
            name = schema.encoded[holes.any(axis=0).argmax()]
            raise FedLassoError(
                f"{file.path}: column {name!r} has {int(holes.any(axis=1).sum())} missing values; "
                "fill them, or fit with --missing mean"
            )
        means = dict(zip(document.schema.encoded, document.means, strict=True))
        X = np.where(holes, [means[name] for name in schema.encoded], X)
    b = np.array([used.get(name, 0.0) for name in schema.encoded])
    prediction: Array = X @ b + document.intercept
    return prediction


def _measure(document: ModelDocument, file: File, values: Array) -> Errors | None:
    """Errors over the rows whose target is known; none where no row's is a number."""
    target = document.schema.target
    if target not in file.names:
        return None
    ((_, column),) = file.columns([target])
    try:
        y = to_numbers(column, file, target)
    except FedLassoError:
        return None
    known = np.isfinite(y)
    if not known.any():
        return None
    y = y[known]
    mse = float(np.mean((y - values[known]) ** 2))
    spread = float(np.var(y))
    return Errors(len(y), mse, 1 - mse / spread if spread > 0 else None)
