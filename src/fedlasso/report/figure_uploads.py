"""Figure "uploads": how near to the pooled optimum each procedure gets for what it uploads."""

from __future__ import annotations

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullFormatter

from fedlasso.report.figures import FAINT, WIDTH, Figure, label_ends, look
from fedlasso.report.means import means
from fedlasso.report.records import Results
from fedlasso.report.style import PLAIN, label, looks, titles

FLOOR = 1e-14  # a gap near rounding is drawn here
TOGETHER = 8  # more lines than this cannot be told apart in one panel


def upload_figure(results: Results) -> Figure | None:
    """Mean relative gap against mean uploads: one line per method, at its best epoch count."""
    if not {"upload_bytes", "relative_gap"} <= set(results.outcome.columns):
        return None
    scenarios = results.values("scenario")
    scenario = "baseline" if "baseline" in scenarios else scenarios[0]
    fixed = {a: v for a, v in results.primary.items() if a != "budget"}
    rows = results.at(scenario=scenario, **fixed)
    if "rounds" in rows:
        rows = rows[rows["rounds"] > 0]  # what a budget could not pay for was not fitted
    table = means(results, rows, ["relative_gap", "upload_bytes"])
    if len(results.values("epochs")) == 1:
        table = table.drop(columns="epochs")  # nothing to choose, nothing to name
    lines = [
        _best(own).sort_values("upload_bytes")
        for _, own in table.groupby(["method", *results.arms], sort=False)
    ]
    names = [_name(own, results.arms) for own in lines]
    with look():
        canvas = (_together if len(lines) <= TOGETHER else _apart)(lines, names)
    at = titles(fixed)
    caption = (
        f"Distance to the pooled optimum against what is uploaded, {label('scenario', scenario)} "
        f"scenario{', ' + at if at else ''}; tuning included. Each method at the epoch count "
        "(in brackets) with its smallest gap at its largest budget. A small gap says that the "
        "pooled Lasso was reached, not that it selects or predicts well."
    )
    return Figure("uploads", "Objective gap against uploads", caption, canvas)


def _together(lines: list[pd.DataFrame], names: list[str]) -> Canvas:
    """All methods in one panel, each named at its end."""
    canvas, axes = plt.subplots(figsize=(WIDTH * 0.8, 2.2 + 0.12 * len(lines)))
    methods = [own["method"].iloc[0] for own in lines]
    drawn = looks(methods)
    ends = []
    for method, name, own in zip(methods, names, lines, strict=True):
        x, y = _points(own)
        axes.plot(x, y, color=drawn[method].colour, marker=drawn[method].marker)
        ends.append((float(y.iloc[-1]), name, drawn[method].colour, float(x.iloc[-1])))
    _scales(axes, (1, 2, 5))
    axes.set(xlabel="mean uploads, KiB", ylabel="mean relative gap")
    axes.margins(x=0.08, y=0.12)
    canvas.canvas.draw()
    label_ends(axes, ends, gap=0.075)
    return canvas


def _apart(lines: list[pd.DataFrame], names: list[str]) -> Canvas:
    """A panel per method, with all the others in grey behind it: none to tell apart by colour."""
    across = 4
    down = -(-len(lines) // across)
    canvas, grid = plt.subplots(
        down, across, figsize=(WIDTH, 1.25 * down + 0.4), sharex=True, sharey=True, squeeze=False
    )
    for axes, name, own in zip(grid.flat, names, lines, strict=False):
        for other in lines:
            axes.plot(*_points(other), color=FAINT, lw=0.8, zorder=1)
        axes.plot(*_points(own), color=PLAIN.colour, marker=PLAIN.marker, markersize=3, zorder=2)
        axes.set_title(name, fontsize=7.5, fontweight="bold")
    for axes in grid.flat[len(lines) :]:
        axes.set_axis_off()
    _scales(grid[0][0], (1,))
    canvas.supxlabel("mean uploads, KiB", fontsize=8)
    canvas.supylabel("mean relative gap", fontsize=8)
    return canvas


def _points(own: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    return own["upload_bytes"] / 1024, own["relative_gap"].clip(lower=FLOOR)


def _scales(axes: Axes, steps: tuple[int, ...]) -> None:
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _best(own: pd.DataFrame) -> pd.DataFrame:
    if "epochs" not in own:
        return own
    last = own if "budget" not in own else own[own["budget"] == own["budget"].max()]
    return own[own["epochs"] == last.loc[last["relative_gap"].idxmin(), "epochs"]]


def _name(own: pd.DataFrame, arms: list[str]) -> str:
    first = own.iloc[0]
    name = ", ".join([first["method"], *(label(arm, first[arm]) for arm in arms)])
    epochs = first.get("epochs", 0)
    return f"{name} (E = {epochs})" if epochs else name
