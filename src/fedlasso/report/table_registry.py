"""The tables of a report: outcomes, then resources, diagnostics and what was run."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import pandas as pd

from fedlasso.report.families_section import family_table
from fedlasso.report.real_section import data_table, judged_table
from fedlasso.report.records import Results
from fedlasso.report.tables import (
    ReportTable,
    collapse,
    differences,
    in_order,
    mean_se,
    means,
    shown,
    tell_replicates,
)
from fedlasso.report.trust_section import discovery_table, interval_table, paired_discovery_table
from fedlasso.study.means import average
from fedlasso.study.record_columns import COLUMNS, display_name, known, titles

BLOCKS = ("baseline", "different-distributions")
# Rules in the words of a narrow table.
SHORT_RULES = {"minimum validation error": "minimum", "one standard error": "one SE"}
# Methods whose candidates are thresholds.
THRESHOLDED = ("ST", "P", "averaging + ST", "averaging + P")
PAIRED = {"method": "methods", "epochs": "epoch counts", "tuning": "tunings", "rule": "rules"}
# How a cost is printed, by its unit: words, scale and format.
_PRINTED = {"bytes": (" KiB", 1024, ",.0f"), "s": (" s", 1, ".3f"), "": ("", 1, ",.0f")}


def main_table(results: Results) -> ReportTable | None:
    """Baseline and different site distributions at the primary cell."""
    if results.on_real_data:
        return None
    have = results.values("scenario")
    blocks = [s for s in BLOCKS if s in have] or have[:2]
    rows = results.at(**results.primary)
    metrics = results.measured("f1", "test_mse", "test_deviance", "gap")
    if "fdp" in results.metrics:
        metrics = results.measured("fdp", "recall") + metrics
    data = means(results, rows[rows["scenario"].isin(blocks)], metrics)
    text = shown(results.usual(data), metrics)
    note = f"Mean (Monte Carlo standard error) over {tell_replicates(data)}; {_where(results)}."
    absent = [display_name("scenario", s) for s in BLOCKS if s not in have]
    # A study with scenarios of its own lacks none of the paper's.
    if 0 < len(absent) < len(BLOCKS):
        note += f" Not in these records: {', '.join(absent)}."
    prose = (
        "The main comparison: what every method reaches at the largest budget. F1 is about the "
        "columns that were selected, the test error about prediction and the gap about the common "
        "objective; a method can be good at one of them and poor at another."
    )
    return ReportTable("main", "Main comparison", note, data, text, "Scenario", prose)


def grid_table(results: Results) -> ReportTable:
    """Every cell; what is the same under either limit or either rule is printed once."""
    data = means(results, results.outcome, results.metrics)
    printed = results.measured("f1", "active", "test_mse", "test_deviance", "relative_gap")
    seen = [*known("axis", data), *(name for m in printed for name in (m, f"{m}_se"))]
    rows = data[seen]
    for axis in ("rule", "panel"):
        if len(results.values(axis)) > 1:
            rows = collapse(rows, axis, len(results.values(axis)))
    above = ["scenario", *(axis for axis in ("budget",) if axis in results.axes)]
    rows = in_order(results, rows, [*above, *(a for a in ("method", "epochs") if a in rows)])
    headings = {COLUMNS[m].label: COLUMNS[m].heading for m in printed}
    text = shown(rows, printed).rename(columns=headings)
    if "Rule" in text:
        text["Rule"] = text["Rule"].replace(SHORT_RULES)
    text["Scenario"] = [titles(cell) for cell in rows[above].to_dict("records")]
    alone = [axis for axis in results.primary if axis in above or len(results.values(axis)) == 1]
    text = text.drop(columns=[COLUMNS[axis].heading for axis in alone])
    note = (
        f"Mean (Monte Carlo standard error) over {tell_replicates(data)}. "
        f"The CSV file holds all {len(results.metrics)} outcomes, every cell on a row of its own."
    )
    prose = (
        f"Every cell of the study: {len(data):,} of them, printed as {len(rows):,} rows. Where a "
        "method does the same under both resource limits (as at E = 1), or under both rules (as "
        "CD, which has one candidate), the two cells are one row that says either."
    )
    return ReportTable("grid", "Full grid", note, data, text, "Scenario", prose)


def difference_table(results: Results, along: str) -> ReportTable | None:
    """Every value of an axis against every other, paired within replicate."""
    metrics = results.measured("f1", "test_mse", "test_deviance", "relative_gap")
    data = differences(results, along, metrics)
    if data.empty:
        return None
    fixed = {a: v for a, v in results.primary.items() if a != along}
    text = shown(results.usual(data), metrics, sign=True)
    note = (
        "Differences are taken within replicate, then averaged: mean (standard error); "
        "1.96 standard errors either side give the interval."
    )
    if fixed:
        note += f" Printed: {titles(fixed)}; the CSV file holds every budget, panel and rule."
    words = f"Paired comparison of {PAIRED[along]}"
    prose = (
        "Methods, epoch counts and rules share their data sets, so their differences are known "
        "better than the overlap of two intervals suggests. A mean of two standard errors or more "
        "is one that this number of replicates can tell from zero."
    )
    return ReportTable(f"paired-{along}", words, note, data, text, "Contrast", prose)


def cutoff_table(results: Results) -> ReportTable | None:
    """The same selected fits, judged with other activity cutoffs."""
    metrics = results.measured("f1_1e6", "f1", "f1_1e2")
    if len(metrics) < 2:
        return None
    data = means(results, results.outcome, metrics)
    text = shown(results.usual(data), metrics).rename(columns={"F1": "F1, cutoff 1e-4"})
    note = (
        "F1 of the same selected fits when a coefficient counts as active above each cutoff; "
        f"nothing is tuned again. Printed: {_where(results)}; the CSV file holds every cell."
    )
    prose = (
        "Averaging leaves many coefficients that are tiny but not zero. So F1 depends on what "
        "counts as active; the order of the methods should not."
    )
    title = "Sensitivity to the activity cutoff"
    return ReportTable("cutoffs", title, note, data, text, "Scenario", prose)


def empty_table(results: Results) -> ReportTable | None:
    """How often a method selected nothing, and how often validation chose no threshold."""
    if "active" not in results.outcome:
        return None
    rows = results.outcome[results.outcome["active"].notna()]
    rows = rows.assign(empty=(rows["active"] == 0).astype(float))
    measures = ["empty"]
    if "candidate" in rows and rows["method"].isin(THRESHOLDED).any():
        chosen = rows["candidate"].where(rows["method"].isin(THRESHOLDED))
        rows = rows.assign(zero=(chosen == 0).astype(float).where(chosen.notna()))
        measures.append("zero")
    groups = rows.groupby(results.axes, sort=False, observed=True)
    data = groups["empty"].agg(share="mean", empty="sum", n="count").reset_index()
    if "zero" in measures:
        data = data.merge(groups["zero"].agg(zero_threshold="sum").reset_index())
    by = ["scenario", "method", *results.arms]
    usual = results.usual(rows)
    counts = usual.groupby(by, sort=False)[measures].agg(["sum", "count"]).reset_index()
    counts.columns = ["_".join(name for name in pair if name) for pair in counts.columns]
    text = shown(counts[by])
    text["Empty models"] = _of(counts["empty_sum"], counts["empty_count"])
    if "zero" in measures:
        none = counts["zero_count"] == 0
        text["Zero threshold"] = _of(counts["zero_sum"].mask(none), counts["zero_count"])
    found = data[data["empty"] > 0]
    note = (
        "Fits without any active coefficient (precision, recall and F1 are then 0), and fits of ST "
        "and P whose chosen threshold is 0, which leaves CD as it is; all epoch counts together. "
        f"Printed: {_where(results)}; the CSV file holds every cell."
    )
    prose = (
        f"A method selected nothing at all in {len(found):,} of {len(data):,} cells at least once. "
        "A chosen threshold of zero says that validation saw no use in thresholding: ST and P are "
        "then CD itself, dense as that is."
    )
    title = "Empty models and zero thresholds" if "zero" in measures else "Empty models"
    return ReportTable("empty", title, note, data, text, "Scenario", prose)


def _where(results: Results) -> str:
    return titles(results.primary) or "all cells"


def resource_table(results: Results) -> ReportTable | None:
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
    timed = [m for m in metrics if m in (*seconds, "seconds_total", "penalty_share")]
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
    prose = _tell_search(primary)
    return ReportTable("resources", "Resource accounting", note, data, text, "Scenario", prose)


def _tell_search(primary: pd.DataFrame) -> str:
    """What the penalty search is, and how much of the work it is."""
    prose = (
        "Before any method starts, every site searches a penalty of its own: it follows its exact "
        "Lasso path by homotopy from the largest useful penalty down to a thousandth of it and "
        "reads 30 penalties on the way. A step of that search is a knot of the path, where one "
        "column enters or leaves, and is charged as a sweep is, 4 m_j p operations at site j. All "
        "methods share the result, and each is charged for it in full; the training allowance of "
        "the joint limits does not include it."
    )
    if {"penalty_operations", "operations"} <= set(primary.columns):
        ratio = primary["penalty_operations"] / primary["operations"]
        if len(ratio := ratio[ratio > 0]):
            prose += (
                f" In the printed cells the search takes between {ratio.min():.2g} and "
                f"{ratio.max():.3g} times the operations of the training that follows it."
            )
    return prose


def diagnostic_table(results: Results) -> ReportTable | None:
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
    met = f"{int(data['references_met'].sum()):,} of {int(data['references'].sum()):,}"
    paths = f"{int(data['paths_met'].sum()):,} of {int(data['paths'].sum()):,}"
    prose = (
        f"{met} pooled Lasso fits and {paths} penalty paths of sites met their tolerance, so gaps "
        "are measured from the optimum and penalties come from exact paths."
    )
    return ReportTable("diagnostics", "Numerical diagnostics", note, data, text, prose=prose)


def _of(part: pd.Series, whole: pd.Series) -> list[str]:
    pairs = zip(part, whole, strict=True)
    return ["—" if pd.isna(p) else f"{int(p)} of {int(w)}" for p, w in pairs]


def _numbers(values: pd.Series, form: str) -> list[str]:
    return ["—" if pd.isna(value) else f"{value:{form}}" for value in values]


def scenario_table(results: Results) -> ReportTable | None:
    """The scenarios as the manifest records them."""
    if results.on_real_data:
        return None
    data = pd.DataFrame(
        {k: "/".join(map(str, v)) if isinstance(v, tuple) else v for k, v in asdict(each).items()}
        for each in results.manifest.scenarios.values()
    )
    names = {"p": "p", "snr": "SNR"}
    text = data.astype(str).rename(columns=lambda c: names.get(c, c.capitalize()))
    text["Name"] = [display_name("scenario", s) for s in data["name"]]
    text = text.rename(columns={"Name": "Scenario"})
    for i, sizes in enumerate(each.sizes for each in results.manifest.scenarios.values()):
        if len(sizes) > 3 and len(set(sizes)) == 1:
            text.loc[i, "Sizes"] = f"{len(sizes)} × {sizes[0]}"
    same = [c for c in text if len(text) > 1 and text[c].nunique() == 1]
    note = "Per-site values are separated by slashes; one value serves every site."
    if same:
        note += " In every scenario: " + ", ".join(f"{c} {text[c].iloc[0]}" for c in same) + "."
    prose = (
        "The design. Every scenario changes one thing of the first, but for those that say "
        "more; validation and test rows are split over the sites as the training rows are."
    )
    return ReportTable("scenarios", "Design", note, data, text.drop(columns=same), prose=prose)


def reference_table(results: Results) -> ReportTable | None:
    """How the pooled Lasso at the common penalty does: what a gap of zero would give."""
    metrics = [m for m in ("f1", "active", "test_mse", "coef_error") if m in results.reference]
    if not metrics:
        return None
    data = average(results.reference, ["scenario"], metrics)
    text = shown(data[["scenario"]])
    for name in metrics:
        text[COLUMNS[name].heading] = mean_se(data[name], data[f"{name}_se"])
    note = (
        "The pooled Lasso at the penalty that all methods share: mean (Monte Carlo standard "
        "error). It needs all records in one place, and is a reference, not a competitor."
    )
    prose = (
        "What a gap of zero would give. Where a method selects better than this, it does so by "
        "stopping short of the optimum or by another penalty, not by optimising better."
    )
    return ReportTable("reference", "Pooled reference", note, data, text, prose=prose)


def candidate_table(results: Results) -> ReportTable | None:
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
    prose = (
        "What validation chose. A candidate at the end of its range that is chosen often says that "
        "the range, not the method, may be the limit."
    )
    return ReportTable("candidates", "Chosen candidates", note, chosen, text, prose=prose)


# What a report prints, in the supplement's order; append to add one from outside. Each gives
# nothing for records that cannot fill it.
TABLES: list[Callable[[Results], ReportTable | None]] = [
    main_table,
    judged_table,
    family_table,
    discovery_table,
    paired_discovery_table,
    interval_table,
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
