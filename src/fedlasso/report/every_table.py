"""The tables of a report: outcomes, then resources, diagnostics and what was run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import pandas as pd

from fedlasso.report.families import family_table
from fedlasso.report.real import data_table, judged_table
from fedlasso.report.records import Results
from fedlasso.report.tables import Table, differences, mean_se, means, shown
from fedlasso.study.columns import COLUMNS, known, say, titles

BLOCKS = ("baseline", "different-distributions")
PAIRED = {"method": "methods", "epochs": "epoch counts", "tuning": "tunings", "rule": "rules"}
# How a cost is printed, by its unit: words, scale and format.
_PRINTED = {"bytes": (" KiB", 1024, ",.0f"), "s": (" s", 1, ".3f"), "": ("", 1, ",.0f")}


def main_table(results: Results) -> Table | None:
    """Baseline and different site distributions at the primary cell."""
    if results.on_real_data:
        return None
    have = results.values("scenario")
    blocks = [s for s in BLOCKS if s in have] or have[:2]
    rows = results.at(**results.primary)
    metrics = [m for m in ("f1", "test_mse", "test_deviance", "gap") if m in results.metrics]
    data = means(results, rows[rows["scenario"].isin(blocks)], metrics)
    text = shown(results.usual(data), metrics)
    note = f"Mean (Monte Carlo standard error) over {_replicates(data)}; {_where(results)}."
    if absent := [say("scenario", s) for s in BLOCKS if s not in have]:
        note += f" Not in these records: {', '.join(absent)}."
    return Table("main", "Main comparison", note, data, text, "Scenario")


def grid_table(results: Results) -> Table:
    """Every cell."""
    metrics = results.metrics
    data = means(results, results.outcome, metrics)
    printed = [
        m for m in ("f1", "active", "test_mse", "test_deviance", "relative_gap") if m in metrics
    ]
    text = shown(data, printed)
    above = ["scenario", *results.primary]
    text["Scenario"] = [titles(cell) for cell in data[above].to_dict("records")]
    text = text.drop(columns=[COLUMNS[axis].heading for axis in results.primary])
    note = (
        f"Mean (Monte Carlo standard error) over {_replicates(data)}. "
        f"The CSV file holds all {len(metrics)} outcomes."
    )
    return Table("grid", "Full grid", note, data, text, "Scenario")


def difference_table(results: Results, along: str) -> Table | None:
    """Every value of an axis against every other, paired within replicate."""
    wanted = ("f1", "test_mse", "test_deviance", "relative_gap")
    metrics = [m for m in wanted if m in results.metrics]
    data = differences(results, along, metrics)
    if data.empty:
        return None
    fixed = {a: v for a, v in results.primary.items() if a != along}
    text = shown(results.usual(data), metrics, sign=True)
    note = (
        "Differences are taken within replicate, then averaged: mean (standard error); "
        f"1.96 standard errors either side give the interval. Printed: {titles(fixed)}; "
        "the CSV file holds every budget, panel and rule."
    )
    words = f"Paired comparison of {PAIRED[along]}"
    return Table(f"paired-{along}", words, note, data, text, "Contrast")


def cutoff_table(results: Results) -> Table | None:
    """The same selected fits, judged with other activity cutoffs."""
    metrics = [m for m in ("f1_1e6", "f1", "f1_1e2") if m in results.outcome]
    if len(metrics) < 2:
        return None
    data = means(results, results.outcome, metrics)
    text = shown(results.usual(data), metrics).rename(columns={"F1": "F1, cutoff 1e-4"})
    note = (
        "F1 of the same selected fits when a coefficient counts as active above each cutoff; "
        f"nothing is tuned again. Printed: {_where(results)}; the CSV file holds every cell."
    )
    return Table("cutoffs", "Sensitivity to the activity cutoff", note, data, text, "Scenario")


def empty_table(results: Results) -> Table | None:
    """How often a method selected nothing."""
    if "active" not in results.outcome:
        return None
    rows = results.outcome[results.outcome["active"].notna()]
    rows = rows.assign(empty=(rows["active"] == 0).astype(float))
    groups = rows.groupby(results.axes, sort=False, observed=True)["empty"]
    data = groups.agg(share="mean", empty="sum", n="count").reset_index()
    by = [axis for axis in results.axes if axis not in ("epochs", "scenario")]
    found = data[data["empty"] > 0]
    counts = rows.groupby(by, sort=False)["empty"].agg(["sum", "count", "mean"]).reset_index()
    text = shown(counts[by])
    text["Empty models"] = _of(counts["sum"], counts["count"])
    text["Share"] = _numbers(counts["mean"], ".1%")
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


def _where(results: Results) -> str:
    return titles(results.primary) or "all cells"


def resource_table(results: Results) -> Table | None:
    """What every method uses: bytes, steps, seconds by phase, share of the penalty search."""
    rows = results.outcome.copy()
    metrics = known("cost", rows)
    if not metrics:
        return None
    seconds = [name for name in metrics if COLUMNS[name].unit == "s"]
    if "seconds_penalty" in rows:
        rows["seconds_total"] = rows[seconds].sum(axis=1)
        rows["penalty_share"] = rows["seconds_penalty"] / rows["seconds_total"]
        metrics += ["seconds_total", "penalty_share"]
    data = means(results, rows, metrics)
    timed = [
        name for name in metrics if name in seconds or name in ("seconds_total", "penalty_share")
    ]
    medians = rows.groupby(results.axes, sort=False)[timed].median().add_suffix("_median")
    data = data.merge(medians.reset_index(), on=results.axes, validate="one_to_one")
    primary = results.usual(data)
    text = shown(primary)
    for column in (COLUMNS[name] for name in known("cost", primary)):
        if column.short:
            unit, scale, form = _PRINTED[column.unit]
            values = primary[f"{column.name}_median" if column.name in timed else column.name]
            text[f"{column.short}{unit}"] = _numbers(values / scale, form)
    if "penalty_share" in primary:
        text["Search share"] = _numbers(primary["penalty_share_median"], ".0%")
    note = (
        "Means over replicates; seconds are medians, which one slow moment of the machine does not "
        "move. Uploads count every path, scalar and validation exchange; steps "
        "are local sweeps or gradients at the busiest site; a dash is a phase the method does not "
        "have. Seconds are those of one machine (see provenance) and one worker's share of it. "
        "Search share: seconds of the penalty search over all seconds. "
        f"Printed: {_where(results)}; the CSV file holds every cell."
    )
    return Table("resources", "Resource accounting", note, data, text, "Scenario")


def diagnostic_table(results: Results) -> Table | None:
    """How many references and local fits met their tolerance, scenario by scenario."""
    if results.reference.empty or results.penalty.empty:
        return None
    references = results.reference.groupby("scenario").agg(
        references=("met", "size"),
        references_met=("met", "sum"),
        worst_stationarity=("stationarity", "max"),
        worst_duality_gap=("duality_gap", "max"),
    )
    paths = results.penalty.groupby("scenario").agg(
        paths=("met", "size"),
        paths_met=("met", "sum"),
        worst_path_gap=("worst_gap", "max"),
        fallbacks=("fallbacks", "sum"),
    )
    data = results.progress.join(references, on="scenario").join(paths, on="scenario")
    text = shown(data[["scenario"]])
    text["Replicates"] = _of(data["finished"], data["asked"])
    text["Failed"] = data["failed"].astype(str)
    text["References met"] = _of(data["references_met"], data["references"])
    text["Worst stationarity"] = _numbers(data["worst_stationarity"], ".1e")
    text["Paths met"] = _of(data["paths_met"], data["paths"])
    text["Worst gap"] = _numbers(data["worst_path_gap"], ".1e")
    text["Fallbacks"] = _numbers(data["fallbacks"], ".0f")
    note = (
        "A pooled reference meets its tolerance at a stationarity norm of at most 1e-9; a local "
        "penalty path when all its fits have a relative duality gap of at most 1e-10. A fallback "
        "is a path fit that needed a second solver."
    )
    return Table("diagnostics", "Numerical diagnostics", note, data, text)


def _of(part: pd.Series, whole: pd.Series) -> list[str]:
    return [
        "—" if pd.isna(p) else f"{int(p)} of {int(w)}" for p, w in zip(part, whole, strict=True)
    ]


def _numbers(values: pd.Series, form: str) -> list[str]:
    return ["—" if pd.isna(value) else f"{value:{form}}" for value in values]


def scenario_table(results: Results) -> Table | None:
    """The scenarios as the manifest records them."""
    if results.on_real_data:
        return None
    data = pd.DataFrame(
        {k: "/".join(map(str, v)) if isinstance(v, tuple) else v for k, v in asdict(each).items()}
        for each in results.manifest.scenarios.values()
    )
    names = {"p": "p", "snr": "SNR"}
    text = data.astype(str).rename(columns=lambda c: names.get(c, c.capitalize()))
    text["Name"] = [say("scenario", s) for s in data["name"]]
    text = text.rename(columns={"Name": "Scenario"})
    for i, sizes in enumerate(each.sizes for each in results.manifest.scenarios.values()):
        if len(sizes) > 3 and len(set(sizes)) == 1:
            text.loc[i, "Sizes"] = f"{len(sizes)} × {sizes[0]}"
    same = [c for c in text if len(text) > 1 and text[c].nunique() == 1]
    note = "Per-site values are separated by slashes; one value serves every site."
    if same:
        note += " In every scenario: " + ", ".join(f"{c} {text[c].iloc[0]}" for c in same) + "."
    return Table("scenarios", "Scenarios", note, data, text.drop(columns=same))


def reference_table(results: Results) -> Table | None:
    """How the pooled Lasso at the common penalty does: what a gap of zero would give."""
    metrics = [m for m in ("f1", "active", "test_mse", "coef_error") if m in results.reference]
    if not metrics:
        return None
    groups = results.reference.groupby("scenario", sort=False)[metrics]
    data = groups.mean().join(groups.sem().add_suffix("_se")).reset_index()
    data.insert(1, "n", groups.size().to_numpy())
    text = shown(data[["scenario"]])
    for name in metrics:
        text[COLUMNS[name].heading] = mean_se(data[name], data[f"{name}_se"])
    note = (
        "The pooled Lasso at the penalty that all methods share: mean (Monte Carlo standard "
        "error). It needs all records in one place, and is a reference, not a competitor."
    )
    return Table("reference", "Pooled reference", note, data, text)


def candidate_table(results: Results) -> Table | None:
    """Which candidate the rules chose, in per cent of replicates."""
    rows = results.candidate
    if rows.empty or "chosen_min" not in rows:
        return None
    by = [*(axis for axis in results.order if axis in rows and axis != "scenario"), "candidate"]
    chosen = rows.groupby(by, sort=False)[["chosen_min", "chosen_1se"]].mean().reset_index()
    several = chosen.groupby("method")["candidate"].transform("nunique") > 1
    chosen = chosen[several].rename(columns={"chosen_min": "min", "chosen_1se": "1se"})
    if chosen.empty:
        return None
    primary = results.usual(chosen)
    text = shown(primary)
    text["Candidate"] = _numbers(primary["candidate"], "g")
    text["Minimum rule"] = _numbers(primary["min"], ".0%")
    text["One-SE rule"] = _numbers(primary["1se"], ".0%")
    note = (
        "Share of fits, over all scenarios, in which validation chose each candidate: the "
        "threshold over the penalty (ST, P) or the rate times the largest eigenvalue (DA). "
        f"Printed: {titles({a: v for a, v in results.primary.items() if a in chosen})}."
    )
    return Table("candidates", "Chosen candidates", note, chosen, text)


# What a report prints, in the supplement's order; append to add one from outside. Each gives
# nothing for records that cannot fill it.
TABLES: list[Callable[[Results], Table | None]] = [
    main_table,
    judged_table,
    family_table,
    scenario_table,
    data_table,
    reference_table,
    grid_table,
    *(partial(difference_table, along=axis) for axis in PAIRED),
    cutoff_table,
    empty_table,
    candidate_table,
    resource_table,
    diagnostic_table,
]
