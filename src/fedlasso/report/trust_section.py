"""Tables and figures of the study of trust; None for records of other studies."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator, MultipleLocator

from fedlasso.report import figures
from fedlasso.report.figures import Figure
from fedlasso.report.records import Results
from fedlasso.report.tables import ReportTable, mean_se, shown
from fedlasso.study import trust_summary
from fedlasso.study.record_columns import display_name, title
from fedlasso.study.trust_summary import COVERAGES, LEAST, MOST, ONE, OURS, PAIRED, WIDTHS

# Height of all rows of a figure, in inches: with panel titles, legend and caption a page has 9.
LONGEST = 6.6
# Columns of tables and panels of figures; power is recall.
DISCOVERY_HEADINGS = {
    "fdp": "FDP", "recall": "Power", "f1": "F1", "uploads": "Uploads", "flagged": "Marked",
}  # fmt: skip
INTERVAL_HEADINGS = {
    "coverage_nonzero": "Nonzero", "coverage_zero": "Zero", "coverage_near": "Zero beside nonzero",
    "coverage_found": "Selected", "width_named": "Width, named", "width_found": "Width, selected",
    "not_given": "Not given",
}  # fmt: skip


def discovery_table(results: Results) -> ReportTable | None:
    data = _averaged(results)
    if data is None:
        return None
    others = ("coverage", "width", "not_given")
    data = data.drop(columns=[name for name in data if str(name).startswith(others)])
    note = (
        "Mean (Monte Carlo standard error). The mean false discovery proportion (FDP) should be at "
        "most q. Power is the proportion of the truly nonzero columns that are selected. Uploads "
        "are vectors of p numbers per site. Marked: the proportion of fits that state that they "
        "cannot promise the rate."
    )
    text = _text(data, DISCOVERY_HEADINGS)
    return ReportTable("discoveries", "False discoveries and power", note, data, text, "Scenario")


def paired_discovery_table(results: Results) -> ReportTable | None:
    if _averaged(results) is None or not {OURS, ONE} <= set(results.values("method")):
        return None
    data = trust_summary.trust_differences(results.outcome)
    note = f"Goal 'discoveries' minus {ONE}, paired by replicate: mean (standard error)."
    text = _text(data, {name: DISCOVERY_HEADINGS[name] for name in PAIRED}, sign=True)
    return ReportTable("paired-discoveries", f"Discoveries against {ONE}", note, data, text)


def interval_table(results: Results) -> ReportTable | None:
    data = _covered(results)
    if data is None:
        return None
    note = (
        "Coverage of 95% intervals, for columns named beforehand and for selected ones, and mean "
        "width per standard deviation of a predictor: mean (Monte Carlo standard error). A dash: "
        "nothing was selected. Not given: the proportion of named columns without an interval, "
        "because they are not identified or few rows bound their effects; the other columns of the "
        "table are about the rest."
    )
    text = _text(data.drop(columns="method"), INTERVAL_HEADINGS)
    return ReportTable("intervals", "Coverage and width of 95% intervals", note, data, text)


def _averaged(results: Results) -> pd.DataFrame | None:
    return trust_summary.trust_means(results.outcome) if "rate" in results.axes else None


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
    data = _averaged(results)
    if data is None:
        return None
    panels = [(name, rate) for name in ("fdp", "recall") for rate in results.values("rate")]
    caption = (
        "False discovery proportion (FDP), and power, the proportion of the truly nonzero columns "
        "that are selected: means ± 1.96 Monte Carlo standard errors. Vertical lines are at the "
        "nominal rate q, which the mean FDP should not exceed."
    )
    with figures.look():
        canvas, grid = _grid(results, len(panels), roomy=True)
        for row, family in zip(grid, results.values("family"), strict=True):
            for axes, (name, rate) in zip(row, panels, strict=True):
                own = data[(data["family"] == family) & (data["rate"] == rate)]
                if name == "fdp":
                    axes.axvline(rate, color=figures.INK, lw=0.8)
                _draw(axes, own, name, results)
                axes.set_xlim(0, 1)
                axes.set_xticks([0, 0.5, 1])
                axes.set_title(f"{DISCOVERY_HEADINGS[name]}, {title('rate', rate)}", fontsize=7.5)
        figures.put_legend(canvas, grid[0][0], len(results.values("method")))
    return Figure("discoveries", "False discoveries and power", caption, canvas)


def interval_figure(results: Results) -> Figure | None:
    data = _covered(results)
    if data is None:
        return None
    names = [name for name in COVERAGES if name in data]
    rate = results.values("rate")[0]
    caption = (
        "Coverage of 95% intervals by kind of column: means ± 1.96 Monte Carlo standard errors. "
        f"The line is at 95%, and {LEAST:.0%} to {MOST:.0%} is shaded. Selected columns: at "
        f"{title('rate', rate)}."
    )
    with figures.look():
        canvas, grid = _grid(results, len(names))
        for row, family in zip(grid, results.values("family"), strict=True):
            own = data[(data["family"] == family) & (data["rate"] == rate)]
            for axes, name in zip(row, names, strict=True):
                axes.axvline(0.95, color=figures.INK, lw=0.8)
                axes.axvspan(LEAST, MOST, color=figures.FAINT, alpha=0.5, lw=0)
                _draw(axes, own, name, results)
                axes.set_title(INTERVAL_HEADINGS[name], fontsize=7.5)
        # No coverage is above 1, though the interval of its mean may be.
        low = max(0.0, grid[0][0].get_xlim()[0])
        grid[0][0].set_xlim(low, 1.005)
        # Panels are narrow: more than four labels would overlap.
        step = next(step for step in (0.05, 0.1, 0.2, 0.5) if (1 - low) / step <= 4)
        for axes in grid.flat:
            axes.xaxis.set_major_locator(MultipleLocator(step))
    return Figure("intervals", "Coverage of 95% intervals", caption, canvas)


def _grid(results: Results, across: int, *, roomy: bool = False) -> tuple[Canvas, Any]:
    """Make panels with scenarios down, a row of panels per family."""
    names = results.values("scenario")
    families = results.values("family")
    # Marks of many methods need room, as far as a page has it.
    methods = len(results.values("method")) if roomy else 1
    each = max(0.22, min(0.06 * methods, LONGEST / len(names)))
    height = (1.2 + each * len(names)) * len(families)
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
