"""Tables and figure of the study of real data; nothing for the records of other studies."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from fedlasso.report.figures import INK, WIDTH, Figure, look, looks
from fedlasso.report.records import Results
from fedlasso.report.tables import Table, mean_se, shown, tell_replicates
from fedlasso.study.columns import say
from fedlasso.study.datasets import ORIGINS, TUNED
from fedlasso.study.verdict import WORDS, compare_with_judges

WIDE = 30.0  # per cent; the axis of a figure is logarithmic beyond
DRAWN = ("prediction", "selection")


def judged_table(results: Results) -> Table | None:
    """Every method against its judge, on every data set and in every way."""
    data = _compared(results)
    if data is None:
        return None
    text = shown(data[["scenario", "split"]]).rename(columns={"Scenario": "Data set"})
    text["Worse, %"] = mean_se(data["percent"], data["percent_se"], sign=True)
    text["Columns"] = _beside(data["active"], data["judge_active"], ".1f")
    text["Jaccard"] = _beside(data["jaccard"], data["judge_jaccard"], ".2f")
    text["Against"] = [
        _begin(f"{WORDS.get(method, method)} against {WORDS[judge]}")
        for method, judge in zip(data["method"], data["judge"], strict=True)
    ]
    note = (
        "Test error above the judge's, in per cent of the judge's mean: mean paired difference "
        f"(standard error) over {tell_replicates(data)}. Columns used and mean "
        "Jaccard index of the columns over pairs of replicates, each beside the judge's. Judges "
        "see all training rows in one place."
    )
    return Table("judged", "Federated fits and their judges", note, data, text, "Against")


def data_table(results: Results) -> Table | None:
    """The data sets."""
    if not results.on_real_data:
        return None
    data = pd.DataFrame(
        {
            "scenario": name,
            "rows": sum(each.sizes) + each.test,
            "columns": each.p,
            "tuned": name in TUNED,
            "origin": ORIGINS.get(name, "a file of the data folder"),
        }
        for name, each in results.manifest.scenarios.items()
    )
    text = pd.DataFrame(
        {
            "Data": data["scenario"],
            "Rows": data["rows"].astype(str),
            "Columns": data["columns"].astype(str),
            "Tried": np.where(data["tuned"], "yes", "no"),
            "Response": data["origin"],
        }
    )
    note = (
        "Rows and columns as they are used. Tried: whether defaults were tried on the set while "
        "they were made; the others were chosen by their sizes and not looked at."
    )
    return Table("data", "Data sets", note, data, text)


def judged_figure(results: Results) -> Figure | None:
    """Per cent worse than the judge on every data set, a panel per goal."""
    data = _compared(results)
    if data is None:
        return None
    goals = [goal for goal in DRAWN if goal in set(data["method"])]
    if not goals:
        return None
    names = list(dict.fromkeys(data["scenario"]))
    with look():
        canvas, grid = plt.subplots(
            1, len(goals), figsize=(WIDTH, 1.2 + 0.26 * len(names)), sharey=True, squeeze=False
        )
        for axes, goal in zip(grid[0], goals, strict=True):
            own = data[data["method"] == goal]
            _draw(axes, own, names)
            axes.set_title(goal.capitalize(), fontweight="bold")
            axes.set_xlabel(f"% worse than\n{WORDS[own['judge'].iloc[0]]}")
        grid[0][0].set_yticks(range(len(names)), names)
        grid[0][0].set_ylim(len(names) - 0.4, -0.6)
        canvas.legend(
            *grid[0][0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=3,
            frameon=False,
        )
    caption = (
        "Test error above the judge's in per cent, mean over replicates of the paired difference; "
        "bars are 1.96 standard errors either side. Left of zero the federated fit predicts better "
        "than the judge, who sees all training rows in one place. Three sites, whose rows are "
        "dealt out in three ways."
    )
    return Figure("judged", "Federated fits against their judges", caption, canvas)


def _compared(results: Results) -> pd.DataFrame | None:
    if not results.on_real_data:
        return None
    data = compare_with_judges(results.outcome)
    return None if data.empty else data


def _draw(axes: Axes, own: pd.DataFrame, names: list[str]) -> None:
    ways = list(dict.fromkeys(own["split"]))
    axes.axvline(0, color=INK, lw=0.8)
    for i, (way, style) in enumerate(looks(ways).items()):
        here = own[own["split"] == way]
        shift = 0.22 * (i - (len(ways) - 1) / 2)
        axes.errorbar(
            here["percent"],
            [names.index(name) + shift for name in here["scenario"]],
            xerr=1.96 * here["percent_se"].fillna(0),
            fmt=style.marker,
            color=style.colour,
            label=say("split", way),
            elinewidth=0.9,
            markersize=3,
        )
    if own["percent"].abs().max() > WIDE:
        axes.set_xscale("symlog", linthresh=10)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
    axes.grid(axis="y", visible=True)
    axes.tick_params(axis="y", length=0)


def _beside(ours: pd.Series, theirs: pd.Series, form: str) -> list[str]:
    return [
        "—" if np.isnan(a) and np.isnan(b) else f"{a:{form}} / {b:{form}}"
        for a, b in zip(ours, theirs, strict=True)
    ]


def _begin(text: str) -> str:
    """A text with a capital at its beginning."""
    return text[:1].upper() + text[1:]
