"""Table and figure of the study of families; nothing for the records of other studies."""

import numpy as np
import pandas as pd

from fedlasso.report import figures
from fedlasso.report.figures import Figure
from fedlasso.report.records import Results
from fedlasso.report.tables import ReportTable, shown
from fedlasso.study.family_summary import FEW, count_uploads, tell_count
from fedlasso.study.record_columns import display_name


def family_table(results: Results) -> ReportTable | None:
    """Uploads to the pooled optimum, by family, scenario and method."""
    data = _counted(results)
    if data is None:
        return None
    text = shown(data[["scenario", "family", "method"]])
    text["Reached"] = [f"{a} of {b}" for a, b in zip(data["reached"], data["n"], strict=True)]
    for title, name in (("Uploads", ""), ("Until certified", "certified_")):
        pairs = zip(data[f"{name}median"], data[f"{name}worst"], strict=True)
        text[title] = [tell_count(*pair) for pair in pairs]
    note = (
        "Vectors of p numbers from every site until the pooled objective is within a share of 1e-8 "
        "of its minimum, and until that is certified too: median (worst) over replicates. A dash "
        "is more than the study follows a method for."
    )
    return ReportTable("families", "Uploads to the pooled optimum", note, data, text, "Family")


def family_figure(results: Results) -> Figure | None:
    """Uploads to the pooled optimum in every scenario, a panel per family."""
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
            # A line to the worst, where all got there.
            own = own.assign(bar=own["worst"].fillna(own["median"]) - own["median"])
            figures.mark_rows(axes, own, names, "method", "median", drawn, one_sided=True)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.set_title(display_name("family", family), fontweight="bold")
        figures.name_rows(grid[0][0], [display_name("scenario", name) for name in names])
        canvas.supxlabel("uploads to a relative gap of 1e-8", fontsize=8)
        figures.put_legend(canvas, grid[0][0], len(drawn))
    caption = (
        "Uploads of p numbers from every site until the pooled objective is within a share of 1e-8 "
        "of its minimum: median over replicates, and a line to the worst where all got there. The "
        f"upright line is at {FEW} uploads. Families are problems of their own; compare methods "
        "within one."
    )
    return Figure("families", "Uploads to the pooled optimum", caption, canvas)


def _counted(results: Results) -> pd.DataFrame | None:
    if "family" not in results.axes or "uploads_needed" not in results.outcome:
        return None
    data = count_uploads(results.outcome)
    return None if data.empty else data
