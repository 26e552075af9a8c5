"""Table and figure of the study of families; nothing for the records of other studies."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from fedlasso.report.figures import INK, WIDTH, Figure, Look, look, looks
from fedlasso.report.records import Results
from fedlasso.report.tables import Table, shown
from fedlasso.study.columns import COLUMNS, say
from fedlasso.study.family_summary import FEW, count_uploads, tell_count


def family_table(results: Results) -> Table | None:
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
    heading = COLUMNS["family"].heading
    return Table("families", "Uploads to the pooled optimum", note, data, text, heading)


def family_figure(results: Results) -> Figure | None:
    """Uploads to the pooled optimum in every scenario, a panel per family."""
    data = _counted(results)
    if data is None:
        return None
    families = list(dict.fromkeys(data["family"]))
    names = list(dict.fromkeys(data["scenario"]))
    with look():
        canvas, grid = plt.subplots(
            1,
            len(families),
            figsize=(WIDTH, 1.2 + 0.26 * len(names)),
            sharex=True,
            sharey=True,
            squeeze=False,
        )
        drawn = looks(data["method"])
        for axes, family in zip(grid[0], families, strict=True):
            _draw(axes, data[data["family"] == family], names, drawn)
            axes.set_title(say("family", family), fontweight="bold")
        grid[0][0].set_yticks(range(len(names)), [say("scenario", name) for name in names])
        grid[0][0].set_ylim(len(names) - 0.4, -0.6)
        canvas.supxlabel("uploads to a relative gap of 1e-8", fontsize=8)
        canvas.legend(
            *grid[0][0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=len(drawn),
            frameon=False,
        )
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


def _draw(axes: Axes, own: pd.DataFrame, names: list[str], drawn: dict[str, Look]) -> None:
    axes.axvline(FEW, color=INK, lw=0.8)
    methods = list(dict.fromkeys(own["method"]))
    for i, method in enumerate(methods):
        here = own[(own["method"] == method) & np.isfinite(own["median"])]
        worst = here["worst"].where(np.isfinite(here["worst"]), here["median"])
        shift = 0.22 * (i - (len(methods) - 1) / 2)
        axes.errorbar(
            here["median"],
            [names.index(name) + shift for name in here["scenario"]],
            xerr=[np.zeros(len(here)), worst - here["median"]],
            fmt=drawn[method].marker,
            color=drawn[method].colour,
            label=method,
            elinewidth=0.9,
            markersize=3,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(axis="y", visible=True)
    axes.tick_params(axis="y", length=0)
