"""Figures "baseline" and "contrasts": outcomes against the local epochs of a round."""

from __future__ import annotations

from itertools import product
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fedlasso.report.figures import INK, WIDTH, Figure, label_ends, look
from fedlasso.report.means import means
from fedlasso.report.records import Results
from fedlasso.report.style import label, looks, titles
from fedlasso.study import contrast
from fedlasso.study.columns import COLUMNS

SHOWN = ("f1", "test_mse", "relative_gap")


def baseline_figure(results: Results) -> Figure | None:
    """Means with 1.96 standard errors; nothing if the study has no epochs to compare."""
    metrics = [m for m in SHOWN if m in results.metrics]
    if not metrics or len(results.values("epochs")) < 2:
        return None
    scenarios = results.values("scenario")
    scenario = "baseline" if "baseline" in scenarios else scenarios[0]
    fixed = {a: v for a, v in results.primary.items() if a != "panel"}
    table = means(results, results.at(scenario=scenario, **fixed), metrics)
    rows_by = [axis for axis in results.axes if axis == "panel" or axis in results.arms]
    arms = [dict(zip(rows_by, v, strict=True)) for v in product(*map(results.values, rows_by))]
    with look():
        canvas, grid = plt.subplots(
            len(arms), len(metrics), figsize=(WIDTH, 0.5 + 1.85 * len(arms)),
            squeeze=False, sharey="col", sharex=True,
        )  # fmt: skip
        for row, arm in enumerate(arms):
            rows = table[(table[rows_by] == pd.Series(arm)).all(axis=1)]
            for axes, metric in zip(grid[row], metrics, strict=True):
                _lines(axes, rows, metric, results.values("epochs"))
                if row == 0:
                    axes.set_title(COLUMNS[metric].heading, fontweight="bold")
                if row == len(arms) - 1:
                    axes.set_xlabel("local epochs E")
            grid[row][0].set_ylabel(titles(arm).replace(", ", ",\n"), fontweight="bold")
        canvas.canvas.draw()
        for axes in grid.flat:
            _labels(axes)
    n = int(table["n"].min())
    caption = (
        f"{label('scenario', scenario)} scenario, {titles(fixed)}. Means over {n} replicates with "
        "1.96 Monte Carlo standard errors either side, which describe the precision of the "
        "simulation, not the spread between data sets. Points of methods are set apart sideways."
    )
    return Figure("baseline", f"{label('scenario', scenario)} scenario", caption, canvas)


def _lines(axes: Axes, table: pd.DataFrame, metric: str, epochs: list[int]) -> None:
    methods = list(dict.fromkeys(table["method"]))
    drawn = looks(methods)
    for i, method in enumerate(methods):
        own = table[table["method"] == method]
        x = [epochs.index(e) + 0.09 * (i - (len(methods) - 1) / 2) for e in own["epochs"]]
        axes.errorbar(
            x, own[metric], yerr=1.96 * own[f"{metric}_se"].fillna(0), label=method,
            color=drawn[method].colour, marker=drawn[method].marker, elinewidth=0.9, capsize=1.6,
        )  # fmt: skip
    axes.set_xticks(range(len(epochs)), [str(e) for e in epochs])
    axes.grid(axis="x", visible=False)
    axes.set_xlim(-0.3, len(epochs) - 0.7)


def _labels(axes: Axes) -> None:
    ends = []
    for container in axes.containers:
        line: Any = container[0]
        x = float(line.get_xdata()[-1])
        y = float(line.get_ydata()[-1])
        ends.append((y, str(container.get_label()), line.get_color(), x))
    label_ends(axes, ends, gap=0.105)


def contrast_figure(results: Results) -> Figure | None:
    """Paired F1 change in every scenario; one column per method."""
    epochs = [e for e in results.values("epochs") if e]
    if len(epochs) < 2 or "f1" not in results.metrics:
        return None
    rows = results.at(**results.primary)[[*results.axes, "replicate", "f1"]]
    table = contrast(rows, "epochs", epochs[0], epochs[-1], ["f1"])
    by = ["scenario", *results.arms]
    table["row"] = [
        titles(dict(zip(by, v, strict=True))) for v in table[by].itertuples(index=False)
    ]
    rows_shown = list(dict.fromkeys(table["row"]))
    drawn = looks(results.values("method"))
    methods = [m for m in drawn if m in set(table["method"])]
    with look():
        canvas, grid = plt.subplots(
            1, len(methods), figsize=(WIDTH, 0.9 + 0.2 * len(rows_shown)),
            sharex=True, sharey=True, squeeze=False,
        )  # fmt: skip
        for axes, method in zip(grid[0], methods, strict=True):
            own = table[table["method"] == method]
            y = [rows_shown.index(row) for row in own["row"]]
            axes.axvline(0, color=INK, lw=0.8)
            axes.errorbar(
                own["mean"], y, xerr=1.96 * own["se"].fillna(0), fmt=drawn[method].marker,
                color=drawn[method].colour, elinewidth=1.1, capsize=2, markersize=3,
            )  # fmt: skip
            axes.set_title(method, color=drawn[method].colour, fontweight="bold")
            axes.grid(axis="y", visible=True)
            axes.tick_params(axis="y", length=0)
            axes.xaxis.set_major_locator(MaxNLocator(3))
        grid[0][0].set_yticks(range(len(rows_shown)), rows_shown)
        grid[0][0].set_ylim(len(rows_shown) - 0.4, -0.6)
        canvas.supxlabel(f"change in F1, E = {epochs[-1]} minus E = {epochs[0]}", fontsize=8)
    caption = (
        f"Paired change in F1 from E = {epochs[0]} to E = {epochs[-1]}; {titles(results.primary)}. "
        "Differences are taken within replicate; bars are 1.96 Monte Carlo standard errors either "
        "side. To the right of zero more local epochs select better on average; selection says "
        "nothing about prediction."
    )
    return Figure("contrasts", "Epoch contrasts", caption, canvas)
