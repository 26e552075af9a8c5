"""Means, Monte Carlo standard errors and paired differences: computed in this module only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.study.record_columns import COLUMNS, axes, known

if TYPE_CHECKING:
    import pandas as pd


def measure(groups: Any) -> tuple[Any, Any, Any]:
    """Return mean, Monte Carlo standard error and n of every group; of one value, no error."""
    return groups.mean(), groups.sem(), groups.count()


def average(rows: pd.DataFrame, by: Sequence[str], metrics: Sequence[str]) -> pd.DataFrame:
    """Return one row per cell: its axes, n, and ``METRIC`` and ``METRIC_se`` of every metric."""
    mean, error, count = measure(rows.groupby(list(by), sort=False, dropna=False)[list(metrics)])
    table: pd.DataFrame = mean.join(error.add_suffix("_se"))
    table.insert(0, "n", count[metrics[0]])
    return table.reset_index()


def mean_and_error(values: pd.Series[float]) -> tuple[float, float]:
    """Return mean and standard error of one number per replicate."""
    return float(values.mean()), float(values.sem())


def over_scenarios(rows: pd.DataFrame, metric: str) -> tuple[float, float]:
    """Return the mean over independent scenarios of replicates' means, and its standard error."""
    within = rows.groupby(["scenario", "replicate"])[metric].mean()
    mean, error, _ = measure(within.groupby(level="scenario"))
    return float(mean.mean()), float(np.sqrt((error**2).sum(skipna=False)) / len(mean))


def pair(
    rows: pd.DataFrame, along: str, first: object, second: object, metrics: Sequence[str]
) -> pd.DataFrame:
    """Return differences ``second - first`` along one axis, by cell and replicate."""
    keys = [name for name in known("axis", rows) if name != along] + ["replicate"]
    a, b = (rows[rows[along] == value].set_index(keys)[list(metrics)] for value in (first, second))
    return (b - a).dropna(how="all").reset_index()


def pair_with_best(
    rows: pd.DataFrame, metric: str, ours: str, rivals: Sequence[str], by: Sequence[str]
) -> pd.DataFrame:
    """Return our values, the best rival's (``METRIC_best``) and the ``difference`` of the two.

    The best rival has the best mean in a cell of the axes ``by``, among methods and, if not an axis
    of the cell, epoch counts.
    """
    by = list(by)
    among = [axis for axis in ("method", "epochs") if axis not in by]
    others = rows[rows["method"].isin(rivals)]
    means = others.groupby([*by, *among])[metric].mean().groupby(level=by, sort=False)
    chosen = means.idxmax() if COLUMNS[metric].better == "higher" else means.idxmin()
    best = others.set_index([*by, *among])
    best = best[best.index.isin(chosen)].reset_index()[[*by, *among, "replicate", metric]]
    own = rows.loc[rows["method"] == ours, [*by, "replicate", metric]]
    both = own.merge(best, on=[*by, "replicate"], suffixes=("", "_best"))
    return both.assign(difference=both[metric] - both[f"{metric}_best"])


def summarise(rows: pd.DataFrame, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Return mean, standard error sd/sqrt(n) and n of each metric in each cell (long form)."""
    by = known("axis", rows)
    long = rows.melt(by, list(metrics) or known("metric", rows), "metric", "mean")
    table = average(long, [*by, "metric"], ["mean"]).rename(columns={"mean_se": "se"})
    return table[[*by, "metric", "mean", "n", "se"]]


def contrast(
    rows: pd.DataFrame, along: str, first: object, second: object, metrics: Sequence[str] = ()
) -> pd.DataFrame:
    """Return summarised paired differences ``second - first`` along an axis such as method."""
    if along not in axes():
        raise FedLassoError(f"cannot contrast along {along!r}; use one of {', '.join(axes())}")
    metrics = list(metrics) or known("metric", rows)
    table = summarise(pair(rows, along, first, second, metrics), metrics)
    labels = [f"{value:g}" if isinstance(value, float) else value for value in (second, first)]
    table.insert(0, "contrast", f"{along} {labels[0]} minus {labels[1]}")
    table["low"] = table["mean"] - 1.96 * table["se"]
    table["high"] = table["mean"] + 1.96 * table["se"]
    return table


def format_mean(mean: float, se: float, form: str, se_form: str, none: str) -> str:
    """Return "mean (SE)", with ``none`` for what is missing."""
    if np.isnan(mean):
        return none
    return f"{mean:{form}} ({none if np.isnan(se) else f'{se:{se_form}}'})"
