"""Records as users hand them over: checked once, with errors that say where and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fedlasso.errors import FedLassoError
from fedlasso.numerics import Array

Checked = tuple[tuple[str, ...], tuple[Array, Array]]


def check_sample(
    site: str,
    sample: str,
    X: ArrayLike,
    y: ArrayLike,
    columns: Sequence[str] | None = None,
    *,
    copy: bool = True,
    missing: bool = False,
) -> Checked:
    """Column names, and records and responses as float64, each column contiguous.

    A sparse X stays sparse. With `missing`, values of X that are not a number may pass.
    """
    where = f"site {site!r}"
    table: Any = X if sp.issparse(X) else np.asarray(X)
    if table.ndim != 2:
        raise FedLassoError(
            f"{where}: the {sample} records have {table.ndim} dimensions; "
            "give a table of rows by columns"
        )
    m, p = table.shape
    if m == 0:
        raise FedLassoError(f"{where}: no {sample} rows; give it rows or leave the site out")
    if p == 0:
        raise FedLassoError(f"{where}: no {sample} columns; give at least one predictor")
    names = tuple(f"x{k}" for k in range(p)) if columns is None else tuple(map(str, columns))
    if len(names) != p:
        raise FedLassoError(
            f"{where}: {p} {sample} columns but {len(names)} names; every column needs one name"
        )
    if len(set(names)) < p:
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise FedLassoError(f"{where}: two columns are called {twice!r}; rename one")
    response = np.asarray(y)
    if response.ndim == 2 and response.shape[1] == 1:
        response = response[:, 0]
    if response.ndim != 1 or len(response) != m:
        raise FedLassoError(
            f"{where}: {m} {sample} rows in X but y has shape {np.shape(y)}; "
            "give one response per row"
        )
    if sp.issparse(table):
        records: Any = sp.csc_array(table, dtype=np.float64, copy=copy)
        _to_float(where, sample, records.data[:, None], ("of a sparse X",), False)
    else:
        records = _to_float(where, sample, table, names, copy, missing)
    responses = _to_float(where, sample, response[:, None], ("response y",), copy)[:, 0]
    return names, (records, responses)


def _to_float(
    where: str,
    sample: str,
    table: NDArray[np.generic],
    names: Sequence[str],
    copy: bool,
    missing: bool = False,
) -> Array:
    if table.dtype.kind not in "fiub":
        for name, column in zip(names, table.T, strict=True):
            try:
                np.asarray(column, dtype=np.float64)
            except (TypeError, ValueError):
                raise FedLassoError(
                    f"{where}: column {name!r} is not numeric in the {sample} data; "
                    "encode it as numbers first"
                ) from None
    numbers: Array = np.array(table, dtype=np.float64, order="F", copy=copy or None)
    if not np.isfinite(numbers).all():
        bad = (np.isinf(numbers) if missing else ~np.isfinite(numbers)).sum(axis=0)
        if not bad.any():
            return numbers
        k = int(np.flatnonzero(bad)[0])
        raise FedLassoError(
            f"{where}: column {names[k]!r} has {bad[k]} missing or infinite values "
            f"in the {sample} data; remove or fill them"
        )
    return numbers
