"""Means with Monte Carlo standard errors, and differences paired within replicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.study.columns import axes, known

if TYPE_CHECKING:
    import pandas as pd


def summarise(rows: pd.DataFrame, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Mean, Monte Carlo standard error sd/sqrt(n) and n of each metric in each cell (long form)."""
    by = known("axis", rows)
    long = rows.melt(by, list(metrics) or known("metric", rows), "metric", "value")
    groups = long.groupby([*by, "metric"], sort=False, dropna=False)["value"]
    table = groups.agg(mean="mean", sd="std", n="count").reset_index()
    table["se"] = table["sd"] / np.sqrt(table["n"])
    return table.drop(columns="sd")


def contrast(
    rows: pd.DataFrame, along: str, first: object, second: object, metrics: Sequence[str] = ()
) -> pd.DataFrame:
    """Paired differences ``second - first`` of one axis (method, epochs, rule, ...), summarised."""
    if along not in axes():
        raise FedLassoError(f"cannot contrast along {along!r}; use one of {', '.join(axes())}")
    metrics = list(metrics) or known("metric", rows)
    keys = [name for name in known("axis", rows) if name != along] + ["replicate"]
    a, b = (rows[rows[along] == value].set_index(keys)[metrics] for value in (first, second))
    differences = (b - a).dropna(how="all").reset_index()
    table = summarise(differences, metrics)
    table.insert(0, "contrast", f"{along} {_label(second)} minus {_label(first)}")
    table["low"] = table["mean"] - 1.96 * table["se"]
    table["high"] = table["mean"] + 1.96 * table["se"]
    return table


def _label(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
