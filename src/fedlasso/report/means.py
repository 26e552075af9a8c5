"""Means and paired differences of recorded rows, one row per cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from fedlasso.report.records import Results
from fedlasso.report.style import label, title
from fedlasso.report.tables import mean_se
from fedlasso.study import contrast, summarise
from fedlasso.study.columns import COLUMNS, known


def means(results: Results, rows: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """One row per cell: its axes, n, and ``METRIC`` and ``METRIC_se`` of every metric."""
    rows = rows[[*results.axes, "replicate", *metrics]]
    return _ordered(results, _wide(summarise(rows, metrics), results.axes, metrics))


def differences(
    results: Results, rows: pd.DataFrame, along: str, metrics: Sequence[str]
) -> pd.DataFrame:
    """Paired differences of every pair of values of one axis, later minus earlier."""
    rows = rows[[*results.axes, "replicate", *metrics]]
    axes = [axis for axis in results.axes if axis != along]
    tables = []
    for first, second in combinations(results.values(along), 2):
        table = contrast(rows, along, first, second, metrics)
        if not table.empty:
            wide = _ordered(results, _wide(table, axes, metrics))
            words = f"{title(along, second)} minus {title(along, first)}"
            wide.insert(0, "contrast", words)
            tables.append(wide)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def shown(table: pd.DataFrame, metrics: Sequence[str], sign: bool = False) -> pd.DataFrame:
    """The same cells as text: named axes, and mean (SE) in one column per metric."""
    text: dict[str, Any] = {}
    if "contrast" in table:
        text["Contrast"] = table["contrast"]
    for axis in known("axis", table):
        text[COLUMNS[axis].heading] = [label(axis, v) for v in table[axis]]
    for name in metrics:
        text[COLUMNS[name].label] = mean_se(table[name], table[f"{name}_se"], sign)
    return pd.DataFrame(text)


def _wide(long: pd.DataFrame, axes: Sequence[str], metrics: Sequence[str]) -> pd.DataFrame:
    # Every metric lists the same cells in the same order, so columns can be put side by side.
    parts = dict(list(long.groupby("metric", sort=False)))
    table = parts[metrics[0]][[*axes, "n"]].reset_index(drop=True)
    for name in metrics:
        table[name] = parts[name]["mean"].to_numpy()
        table[f"{name}_se"] = parts[name]["se"].to_numpy()
    return table


def _ordered(results: Results, table: pd.DataFrame) -> pd.DataFrame:
    by = [axis for axis in results.order if axis in table]
    position = {axis: {v: i for i, v in enumerate(results.values(axis))} for axis in by}
    return table.sort_values(
        by, key=lambda column: column.map(position[str(column.name)]), ignore_index=True
    )
