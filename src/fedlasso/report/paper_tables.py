"""The main table, and the supplement's tables of outcomes."""

from __future__ import annotations

import pandas as pd

from fedlasso.report.means import differences, means, shown
from fedlasso.report.records import Results
from fedlasso.report.style import label, title, titles
from fedlasso.report.tables import Table
from fedlasso.study.columns import COLUMNS

BLOCKS = ("baseline", "different-distributions")
MAIN = ("f1", "test_mse", "gap")
COMPARED = ("f1", "test_mse", "relative_gap")
COMPARISONS = {
    "method": "methods", "epochs": "epoch counts", "tuning": "tunings", "rule": "rules",
}  # fmt: skip
CUTOFFS = ("f1_1e6", "f1", "f1_1e2")


def where(results: Results) -> str:
    """The primary cell in words."""
    return titles(results.primary) or "all cells"


def main_table(results: Results) -> Table:
    """Baseline and different site distributions at the primary cell."""
    have = results.values("scenario")
    blocks = [s for s in BLOCKS if s in have] or have[:2]
    rows = results.at(**results.primary)
    metrics = [m for m in MAIN if m in results.metrics]
    data = means(results, rows[rows["scenario"].isin(blocks)], metrics)
    text = shown(data.drop(columns=list(results.primary)), metrics)
    note = f"Mean (Monte Carlo standard error) over {_replicates(data)}; {where(results)}."
    if absent := [label("scenario", s) for s in BLOCKS if s not in have]:
        note += f" Not in these records: {', '.join(absent)}."
    return Table("main", "Main comparison", note, data, text, "Scenario")


def grid_table(results: Results) -> Table:
    """Every cell."""
    metrics = results.metrics
    data = means(results, results.outcome, metrics)
    printed = [m for m in ("f1", "active", "test_mse", "relative_gap") if m in metrics]
    text = shown(data, printed)
    above = ["scenario", *results.primary]
    text["Scenario"] = [
        ", ".join(title(axis, value) for axis, value in zip(above, row, strict=True))
        for row in data[above].itertuples(index=False)
    ]
    text = text.drop(columns=[COLUMNS[axis].heading for axis in results.primary])
    note = (
        f"Mean (Monte Carlo standard error) over {_replicates(data)}. "
        f"The CSV file holds all {len(metrics)} outcomes."
    )
    return Table("grid", "Full grid", note, data, text, "Scenario")


def difference_table(results: Results, along: str) -> Table | None:
    """Every value of an axis against every other, paired within replicate."""
    metrics = [m for m in COMPARED if m in results.metrics]
    data = differences(results, results.outcome, along, metrics)
    if data.empty:
        return None
    fixed = {a: v for a, v in results.primary.items() if a != along}
    text = shown(results.usual(data).drop(columns=list(fixed)), metrics, sign=True)
    note = (
        "Differences are taken within replicate, then averaged: mean (standard error); "
        f"1.96 standard errors either side give the interval. Printed: {titles(fixed)}; "
        "the CSV file holds every budget, panel and rule."
    )
    words = f"Paired comparison of {COMPARISONS[along]}"
    return Table(f"paired-{along}", words, note, data, text, "Contrast")


def cutoff_table(results: Results) -> Table | None:
    """The same selected fits, judged with other activity cutoffs."""
    metrics = [m for m in CUTOFFS if m in results.outcome]
    if len(metrics) < 2:
        return None
    data = means(results, results.outcome, metrics)
    text = shown(results.usual(data).drop(columns=list(results.primary)), metrics)
    text = text.rename(columns={"F1": "F1, cutoff 1e-4"})
    note = (
        "F1 of the same selected fits when a coefficient counts as active above each cutoff; "
        f"nothing is tuned again. Printed: {where(results)}; the CSV file holds every cell."
    )
    return Table("cutoffs", "Sensitivity to the activity cutoff", note, data, text, "Scenario")


def empty_table(results: Results) -> Table | None:
    """How often a method selected nothing."""
    if "active" not in results.outcome:
        return None
    rows = results.outcome.assign(empty=(results.outcome["active"] == 0).astype(float))
    groups = rows.groupby(results.axes, sort=False, observed=True)["empty"]
    data = groups.agg(share="mean", empty="sum", n="count").reset_index()
    by = [axis for axis in results.axes if axis not in ("epochs", "scenario")]
    found = data[data["empty"] > 0]
    counts = rows.groupby(by, sort=False)["empty"].agg(["sum", "count"]).reset_index()
    text = shown(counts[by], [])
    pairs = list(zip(counts["sum"].astype(int), counts["count"], strict=True))
    text["Empty models"] = [f"{some} of {n}" for some, n in pairs]
    text["Share"] = [f"{some / n:.1%}" for some, n in pairs]
    note = (
        "Fits without any active coefficient (precision, recall and F1 are then 0), over all "
        f"scenarios and epoch counts; they occur in {len(found)} of {len(data)} cells. "
        "The CSV file holds every cell."
    )
    return Table("empty", "Empty models", note, data, text)


def _replicates(data: pd.DataFrame) -> str:
    low = int(data["n"].min())
    high = int(data["n"].max())
    return f"{low} replicates" if low == high else f"{low} to {high} replicates"
