"""Resources, numerical diagnostics, the scenarios, and the pooled reference."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from fedlasso.report.means import means, shown
from fedlasso.report.paper_tables import where
from fedlasso.report.records import Results
from fedlasso.report.style import title, titles
from fedlasso.report.tables import Table, mean_se
from fedlasso.study.columns import COLUMNS, known

# How a unit is printed: bytes as KiB.
_PRINTED = {"bytes": (" KiB", 1024), "s": (" s", 1), "": ("", 1)}


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
    primary = results.usual(data)
    text = shown(primary.drop(columns=list(results.primary)), [])
    for column in (COLUMNS[name] for name in known("cost", primary)):
        if column.short:
            unit, scale = _PRINTED[column.unit]
            text[f"{column.short}{unit}"] = _numbers(primary[column.name] / scale, column.format)
    if "penalty_share" in primary:
        text["Search share"] = _numbers(primary["penalty_share"], ".0%")
    note = (
        "Means over replicates. Uploads count every path, scalar and validation exchange; steps "
        "are local sweeps or gradients at the busiest site; a dash is a phase the method does not "
        "have. Seconds are those of one machine (see provenance) and one worker's share of it. "
        "Search share: seconds of the penalty search over all seconds. "
        f"Printed: {where(results)}; the CSV file holds every cell."
    )
    return Table("resources", "Resource accounting", note, data, text, "Scenario")


def diagnostic_table(results: Results) -> Table | None:
    """How many references and local fits met their tolerance, scenario by scenario."""
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
    text = pd.DataFrame({"Scenario": [title("scenario", s) for s in data["scenario"]]})
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


def scenario_table(results: Results) -> Table:
    """The scenarios as the manifest records them."""
    data = pd.DataFrame(
        {k: "/".join(map(str, v)) if isinstance(v, tuple) else v for k, v in asdict(each).items()}
        for each in results.manifest.scenarios.values()
    )
    names = {"p": "p", "snr": "SNR"}
    text = data.astype(str).rename(columns=lambda c: names.get(c, c.capitalize()))
    text["Name"] = [title("scenario", s) for s in data["name"]]
    text = text.rename(columns={"Name": "Scenario"})
    text["Sizes"] = [_short(s) for s in text["Sizes"]]
    same = [c for c in text if len(text) > 1 and text[c].nunique() == 1]
    note = "Per-site values are separated by slashes; one value serves every site."
    if same:
        note += " In every scenario: " + ", ".join(f"{c} {text[c].iloc[0]}" for c in same) + "."
    return Table("scenarios", "Scenarios", note, data, text.drop(columns=same))


def _short(sizes: str) -> str:
    values = sizes.split("/")
    same = len(values) > 3 and len(set(values)) == 1
    return f"{len(values)} × {values[0]}" if same else sizes


def reference_table(results: Results) -> Table | None:
    """How the pooled Lasso at the common penalty does: what a gap of zero would give."""
    metrics = [m for m in ("f1", "active", "test_mse", "coef_error") if m in results.reference]
    if not metrics:
        return None
    groups = results.reference.groupby("scenario", sort=False)[metrics]
    data = groups.mean().join(groups.sem().add_suffix("_se")).reset_index()
    data.insert(1, "n", groups.size().to_numpy())
    text = pd.DataFrame({"Scenario": [title("scenario", s) for s in data["scenario"]]})
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
    at = {a: v for a, v in results.primary.items() if a in chosen}
    primary = results.usual(chosen)
    text = shown(primary.drop(columns=["candidate", *at]), [])
    text["Candidate"] = [f"{v:g}" for v in primary["candidate"]]
    text["Minimum rule"] = [f"{v:.0%}" for v in primary["min"]]
    text["One-SE rule"] = [f"{v:.0%}" for v in primary["1se"]]
    note = (
        "Share of fits, over all scenarios, in which validation chose each candidate: the "
        "threshold over the penalty (ST, P) or the rate times the largest eigenvalue (DA). "
        f"Printed: {titles(at)}."
    )
    return Table("candidates", "Chosen candidates", note, chosen, text)
