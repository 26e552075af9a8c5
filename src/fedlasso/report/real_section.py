"""Tables and figure of the study of real data; None for records of other studies."""

import numpy as np
import pandas as pd

from fedlasso.report import figures
from fedlasso.report.figures import Figure
from fedlasso.report.records import Results
from fedlasso.report.tables import ReportTable, mean_se, replicates_text, shown
from fedlasso.study.datasets import ORIGINS, TUNED
from fedlasso.study.real_summary import WORDS, compare_with_judges
from fedlasso.study.record_columns import PREDICTION, SELECTION

WIDE = 30.0  # per cent beyond which an axis is logarithmic
DRAWN = (PREDICTION, SELECTION)


def judged_table(results: Results) -> ReportTable | None:
    data = _compared(results)
    if data is None:
        return None
    text = shown(data[["scenario", "split"]]).rename(columns={"Scenario": "Data set"})
    text["Worse, %"] = mean_se(data["percent"], data["percent_se"], sign=True)
    text["Columns"] = _beside(data["active"], data["judge_active"], ".1f")
    text["Jaccard"] = _beside(data["jaccard"], data["judge_jaccard"], ".2f")
    pairs = zip(data["method"], data["judge"], strict=True)
    against = [f"{WORDS.get(method, method)} against {WORDS[judge]}" for method, judge in pairs]
    text["Against"] = [words[:1].upper() + words[1:] for words in against]
    note = (
        "Test error above the judge's, in per cent of the judge's mean: mean paired difference "
        f"(standard error) over {replicates_text(data)}. Columns used, and their mean Jaccard "
        "index over pairs of replicates, each ours / the judge's. Judges fit the pooled rows."
    )
    return ReportTable("judged", "Federated fits and their judges", note, data, text, "Against")


def data_table(results: Results) -> ReportTable | None:
    if not results.on_real_data:
        return None
    rows = []
    for name, each in results.manifest.scenarios.items():
        sizes = {"scenario": name, "rows": sum(each.sizes) + each.test, "columns": each.p}
        origin = ORIGINS.get(name, "a file in the data folder")
        rows.append(sizes | {"tuned": name in TUNED, "origin": origin})
    data = pd.DataFrame(rows)
    headings = {"scenario": "Data", "tuned": "Tuned", "origin": "Response"}
    text = data.assign(tuned=np.where(data["tuned"], "yes", "no")).astype(str)
    text = text.rename(columns=lambda name: headings.get(name, name.capitalize()))
    note = (
        "Rows and columns as used. Tuned: whether defaults were developed on the set; the others "
        "were chosen by size only."
    )
    return ReportTable("data", "Data sets", note, data, text)


def judged_figure(results: Results) -> Figure | None:
    data = _compared(results)
    goals = [goal for goal in DRAWN if data is not None and goal in set(data["method"])]
    if data is None or not goals:
        return None
    names = list(dict.fromkeys(data["scenario"]))
    with figures.look():
        height = 1.2 + 0.26 * len(names)
        canvas, grid = figures.make_panels(1, len(goals), height, sharex=False)
        for axes, goal in zip(grid[0], goals, strict=True):
            own = data[data["method"] == goal]
            own = own.assign(bar=1.96 * own["percent_se"].fillna(0))
            axes.axvline(0, color=figures.INK, lw=0.8)
            figures.mark_rows(axes, own, names, "split", "percent", figures.looks(own["split"]))
            if own["percent"].abs().max() > WIDE:
                axes.set_xscale("symlog", linthresh=10)
                axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
            axes.set_title(goal.capitalize(), fontweight="bold")
            axes.set_xlabel(f"% worse than\n{WORDS[own['judge'].iloc[0]]}")
        figures.name_rows(grid[0][0], names)
        figures.put_legend(canvas, grid[0][0], 3)
    caption = (
        "Test error above the judge's in per cent: mean paired difference ± 1.96 standard errors. "
        "Left of zero the federated fit predicts better than the judge, which fits pooled rows. "
        "Three sites, with rows assigned in three ways."
    )
    return Figure("judged", "Federated fits against their judges", caption, canvas)


def _compared(results: Results) -> pd.DataFrame | None:
    if not results.on_real_data:
        return None
    data = compare_with_judges(results.outcome)
    return None if data.empty else data


def _beside(ours: pd.Series, theirs: pd.Series, form: str) -> list[str]:
    return [
        "—" if np.isnan(a) and np.isnan(b) else f"{a:{form}} / {b:{form}}"
        for a, b in zip(ours, theirs, strict=True)
    ]
