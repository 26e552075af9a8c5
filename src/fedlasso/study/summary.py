"""Means, differences paired within replicate, and whether a study's numbers hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.study.columns import axes, known

if TYPE_CHECKING:
    import pandas as pd

    from fedlasso.study.store import Store


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


def diagnose(store: Store) -> str:
    """Lines a reader can check: what is finished, and what met its tolerance."""
    manifest = store.manifest()
    tasks = [(s, r) for s in manifest.scenarios for r in range(manifest.replicates)]
    parts = store.parts()
    failures = store.failures()
    lines = [f"replicates: {sum(t in parts for t in tasks)} of {len(tasks)} finished"]
    if failures:
        lines[0] += f", {len(failures)} failed"
    if parts:
        tables = store.tables(["reference", "penalty"])
        references = tables["reference"]
        penalties = tables["penalty"]
        lines += _met(
            "pooled Lasso fits that are exact (stationarity <= 1e-9)", references, "stationarity"
        )
        lines += _met(
            "penalty paths of sites that are exact (gap <= 1e-10)", penalties, "worst_gap"
        )
    return "\n".join(lines)


def _met(what: str, rows: pd.DataFrame, worst: str) -> list[str]:
    if rows.empty:
        return []
    missed = rows[~rows["met"].astype(bool)]
    line = f"{what}: {len(rows) - len(missed)} of {len(rows)} (worst {rows[worst].max():.1e})"
    return [line] + [f"  not met: {row.scenario} {row.replicate}" for row in missed.itertuples()]
