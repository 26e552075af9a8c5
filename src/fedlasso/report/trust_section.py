"""Tables and figures of the study of trust; nothing for the records of other studies."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator, MultipleLocator

from fedlasso.report import figures
from fedlasso.report.figures import Figure
from fedlasso.report.records import Results
from fedlasso.report.tables import ReportTable, mean_se, shown
from fedlasso.study.record_columns import display_name, title
from fedlasso.study.trust_summary import COVERAGES, LEAST, MOST, ONE, OURS, WIDTHS, average, pair

# What is printed and drawn of discoveries: recall is what tests call power.
DISCOVERIES = {"fdp": "False share", "recall": "Power", "f1": "F1", "uploads": "Uploads"}
INTERVALS = {
    "coverage_nonzero": "Nonzero",
    "coverage_zero": "Zero",
    "coverage_near": "Zero beside nonzero",
    "coverage_found": "Found",
    "width_named": "Width, named",
    "width_found": "Width, found",
}


def discovery_table(results: Results) -> ReportTable | None:
    """False discoveries, power and uploads, by scenario, family, rate and method."""
    data = _averaged(results)
    if data is None:
        return None
    data = data.drop(columns=[name for name in data if str(name).startswith(("coverage", "width"))])
    note = (
        "Mean (Monte Carlo standard error). The false share is to be at most q on average; power "
        "is the share of the truly nonzero columns that are found. Uploads are vectors of p "
        "numbers per site."
    )
    text = _text(data, DISCOVERIES)
    return ReportTable("discoveries", "False discoveries and power", note, data, text, "Scenario")


def paired_discovery_table(results: Results) -> ReportTable | None:
    """Our discoveries minus those of one data split, within replicate."""
    if _averaged(results) is None or not {OURS, ONE} <= set(results.values("method")):
        return None
    data = pair(results.outcome)
    note = (
        f"Goal 'discoveries' minus {ONE}. Differences are taken within replicate, then averaged: "
        "mean (standard error)."
    )
    text = _text(data, {name: DISCOVERIES[name] for name in ("fdp", "recall", "f1")}, sign=True)
    return ReportTable("paired-discoveries", f"Discoveries against {ONE}", note, data, text)


def interval_table(results: Results) -> ReportTable | None:
    """How often 95% intervals cover, and how wide they are."""
    data = _covered(results)
    if data is None:
        return None
    note = (
        "Share of the 95% intervals that hold the true coefficient, for columns that were named "
        "beforehand and for columns that were found, and mean widths per standard deviation of a "
        "predictor: mean (Monte Carlo standard error). A dash: nothing was found."
    )
    text = _text(data.drop(columns="method"), INTERVALS)
    return ReportTable("intervals", "Coverage and width of 95% intervals", note, data, text)


def _averaged(results: Results) -> pd.DataFrame | None:
    return average(results.outcome) if "rate" in results.axes else None


def _covered(results: Results) -> pd.DataFrame | None:
    data = _averaged(results)
    if data is None or OURS not in results.values("method"):
        return None
    names = [n for name in (*COVERAGES, *WIDTHS) if name in data for n in (name, f"{name}_se")]
    cell = ["scenario", "family", "rate", "method"]
    return data.loc[data["method"] == OURS, [*cell, *names]].reset_index(drop=True)


def _text(data: pd.DataFrame, printed: dict[str, str], sign: bool = False) -> pd.DataFrame:
    text = shown(data)
    for name, heading in printed.items():
        if name in data:
            text[heading] = mean_se(data[name], data[f"{name}_se"], sign)
    return text


def discovery_figure(results: Results) -> Figure | None:
    """False discoveries and power in every scenario, panels by rate, a row per family."""
    data = _averaged(results)
    if data is None:
        return None
    panels = [(name, rate) for name in ("fdp", "recall") for rate in results.values("rate")]
    caption = (
        "Share of false columns among those found, and power, the share of the truly nonzero "
        "columns that are found: means over replicates, with 1.96 Monte Carlo standard errors "
        "either side. Upright lines are at the rate q that was asked for, which the mean share of "
        "false columns is not to exceed."
    )
    with figures.look():
        canvas, grid = _grid(results, len(panels))
        for row, family in zip(grid, results.values("family"), strict=True):
            for axes, (name, rate) in zip(row, panels, strict=True):
                own = data[(data["family"] == family) & (data["rate"] == rate)]
                if name == "fdp":
                    axes.axvline(rate, color=figures.INK, lw=0.8)
                _draw(axes, own, name, results)
                axes.set_xlim(0, 1)
                axes.set_xticks([0, 0.5, 1])
                axes.set_title(f"{DISCOVERIES[name]}, {title('rate', rate)}", fontsize=7.5)
        figures.put_legend(canvas, grid[0][0], len(results.values("method")))
    return Figure("discoveries", "False discoveries and power", caption, canvas)


def interval_figure(results: Results) -> Figure | None:
    """How often 95% intervals cover in every scenario, panels by kind, a row per family."""
    data = _covered(results)
    if data is None:
        return None
    names = [name for name in COVERAGES if name in data]
    rate = results.values("rate")[0]
    caption = (
        "Share of the 95% intervals that hold the true coefficient, by kind of column: means over "
        "replicates, with 1.96 Monte Carlo standard errors either side. The line is at 95%, and "
        f"{LEAST:.0%} to {MOST:.0%} is shaded. Columns found are those at {title('rate', rate)}."
    )
    with figures.look():
        canvas, grid = _grid(results, len(names))
        for row, family in zip(grid, results.values("family"), strict=True):
            own = data[(data["family"] == family) & (data["rate"] == rate)]
            for axes, name in zip(row, names, strict=True):
                axes.axvline(0.95, color=figures.INK, lw=0.8)
                axes.axvspan(LEAST, MOST, color=figures.FAINT, alpha=0.5, lw=0)
                _draw(axes, own, name, results)
                axes.set_title(INTERVALS[name], fontsize=7.5)
        # No share is above 1, though an interval of its mean may be.
        low = max(0.0, grid[0][0].get_xlim()[0])
        grid[0][0].set_xlim(low, 1.005)
        # Panels are narrow: more labels than four would run into each other.
        step = next(step for step in (0.05, 0.1, 0.2, 0.5) if (1 - low) / step <= 4)
        for axes in grid.flat:
            axes.xaxis.set_major_locator(MultipleLocator(step))
    return Figure("intervals", "Coverage of 95% intervals", caption, canvas)


def _grid(results: Results, across: int) -> tuple[Canvas, Any]:
    """Panels side by side with scenarios down, a row per family."""
    names = results.values("scenario")
    families = results.values("family")
    height = (1.2 + 0.22 * len(names)) * len(families)
    canvas, grid = figures.make_panels(len(families), across, height)
    for row, family in zip(grid, families, strict=True):
        figures.name_rows(row[0], [display_name("scenario", name) for name in names])
        if len(families) > 1:
            row[0].set_ylabel(display_name("family", family), fontweight="bold")
    return canvas, grid


def _draw(axes: Axes, own: pd.DataFrame, name: str, results: Results) -> None:
    own = own.assign(bar=1.96 * own[f"{name}_se"].fillna(0.0))
    drawn = figures.looks(results.values("method"))
    figures.mark_rows(axes, own, results.values("scenario"), "method", name, drawn)
    axes.xaxis.set_major_locator(MaxNLocator(3))
