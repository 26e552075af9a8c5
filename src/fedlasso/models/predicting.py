"""Predictions for the rows of a file, and their errors where the target is known."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedlasso.csv_text import write_csv
from fedlasso.errors import FedLassoError
from fedlasso.fitting.examination.measures import ErrorSummary, measure_errors
from fedlasso.models.document import ModelDocument
from fedlasso.numerics import Array, Response, find_loss
from fedlasso.tables import File, columns_of, encode_rows, read_outcome, to_numbers
from fedlasso.tables.targets import check_responses
from fedlasso.tables.values import Values

PREDICTION_COLUMN = "prediction"
ENDINGS = (".csv", ".parquet")


@dataclass(frozen=True, eq=False)
class Predictions:
    """One value per row, a column of row identifiers, and errors if the target is known."""

    values: Array
    id_name: str | None = None
    ids: Values | None = None
    errors: ErrorSummary | None = None

    def to_bytes(self, ending: str) -> bytes:
        """Return the contents of a .csv or .parquet file."""
        ids = {} if self.ids is None else {self.id_name: self.ids.to_list()}
        if ending == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            sink = pa.BufferOutputStream()
            pq.write_table(pa.table({**ids, PREDICTION_COLUMN: pa.array(self.values)}), sink)
            return bytes(sink.getvalue())
        values = [float(value) for value in self.values]
        rows = zip(*ids.values(), values, strict=True)
        return write_csv([[*ids, PREDICTION_COLUMN], *rows]).encode()


def predict_file(document: ModelDocument, path: Path, id_name: str | None = None) -> Predictions:
    """Return means, probabilities, rates or relative hazards for the rows of a file.

    The file needs only the columns of the model. Hazards are relative to a row at the mean of all
    columns. `id_name` is a column of the file to copy beside the predictions.
    """
    file = File(path, na=document.schema.na)
    if id_name == PREDICTION_COLUMN:
        raise FedLassoError(f"the id column cannot be called {id_name!r} too; rename it")
    if id_name is not None and id_name not in file.names:
        raise FedLassoError(f"{path} has no column {id_name!r}; {columns_of(file.names)}")
    scores = _score(document, file)
    values = find_loss(document.settings.loss).mean(scores)
    ids = None if id_name is None else dict(file.columns([id_name]))[id_name]
    return Predictions(values, id_name, ids, _measure(document, file, scores))


def _score(document: ModelDocument, file: File) -> Array:
    schema = document.schema
    used = {row.name: row.value for row in document.coefficients}
    needed = tuple(c for c in schema.columns if used.keys() & set(c.encoded))
    if schema.formula is not None:
        needed = schema.columns if used else ()
    offset = _read_offset(document, file)
    if not needed:
        (rows,) = file.groups.values()
        return np.full(len(rows), document.intercept) + offset
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
    return np.asarray(X @ b + document.intercept + offset)


def _read_offset(document: ModelDocument, file: File) -> Array:
    """Return the offset of every row, or a single zero if the model has none."""
    name = document.schema.offset
    if name is None:
        return np.zeros(1)
    if name not in file.names:
        raise FedLassoError(f"{file.path} lacks the column {name!r}, the model's offset")
    ((_, column),) = file.columns([name])
    offset = to_numbers(column, file, name)
    if bad := int((~np.isfinite(offset)).sum()):
        raise FedLassoError(
            f"{file.path}: the offset column {name!r} is missing or infinite in {bad} rows; fill it"
        )
    return offset


def _measure(document: ModelDocument, file: File, scores: Array) -> ErrorSummary | None:
    """Return errors over the rows with a known response; None if no row has a valid one."""
    outcome = replace(document.schema, offset=None, weights=None, cluster=None)
    if any(name not in file.names for name in outcome.names):
        return None
    try:
        columns = read_outcome(file, outcome)
        known = np.all([np.isfinite(numbers) for numbers in columns.values()], axis=0)
        if not known.any():
            return None
        own = {name: numbers[known] for name, numbers in columns.items()}
        response = check_responses("", outcome, own)
    except FedLassoError:
        return None
    # The empty model of R^2 and of deviance explained has the offset too.
    offset = np.broadcast_to(_read_offset(document, file), scores.shape)[known]
    rows = Response.of(response.y, offset=offset)
    return measure_errors(document.settings.response_family, rows, scores[known])
