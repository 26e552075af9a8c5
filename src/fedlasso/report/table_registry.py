"""The tables of a report: outcomes, resources, diagnostics and design."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import pandas as pd

from fedlasso.report import tables
from fedlasso.report.families_section import family_table
from fedlasso.report.real_section import data_table, judged_table
from fedlasso.report.records import Results
from fedlasso.report.tables import ReportTable, mean_se, means, replicates_text, shown
from fedlasso.report.trust_section import discovery_table, interval_table, paired_discovery_table
from fedlasso.study.means import average
from fedlasso.study.record_columns import COLUMNS, display_name, known, titles

BLOCKS = ("baseline", "different-distributions")
# Rules in a narrow table.
SHORT_RULES = {"minimum validation error": "minimum", "one standard error": "one SE"}
# Methods whose candidates are thresholds.
THRESHOLDED = ("ST", "P", "averaging + ST", "averaging + P")
PAIRED = {"method": "methods", "epochs": "epoch counts", "tuning": "tunings", "rule": "rules"}
# Suffix, scale and format of a cost, by its unit.
_PRINTED = {"bytes": (" KiB", 1024, ",.0f"), "s": (" s", 1, ".3f"), "": ("", 1, ",.0f")}


def main_table(results: Results) -> ReportTable | None:
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
    note = f"Mean (Monte Carlo standard error) over {replicates_text(data)}; {_where(results)}."
    absent = [display_name("scenario", s) for s in BLOCKS if s not in have]
    # A study with scenarios of its own has neither block.
    if 0 < len(absent) < len(BLOCKS):
        note += f" Not in these records: {', '.join(absent)}."
    prose = (
        "Every method at the largest budget. F1 measures selection, the test error prediction and "
        "the gap optimisation; a method can be good at one of them and poor at another."
    )
    return ReportTable("main", "Main comparison", note, data, text, "Scenario", prose)


def grid_table(results: Results) -> ReportTable:
    """Every cell; cells that are equal under both limits or rules are printed once."""
    data = means(results, results.outcome, results.metrics)
    printed = results.measured("f1", "active", "test_mse", "test_deviance", "relative_gap")
    seen = [*known("axis", data), *(name for m in printed for name in (m, f"{m}_se"))]
    rows = data[seen]
    for axis in ("rule", "panel"):
        if len(results.values(axis)) > 1:
            rows = tables.collapse(rows, axis, len(results.values(axis)))
    above = ["scenario", *(axis for axis in ("budget",) if axis in results.axes)]
    rows = tables.in_order(results, rows, [*above, *(a for a in ("method", "epochs") if a in rows)])
    headings = {COLUMNS[m].label: COLUMNS[m].heading for m in printed}
    text = shown(rows, printed).rename(columns=headings)
    if "Rule" in text:
        text["Rule"] = text["Rule"].replace(SHORT_RULES)
    text["Scenario"] = [titles(cell) for cell in rows[above].to_dict("records")]
    alone = [axis for axis in results.primary if axis in above or len(results.values(axis)) == 1]
    text = text.drop(columns=[COLUMNS[axis].heading for axis in alone])
    note = (
        f"Mean (Monte Carlo standard error) over {replicates_text(data)}. "
        f"The CSV file has all {len(results.metrics)} outcomes, one row per cell."
    )
    prose = (
        f"All {len(data):,} cells of the study, printed as {len(rows):,} rows. Equal cells "
        "under both resource limits (as at E = 1) or both rules (as CD, which has one candidate) "
        "are one row, marked “either”."
    )
    return ReportTable("grid", "Full grid", note, data, text, "Scenario", prose)


def difference_table(results: Results, along: str) -> ReportTable | None:
    """Every value of an axis against every other, paired within replicate."""
    metrics = results.measured("f1", "test_mse", "test_deviance", "relative_gap")
    data = tables.differences(results, along, metrics)
    if data.empty:
        return None
    fixed = {a: v for a, v in results.primary.items() if a != along}
    text = shown(results.usual(data), metrics, sign=True)
    note = "Mean paired difference (standard error) over replicates."
    if fixed:
        note += f" Printed: {titles(fixed)}; the CSV file has every budget, panel and rule."
    prose = (
        "All cells fit the same data sets, so paired differences are more precise than separate "
        "intervals suggest. Beyond 1.96 standard errors they differ from zero at the 5% level."
    )
    title = f"Paired comparison of {PAIRED[along]}"
    return ReportTable(f"paired-{along}", title, note, data, text, "Contrast", prose)


def cutoff_table(results: Results) -> ReportTable | None:
    metrics = results.measured("f1_1e6", "f1", "f1_1e2")
    if len(metrics) < 2:
        return None
    data = means(results, results.outcome, metrics)
    text = shown(results.usual(data), metrics).rename(columns={"F1": "F1, cutoff 1e-4"})
    note = f"F1 of the same fits with other cutoffs for active coefficients. {_printed(results)}"
    prose = (
        "Averaging leaves many tiny nonzero coefficients, so F1 depends on the cutoff. "
        "The order of the methods should not."
    )
    title = "Sensitivity to the activity cutoff"
    return ReportTable("cutoffs", title, note, data, text, "Scenario", prose)


def empty_table(results: Results) -> ReportTable | None:
    """How often a method selected nothing, and how often validation chose a zero threshold."""
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
    note = (
        "Fits without an active coefficient (precision, recall and F1 are then 0), and fits of ST "
        f"and P whose chosen threshold is 0; all epoch counts together. {_printed(results)}"
    )
    prose = (
        f"In {int((data['empty'] > 0).sum()):,} of {len(data):,} cells a method selected nothing "
        "at least once. With a threshold of zero, ST and P equal CD, which is dense."
    )
    title = "Empty models and zero thresholds" if "zero" in measures else "Empty models"
    return ReportTable("empty", title, note, data, text, "Scenario", prose)


def _where(results: Results) -> str:
    return titles(results.primary) or "all cells"


def _printed(results: Results) -> str:
    return f"Printed: {_where(results)}; the CSV file has every cell."


def resource_table(results: Results) -> ReportTable | None:
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
        text["Search"] = _numbers(primary["penalty_share_median"], ".0%")
    note = (
        "Means over replicates; medians of seconds, on one worker of one machine (see provenance). "
        "Uploads count every path, scalar and validation exchange; steps are local sweeps or "
        "gradients at the busiest site; a dash: the method has no such phase. Search: seconds of "
        f"the penalty search over all seconds. {_printed(results)}"
    )
    prose = _search_text(primary)
    return ReportTable("resources", "Resource accounting", note, data, text, "Scenario", prose)


def _search_text(primary: pd.DataFrame) -> str:
    prose = (
        "Before any method starts, every site searches its own penalty: it follows its exact Lasso "
        "path by homotopy from lambda.max down to a thousandth of it, and evaluates 30 penalties. "
        "A step is a knot of the path, where one column enters or leaves, and is charged like a "
        "sweep: 4 m_j p operations at site j. Every method is charged for the search in full; it "
        "is not part of the joint limits."
    )
    if {"penalty_operations", "operations"} <= set(primary.columns):
        ratio = primary["penalty_operations"] / primary["operations"]
        if len(ratio := ratio[ratio > 0]):
            prose += (
                f" In the printed cells the search takes {ratio.min():.2g} to {ratio.max():.3g} "
                "times the operations of the training that follows."
            )
    return prose


def diagnostic_table(results: Results) -> ReportTable | None:
    if results.reference.empty or results.penalty.empty:
        return None
    references = results.reference.groupby("scenario").agg(
        references=("met", "size"), references_met=("met", "sum"),
        worst_stationarity=("stationarity", "max"), worst_duality_gap=("duality_gap", "max"),
    )  # fmt: skip
    paths = results.penalty.groupby("scenario").agg(
        paths=("met", "size"), paths_met=("met", "sum"),
        worst_path_gap=("worst_gap", "max"), fallbacks=("fallbacks", "sum"),
    )  # fmt: skip
    data = results.progress.join(references, on="scenario").join(paths, on="scenario")
    text = shown(data[["scenario"]])
    text["Replicates"] = _of(data["finished"], data["requested"])
    text["Failed"] = data["failed"].astype(str)
    text["References met"] = _of(data["references_met"], data["references"])
    text["Worst stationarity"] = _numbers(data["worst_stationarity"], ".1e")
    text["Paths met"] = _of(data["paths_met"], data["paths"])
    text["Worst gap"] = _numbers(data["worst_path_gap"], ".1e")
    text["Fallbacks"] = _numbers(data["fallbacks"], ".0f")
    note = (
        "Tolerances: stationarity of at most 1e-9 for a pooled reference, relative duality gaps of "
        "at most 1e-10 for all fits of a local path. A fallback is a fit by a second solver."
    )
    total = data[["references_met", "references", "paths_met", "paths"]].sum().astype(int)
    prose = (
        f"{total.references_met:,} of {total.references:,} pooled Lasso fits and "
        f"{total.paths_met:,} of {total.paths:,} penalty paths of sites met their tolerance."
    )
    return ReportTable("diagnostics", "Numerical diagnostics", note, data, text, prose=prose)


def _of(part: pd.Series, whole: pd.Series) -> list[str]:
    pairs = zip(part, whole, strict=True)
    return ["—" if pd.isna(p) else f"{int(p)} of {int(w)}" for p, w in pairs]


def _numbers(values: pd.Series, form: str) -> list[str]:
    return ["—" if pd.isna(value) else f"{value:{form}}" for value in values]


def scenario_table(results: Results) -> ReportTable | None:
    if results.on_real_data:
        return None
    data = pd.DataFrame(
        {k: "/".join(map(str, v)) if isinstance(v, tuple) else v for k, v in asdict(each).items()}
        for each in results.manifest.scenarios.values()
    )
    names = {"p": "p", "snr": "SNR"}
    text = data.astype(str).rename(columns=lambda c: names.get(c, c.capitalize()))
    text["Name"] = [display_name("scenario", s) for s in data["name"]]
    text = text.rename(columns={"Name": "Scenario"}).replace({"Design": {"": "autoregressive"}})
    for i, sizes in enumerate(each.sizes for each in results.manifest.scenarios.values()):
        if len(sizes) > 3 and len(set(sizes)) == 1:
            text.loc[i, "Sizes"] = f"{len(sizes)} × {sizes[0]}"
    same = [c for c in text if len(text) > 1 and text[c].nunique() == 1]
    note = "Per-site values are separated by slashes; one value holds for every site."
    if same:
        note += " In every scenario: " + ", ".join(f"{c} {text[c].iloc[0]}" for c in same) + "."
    prose = (
        "Most scenarios change one setting of the first. Validation and test rows are split over "
        "the sites like the training rows."
    )
    return ReportTable("scenarios", "Design", note, data, text.drop(columns=same), prose=prose)


def reference_table(results: Results) -> ReportTable | None:
    metrics = [m for m in ("f1", "active", "test_mse", "coef_error") if m in results.reference]
    if not metrics:
        return None
    data = average(results.reference, ["scenario"], metrics)
    text = shown(data[["scenario"]])
    for name in metrics:
        text[COLUMNS[name].heading] = mean_se(data[name], data[f"{name}_se"])
    note = (
        "The pooled Lasso at the common penalty: mean (Monte Carlo standard error). It needs the "
        "pooled rows: a reference, not a competitor."
    )
    prose = "Methods that select better stop short of the optimum, or use a different penalty."
    return ReportTable("reference", "Pooled reference", note, data, text, prose=prose)


def candidate_table(results: Results) -> ReportTable | None:
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
        "Percentage of fits, over all scenarios, in which validation chose each candidate: the "
        "threshold over the penalty (ST, P) or the rate times the largest eigenvalue (DA). "
        f"Printed: {titles({a: v for a, v in results.primary.items() if a in chosen})}."
    )
    prose = "If the first or last candidate is chosen often, its range may be what limits a method."
    return ReportTable("candidates", "Chosen candidates", note, chosen, text, prose=prose)


# The tables in the supplement's order; append to add one from outside. A table that the records
# cannot fill is None.
TABLES: list[Callable[[Results], ReportTable | None]] = [
    main_table, judged_table, family_table, discovery_table, paired_discovery_table, interval_table,
    scenario_table, data_table, reference_table, grid_table,
    *(partial(difference_table, along=axis) for axis in PAIRED),
    cutoff_table, empty_table, candidate_table, resource_table, diagnostic_table,
]  # fmt: skip
