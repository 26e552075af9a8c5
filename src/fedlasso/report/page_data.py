"""The rows behind the page: every double exactly as recorded, stored once, deflated.

A cell is one value of every axis. For each quantity it points to a vector over the scenario's
replicates. Equal vectors (joint and upload-only at E = 1, both rules of CD) are stored once, and a
quantity that is the same in every replicate (bytes, steps) is a vector of length one.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import asdict
from typing import Any

import numpy as np

from fedlasso.report.records import Results
from fedlasso.report.style import label, looks, title
from fedlasso.study.columns import COLUMNS, Kind, known

KINDS: tuple[Kind, ...] = ("metric", "cost", "note")


class Vectors:
    """Vectors of doubles end to end, equal ones once."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self.spans: list[tuple[int, int]] = []
        self._length = 0
        self._chunks: list[bytes] = []

    def add(self, values: np.ndarray[Any, np.dtype[np.float64]]) -> int:
        """Number of the vector, stored if it is new."""
        if len(values) > 1 and (values == values[0]).all():
            values = values[:1]
        data = np.ascontiguousarray(values, dtype="<f8").tobytes()
        if data not in self._known:
            self._known[data] = len(self.spans)
            self.spans.append((self._length, len(values)))
            self._length += len(values)
            self._chunks.append(data)
        return self._known[data]

    def encode(self) -> str:
        """Little-endian doubles, deflated, as base64."""
        return base64.b64encode(zlib.compress(b"".join(self._chunks), 9)).decode()


def page_data(results: Results) -> dict[str, Any]:
    """What the page's script reads, ready for JSON."""
    rows = results.outcome
    columns = [name for kind in KINDS for name in known(kind, rows)]
    replicates = {
        scenario: sorted(set(rows.loc[rows["scenario"] == scenario, "replicate"].tolist()))
        for scenario in results.values("scenario")
    }
    vectors = Vectors()
    codes = {axis: {v: i for i, v in enumerate(results.values(axis))} for axis in results.axes}
    cells = []
    for key, cell in rows.groupby(results.axes, sort=False):
        where = dict(zip(results.axes, key, strict=True))
        wanted = replicates[where["scenario"]]
        if len(cell) != len(wanted):  # a cell that lacks replicates has missing values, not others
            cell = cell.set_index("replicate").reindex(wanted)
        values = cell[columns].to_numpy(dtype="<f8")
        pointers = [vectors.add(values[:, j]) for j in range(len(columns))]
        cells.append([codes[a][v] for a, v in where.items()] + pointers)
    places = [results.axes.index(axis) for axis in results.order]
    cells.sort(key=lambda cell: [cell[i] for i in places])
    return {
        "study": results.manifest.name,
        "axes": [
            {
                **_column(axis),
                "values": results.values(axis),
                "titles": [title(axis, v) for v in results.values(axis)],
                "words": [label(axis, v) for v in results.values(axis)],
            }
            for axis in results.axes
        ],
        "primary": results.primary,
        "columns": [_column(name) for name in columns],
        "methods": {m: asdict(look) for m, look in looks(results.values("method")).items()},
        "replicates": list(replicates.values()),
        "cells": cells,
        "spans": vectors.spans,
        "doubles": vectors.encode(),
    }


def _column(name: str) -> dict[str, Any]:
    """The entry of a column in the table of columns, with its heading."""
    return asdict(COLUMNS[name]) | {"heading": COLUMNS[name].heading}
