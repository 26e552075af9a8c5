"""Columns to numbers, straight into the arrays that sites keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.numerics import Array
from fedlasso.tables.files import File
from fedlasso.tables.schema import Column, Schema


@dataclass(frozen=True, eq=False)
class Encoded:
    """One site's records: X in Fortran order, missing values not a number, and their counts."""

    site: str
    X: Array
    y: Array
    missing: dict[str, int] = field(default_factory=dict)


def encode_file(file: File, schema: Schema) -> tuple[Encoded, ...]:
    """The sites in a file, each in one array of its own; columns are matched by name."""
    for name, rows in file.groups.items():
        if len(rows) < 2:
            raise FedLassoError(
                f"site {name!r} has 1 row, and what it sends would tell that row; "
                "give it at least 2 rows, or leave the site out"
            )
    p = len(schema.encoded)
    sites = [
        Encoded(name, np.empty((len(rows), p), order="F"), np.empty(len(rows)))
        for name, rows in file.groups.items()
    ]
    (_, target) = next(file.columns([schema.target]))
    values = to_numbers(target)
    for site, rows in zip(sites, file.groups.values(), strict=True):
        site.y[:] = values[rows]
        _check(site, schema.target, site.y)
        if np.isnan(site.y).any():
            raise FedLassoError(
                f"site {site.site!r}: the target {schema.target!r} is missing in "
                f"{int(np.isnan(site.y).sum())} rows; remove those rows"
            )
    _fill(file, schema, [(site.X, site) for site in sites])
    file.forget()
    return tuple(sites)


def encode_rows(file: File, schema: Schema) -> Array:
    """X for prediction; levels that the fit has not seen are refused."""
    lacking = [c.name for c in schema.columns if c.name not in file.names]
    if lacking:
        raise FedLassoError(f"{file.path} lacks the column {lacking[0]!r} that the model needs")
    ((name, rows),) = file.groups.items()
    site = Encoded(name, np.empty((len(rows), len(schema.encoded)), order="F"), np.empty(0))
    _fill(file, schema, [(site.X, site)])
    return site.X


def refuse_missing(sites: Iterable[Encoded]) -> None:
    """Say where values are missing, site by site and column by column."""
    told = []
    for site in sites:
        if site.missing:
            some = [f"{name} {count}" for name, count in list(site.missing.items())[:8]]
            more = len(site.missing) - len(some)
            told.append(f"site {site.site!r}: {', '.join(some)}" + (f", +{more}" if more else ""))
    if told:
        raise FedLassoError(f"missing values ({'; '.join(told)}); fill them, or say --missing mean")


def _fill(file: File, schema: Schema, parts: Sequence[tuple[Array, Encoded]]) -> None:
    at = 0
    known = {c.name: c for c in schema.columns}
    groups = list(file.groups.values())
    for name, values in file.columns(list(known)):
        column = known[name]
        block = (
            _text(file, column, values)
            if column.kind == "text"
            else [to_numbers(values, file, name)]
        )
        for numbers in block:
            for (X, site), rows in zip(parts, groups, strict=True):
                X[:, at] = numbers[rows]
                _check(site, name, X[:, at])
                if missing := int(np.isnan(X[:, at]).sum()):
                    site.missing[name] = missing
            at += 1


def to_numbers(column: Any, file: File | None = None, name: str = "") -> Array:
    """An Arrow column as numbers, missing ones not a number."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        # nulls become not a number
        column = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        where = file.path if file else "the table"
        raise FedLassoError(
            f"{where}: column {name!r} is not numeric, but it was when the model was fitted"
        ) from None
    numbers: Array = column.to_numpy()
    return numbers


def _text(file: File, column: Column, values: Any) -> Iterable[Array]:
    import pyarrow as pa

    place = {level: float(k) for k, level in enumerate(column.levels)}
    texts = values.cast(pa.string()).to_pylist()
    codes = np.empty(len(texts))
    for i, text in enumerate(texts):
        code = np.nan if text is None else place.get(text)
        if code is None:
            raise FedLassoError(
                f"{file.path}: column {column.name!r} holds {text!r} in row {i + 1}, a level that "
                "the model has not seen; it knows " + ", ".join(map(repr, column.levels[:6]))
            )
        codes[i] = code
    for k in range(1, len(column.levels)):
        yield np.where(np.isnan(codes), np.nan, codes == k)


def _check(site: Encoded, name: str, numbers: Array) -> None:
    if np.isinf(numbers).any():
        raise FedLassoError(
            f"site {site.site!r}: column {name!r} has {int(np.isinf(numbers).sum())} infinite "
            "values; correct or remove them"
        )
