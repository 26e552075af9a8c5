"""The figures of a report: theory, outcomes against epochs, and the gap against uploads."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from fedlasso.report.families_section import family_figure
from fedlasso.report.figures import (
    FAINT,
    INK,
    PLAIN,
    WIDTH,
    Figure,
    label_ends,
    label_powers,
    look,
    looks,
    make_panels,
    mark_rows,
    name_rows,
    put_legend,
)
from fedlasso.report.real_section import judged_figure
from fedlasso.report.records import Results, count_of
from fedlasso.report.tables import means
from fedlasso.report.traces import follow_gaps
from fedlasso.report.trust_section import discovery_figure, interval_figure
from fedlasso.study import contrast
from fedlasso.study.record_columns import COLUMNS, display_name, titles
from fedlasso.theory import CorrelatedPair

PAIR = CorrelatedPair(r=0.8, a=2, d=1)
EPOCHS = tuple(range(1, 11))
FLOOR = 1e-16  # smaller gaps are rounding, and drawn here, as on the page
FLOOR_NOTE = "Gaps below 1e−16, which are rounding, are drawn at 1e−16."
FEW = 6  # lines that can be labelled at their ends in a narrow panel
TOGETHER = 8  # maximum of lines that can be distinguished in one panel


def theory_figure(results: Results | None = None) -> Figure | None:
    """The exact limiting gap; None for studies that do not vary the epochs."""
    if results is not None and not results.several_epochs:
        return None
    with look():
        canvas, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.5))
        colour = PLAIN.colour
        small: Any = {"fontsize": 7.5, "color": colour}
        real = np.linspace(1, EPOCHS[-1], 400)
        left.plot(real, [PAIR.gap(e) for e in real], color=colour, lw=0.9, alpha=0.6)
        left.plot(EPOCHS, [PAIR.gap(e) for e in EPOCHS], "o", color=colour)
        floor = PAIR.d**2 * PAIR.r**4 / (32 * (4 - PAIR.r**2))
        left.axhline(floor, color=INK, lw=0.8, ls=(0, (4, 3)))
        below: Any = small | {"color": INK, "ha": "right", "va": "top"}
        left.text(EPOCHS[-1], floor * 0.9, "no E goes below this", **below)
        best = PAIR.best_whole_epochs
        point = (best, PAIR.gap(best))
        aside = (best + 1.4, PAIR.gap(best) * 1.25)
        line = {"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkB": 4}
        words = f"smallest at E = {best}"
        left.annotate(words, point, aside, va="center", arrowprops=line, **small)
        left.set(xlabel="local epochs E", ylabel="limiting objective gap", xticks=EPOCHS)
        left.set_ylim(0, None)
        left.set_title(f"Limiting gap (r = {PAIR.r}, a = {PAIR.a}, d = {PAIR.d})")

        r = np.linspace(0.01, 0.98, 400)
        right.plot(r, [CorrelatedPair(v, PAIR.a, PAIR.d).best_epochs for v in r], color=colour)
        right.axvline(PAIR.r, color=FAINT, lw=0.8, zorder=0)
        right.plot(PAIR.r, PAIR.best_epochs, "o", color=colour)
        words = f"r = {PAIR.r}: {PAIR.best_epochs:.2f}"
        small |= {"textcoords": "offset points", "ha": "right"}
        right.annotate(words, (PAIR.r, PAIR.best_epochs), (-8, 6), **small)
        right.set(xlabel="correlation r at site 2", ylabel="minimising epoch count", xlim=(0, 1))
        right.set_ylim(1, None)
        right.set_title("Real epoch count with the smallest gap")
    caption = (
        "Exact calculations for the correlated two-site construction. Left: the limiting objective "
        f"gap at r = {PAIR.r}, a = {PAIR.a}, d = {PAIR.d}; dots are whole epoch counts. Right: the "
        "real epoch count that minimises it, against r. These are deterministic formulas, not "
        "simulation averages, and not a rule for choosing E on other data."
    )
    return Figure("theory", "Theory", caption, canvas)


def baseline_figure(results: Results) -> Figure | None:
    """Means ± 1.96 standard errors against epochs; None if the study has only one count."""
    metrics = results.measured("f1", "test_mse", "test_deviance", "relative_gap")
    if not metrics or len(results.values("epochs")) < 2:
        return None
    scenario = results.first_scenario
    fixed = {a: v for a, v in results.primary.items() if a != "panel"}
    table = means(results, results.at(scenario=scenario, **fixed), metrics)
    epochs = [e for e in results.values("epochs") if e]
    rows_by = [axis for axis in results.axes if axis == "panel" or axis in results.arms]
    arms = [dict(zip(rows_by, v, strict=True)) for v in product(*map(results.values, rows_by))]
    with look():
        # Deviances of families have nothing in common.
        sharey = False if "family" in rows_by else "col"
        canvas, grid = make_panels(len(arms), len(metrics), 0.5 + 1.85 * len(arms), sharey=sharey)
        for row, arm in enumerate(arms):
            rows = table[(table[rows_by] == pd.Series(arm)).all(axis=1)]
            for axes, metric in zip(grid[row], metrics, strict=True):
                _lines(axes, rows, metric, epochs)
                _pooled_line(axes, results, scenario, metric, len(epochs))
                if row == 0:
                    axes.set_title(COLUMNS[metric].heading, fontweight="bold")
                if row == len(arms) - 1:
                    axes.set_xlabel("local epochs E")
            grid[row][0].set_ylabel(titles(arm).replace(", ", ",\n"), fontweight="bold")
        lines = len(grid[0][0].get_legend_handles_labels()[1])
        if lines > FEW:  # too many to label at the ends of the lines
            put_legend(canvas, grid[0][0], lines // 2 + 1)
        else:
            for axes in grid.flat:
                label_ends(axes, gap=0.105)
    view = titles(fixed)
    title = f"{display_name('scenario', scenario)} scenario"
    count = count_of(int(table["n"].min()), "replicate")
    caption = (
        f"{title}{view and f', {view}'}. Means over {count} ± 1.96 Monte Carlo standard errors, "
        "which describe the precision of the simulation, not the spread of data sets. Points of "
        "methods are shifted horizontally."
        f"{f' {FLOOR_NOTE}' if 'relative_gap' in metrics else ''}"
    )
    return Figure("baseline", title, caption, canvas)


def _lines(axes: Axes, table: pd.DataFrame, metric: str, epochs: list[int]) -> None:
    methods = list(dict.fromkeys(table["method"]))
    drawn = looks(methods)
    moving = [m for m in methods if table.loc[table["method"] == m, "epochs"].any()]
    for method in methods:
        own = table[(table["method"] == method) & table[metric].notna()]
        if metric.endswith("gap"):
            own = own.assign(**{metric: own[metric].clip(lower=FLOOR)})
        if own.empty:
            continue
        if not own["epochs"].any():  # a method without epochs: one level for all of them
            level = own[metric].iloc[0]
            ends = (-0.3, len(epochs) - 0.7)
            style: Any = {"color": drawn[method].colour, "ls": "--"}
            axes.plot(ends, (level, level), label=display_name("method", method), **style)
            continue
        aside = 0.09 * (moving.index(method) - (len(moving) - 1) / 2)
        x = [epochs.index(e) + aside for e in own["epochs"]]
        bars = 1.96 * own[f"{metric}_se"].fillna(0)
        style = {"color": drawn[method].colour, "marker": drawn[method].marker}
        style |= {"label": display_name("method", method), "elinewidth": 0.9, "capsize": 1.6}
        axes.errorbar(x, own[metric], bars, **style)
    axes.set_xticks(range(len(epochs)), [display_name("epochs", e) for e in epochs])
    axes.grid(axis="x", visible=False)
    axes.set_xlim(-0.3, len(epochs) - 0.7)
    if metric.endswith("gap"):
        axes.set_yscale("log")
        label_powers(axes.yaxis)
    elif COLUMNS[metric].scale == "proportion":
        axes.set_ylim(0, 1)


def _pooled_line(axes: Axes, results: Results, scenario: str, metric: str, count: int) -> None:
    """Draw the mean of the pooled Lasso, which needs the pooled rows."""
    if metric not in results.reference or metric.endswith("gap"):
        return
    level = results.reference.loc[results.reference["scenario"] == scenario, metric].mean()
    axes.plot((-0.3, count - 0.7), (level, level), color=INK, ls=":", lw=0.9, label="pooled Lasso")


def contrast_figure(results: Results) -> Figure | None:
    """Paired F1 change in every scenario; one column per method."""
    epochs = [e for e in results.values("epochs") if e]
    if len(epochs) < 2 or "f1" not in results.metrics:
        return None
    rows = results.at(**results.primary)[[*results.axes, "replicate", "f1"]]
    table = contrast(rows, "epochs", epochs[0], epochs[-1], ["f1"])
    cells = table[["scenario", *results.arms]].to_dict("records")
    table = table.assign(scenario=[*map(titles, cells)], bar=1.96 * table["se"].fillna(0))
    names = list(dict.fromkeys(table["scenario"]))
    drawn = looks(results.values("method"))
    methods = [m for m in drawn if m in set(table["method"])]
    with look():
        canvas, grid = make_panels(1, len(methods), 0.9 + 0.2 * len(names))
        for axes, method in zip(grid[0], methods, strict=True):
            own = table[table["method"] == method]
            axes.axvline(0, color=INK, lw=0.8)
            mark_rows(axes, own, names, "method", "mean", drawn, elinewidth=1.1, capsize=2)
            name = display_name("method", method)
            axes.set_title(name, color=drawn[method].colour, fontweight="bold")
            axes.xaxis.set_major_locator(MaxNLocator(3))
        name_rows(grid[0][0], names)
        canvas.supxlabel(f"change in F1, E = {epochs[-1]} minus E = {epochs[0]}", fontsize=8)
    view = titles(results.primary)
    caption = (
        f"Change in F1 from E = {epochs[0]} to E = {epochs[-1]}{view and f'; {view}'}. Mean paired "
        "differences ± 1.96 Monte Carlo standard errors. To the right of zero, more local epochs "
        "improve selection on average, which need not improve prediction."
    )
    return Figure("contrasts", "Epoch contrasts", caption, canvas)


def upload_figure(results: Results) -> Figure | None:
    """Median relative gap against uploads: one line per method, at its best epoch count."""
    table = follow_gaps(results)
    if table is None:
        return None
    scenario = results.first_scenario
    table = table[table["scenario"] == scenario].drop(columns="scenario")
    if not table.duplicated(["method", "epochs", *results.arms]).any():
        return None  # one point per method is not a line
    several = table.loc[table["epochs"] > 0, "epochs"].nunique() > 1
    lines = [
        _best(own).sort_values("uploads")
        for _, own in table.groupby(["method", *results.arms], sort=False)
    ]
    names = [_name(own, results.arms, several) for own in lines]
    with look():
        canvas = (_together if len(lines) <= TOGETHER else _apart)(lines, names)
    caption = (
        "Relative gap to the pooled optimum against uploads per site, in vectors of p numbers; "
        f"{display_name('scenario', scenario)} scenario, medians over replicates, every candidate "
        "charged. Each method is shown at the epoch count (in brackets if there are several) with "
        "the smallest final gap. A small gap means that the pooled Lasso was reached, not that it "
        f"selects or predicts well. {FLOOR_NOTE}"
    )
    return Figure("uploads", "Objective gap against uploads", caption, canvas)


def _together(lines: list[pd.DataFrame], names: list[str]) -> Canvas:
    """All methods in one panel, each named at its end."""
    canvas, axes = plt.subplots(figsize=(WIDTH, 2.2 + 0.12 * len(lines)))
    methods = [own["method"].iloc[0] for own in lines]
    drawn = looks(methods)
    for method, name, own in zip(methods, names, lines, strict=True):
        style = drawn[method]
        axes.plot(*_points(own), color=style.colour, marker=style.marker, label=name)
    _scales(axes, (1, 2, 5))
    axes.set(xlabel="uploads, vectors per site", ylabel="median relative gap")
    axes.margins(x=0.08, y=0.12)
    label_ends(axes, gap=0.075)
    return canvas


def _apart(lines: list[pd.DataFrame], names: list[str]) -> Canvas:
    """Draw a panel per method, with all the others in grey behind it."""
    across = 4
    down = -(-len(lines) // across)
    canvas, grid = make_panels(down, across, 1.25 * down + 0.4)
    for axes, name, own in zip(grid.flat, names, lines, strict=False):
        # One collection is far faster to draw than separate lines.
        others = [np.column_stack(_points(other)) for other in lines]
        axes.add_collection(LineCollection(others, colors=FAINT, linewidths=0.8, zorder=1))
        axes.plot(*_points(own), color=PLAIN.colour, marker=PLAIN.marker, markersize=3, zorder=2)
        axes.set_title(name, fontsize=7.5, fontweight="bold")
    for axes in grid.flat[len(lines) :]:
        axes.set_axis_off()
    _scales(grid[0][0], (1,))
    for axes in grid.flat:
        axes.minorticks_off()
    canvas.supxlabel("uploads, vectors per site", fontsize=8)
    canvas.supylabel("median relative gap", fontsize=8)
    return canvas


def _points(own: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    return own["uploads"], own["gap"].clip(lower=FLOOR)


def _scales(axes: Axes, steps: tuple[int, ...]) -> None:
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    label_powers(axes.yaxis)


def _best(own: pd.DataFrame) -> pd.DataFrame:
    last = own.loc[own.groupby("epochs")["uploads"].idxmax()]
    return own[own["epochs"] == last.loc[last["gap"].idxmin(), "epochs"]]


def _name(own: pd.DataFrame, arms: list[str], several: bool) -> str:
    first = own.iloc[0]
    name = ", ".join(display_name(axis, first[axis]) for axis in ("method", *arms))
    return f"{name} (E = {first['epochs']})" if several and first["epochs"] else name


# The figures in the supplement's order; append to add one from outside. A figure that the records
# cannot fill is None.
FIGURES: list[Callable[[Results], Figure | None]] = [
    judged_figure,
    family_figure,
    discovery_figure,
    interval_figure,
    theory_figure,
    baseline_figure,
    contrast_figure,
    upload_figure,
]
