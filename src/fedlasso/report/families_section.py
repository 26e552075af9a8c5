"""Table and figure of the study of families; None for records of other studies."""

import numpy as np
import pandas as pd

from fedlasso.report import figures
from fedlasso.report.figures import Figure
from fedlasso.report.records import Results
from fedlasso.report.tables import ReportTable, shown
from fedlasso.study.family_summary import FEW, count_text, count_uploads
from fedlasso.study.record_columns import display_name

TITLE = "Uploads to the pooled optimum"
# What table and figure count.
COUNTED = (
    "Uploads of p numbers per site until the relative gap to the pooled optimum is at most 1e-8"
)


def family_table(results: Results) -> ReportTable | None:
    data = _counted(results)
    if data is None:
        return None
    text = shown(data[["scenario", "family", "method"]])
    text["Reached"] = [f"{a} of {b}" for a, b in zip(data["reached"], data["n"], strict=True)]
    counts = {"Uploads": "", "Until certified": "certified_", "Round trips": "trips_"}
    for title, name in counts.items():
        pairs = zip(data[f"{name}median"], data[f"{name}worst"], strict=True)
        text[title] = [count_text(*pair) for pair in pairs]
    note = (
        f"{COUNTED}, until that is certified, and round trips to that gap: median (maximum) over "
        "replicates. A dash: not reached before the study stopped."
    )
    return ReportTable("families", TITLE, note, data, text, "Family")


def family_figure(results: Results) -> Figure | None:
    data = _counted(results)
    if data is None:
        return None
    families = list(dict.fromkeys(data["family"]))
    names = list(dict.fromkeys(data["scenario"]))
    with figures.look():
        canvas, grid = figures.make_panels(1, len(families), 1.2 + 0.26 * len(names))
        drawn = figures.looks(data["method"])
        for axes, family in zip(grid[0], families, strict=True):
            axes.axvline(FEW, color=figures.INK, lw=0.8)
            own = data[data["family"] == family].replace(np.inf, np.nan)
            # A line to the maximum, if all replicates reached the optimum.
            own = own.assign(bar=own["worst"].fillna(own["median"]) - own["median"])
            figures.mark_rows(axes, own, names, "method", "median", drawn, one_sided=True)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_title(display_name("family", family), fontweight="bold")
        figures.name_rows(grid[0][0], [display_name("scenario", name) for name in names])
        canvas.supxlabel("uploads to a relative gap of 1e-8", fontsize=8)
        figures.put_legend(canvas, grid[0][0], len(drawn))
    caption = (
        f"{COUNTED}: median over replicates, with a line to the maximum if all reached it. The "
        f"vertical line is at {FEW} uploads. Compare methods within a family only."
    )
    return Figure("families", TITLE, caption, canvas)


def _counted(results: Results) -> pd.DataFrame | None:
    if "family" not in results.axes or "uploads_needed" not in results.outcome:
        return None
    data = count_uploads(results.outcome)
    return None if data.empty else data
