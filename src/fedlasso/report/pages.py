"""The interactive page: ``index.html``.

The page is one file with its script, which draws every chart, and the recorded rows: every double
exactly, stored once, deflated. A cell is one value of every axis. For each quantity it points to a
vector over the scenario's replicates. Equal vectors (joint and upload-only at E = 1, both rules of
CD) are stored once, and a quantity that is the same in every replicate (bytes, steps) is a vector
of length one.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from fedlasso.report.compare import Comparison, agree_with_paper, read_citation
from fedlasso.report.controls import find_pairs, make_controls
from fedlasso.report.figures import FigureText, looks
from fedlasso.report.filling import fill
from fedlasso.report.findings import Finding
from fedlasso.report.glossary import axis_texts, term_texts
from fedlasso.report.records import Results
from fedlasso.report.tables import ReportTable, mean_se
from fedlasso.report.traces import follow_gaps
from fedlasso.study import Scenario
from fedlasso.study.means import average
from fedlasso.study.purposes import PURPOSES
from fedlasso.study.record_columns import COLUMNS, display_name, known, title

LIBRARY = "vendor/plot.min.js"
SCRIPTS = (
    "data.js", "numbers.js", "titles.js", "plots.js", "menu.js", "tables.js", "charts.js",
    "courses.js", "theory.js", "use.js", "page.js",
)  # fmt: skip


def write_page(
    results: Results,
    main: ReportTable,
    figures: Sequence[FigureText],
    findings: Sequence[Finding],
    folder: Path,
    out: Path,
) -> None:
    """Write the page, with the figures that have been written as SVG files."""
    pictures = {f.name: (out / "figures" / f"{f.name}.svg").read_bytes() for f in figures}
    agreement = agree_with_paper(results)
    carried = page_data(results) | {
        "findings": [asdict(finding) for finding in findings],
        "agreement": _agreement_data(agreement),
        "folder": str(folder),
    }
    # Escaped below: the data must not end the script element that contains them.
    data = json.dumps(carried, separators=(",", ":"), allow_nan=False)
    text = fill(
        "page.html",
        results=results,
        table=main,
        figures=figures,
        purpose=PURPOSES.get(results.manifest.name, ""),
        kind="data set" if results.on_real_data else "scenario",
        several_epochs=results.several_epochs,
        pooled=_pooled(results),
        findings=[_linked(finding) for finding in findings],
        badges=_badges(results),
        agreement=_agreement_table(agreement, findings),
        citation=read_citation(),
        words={display_name("method", term): text for term, text in term_texts(results).items()},
        axis_words=axis_texts(results),
        headings={axis: _axis(results, axis)["label"] for axis in results.axes},
        scenarios=_scenarios(results),
        advice=_can_advise(results),
        controls=make_controls(results, carried),
        library=LIBRARY,
        scripts=SCRIPTS,
        pictures={name: _base64(picture) for name, picture in pictures.items()},
        data=data.replace("<", "\\u003c"),
    )
    (out / "index.html").write_text(text, encoding="utf-8")


def _linked(finding: Finding) -> dict[str, Any]:
    """Return a finding with the query string that shows it."""
    return asdict(finding) | {"address": urlencode({"at": finding.chart, **finding.view})}


def _badges(results: Results) -> list[dict[str, Any]]:
    """How many references and local penalty paths met their tolerance."""
    kinds = {
        "pooled Lasso fits are exact (stationarity ≤ 1e−9)": results.reference,
        "penalty paths of sites are exact (gap ≤ 1e−10)": results.penalty,
    }
    badges = []
    for words, rows in kinds.items():
        if "met" in rows:
            met = int(rows["met"].sum())
            text = f"{met:,} of {len(rows):,} {words}"
            badges.append({"text": text, "good": met == len(rows)})
    return badges


def _scenarios(results: Results) -> dict[str, dict[str, Any]]:
    """Settings of every scenario, as numbers and as a sentence."""
    if results.on_real_data:
        return {}
    return {
        name: {
            "title": display_name("scenario", name),
            "sites": len(each.sizes),
            "p": each.p,
            "sizes": "/".join(map(str, each.sizes)) if len(set(each.sizes)) > 1 else each.sizes[0],
            "snr": each.snr,
            "words": _scenario_text(each),
        }
        for name, each in results.manifest.scenarios.items()
    }


def _scenario_text(each: Scenario) -> str:
    equal = len(set(each.sizes)) == 1
    sizes = f"{each.sizes[0]} each" if equal else "/".join(map(str, each.sizes))
    parts = [
        f"{len(each.sizes)} sites, {sizes} training rows",
        f"{each.p} predictors, {each.nonzeros} of them nonzero",
        f"design {each.design}" if each.design else f"correlation {_per_site(each.correlations)}",
        f"signal-to-noise ratio {each.snr:g}",
    ]
    if set(each.scales) != {1.0}:
        parts.append(f"predictor scales {_per_site(each.scales)}")
    if set(each.noise) != {1.0}:
        parts.append(f"noise times {_per_site(each.noise)}")
    if each.deviations:
        parts.append(f"every site deviates in {each.deviations} coefficients")
    return "; ".join(parts)


def _per_site(values: Sequence[float]) -> str:
    return "/".join(f"{value:g}" for value in values)


def _can_advise(results: Results) -> bool:
    """Whether the page can recommend a method: simulated least squares at a budget of uploads."""
    return (
        not results.on_real_data
        and results.values("panel") != ["work"]
        and "family" not in results.axes
        and "f1" in results.metrics
        and "budget" in results.axes
    )


def _agreement_data(comparison: Comparison | None) -> dict[str, Any] | None:
    """Return published and reproduced cells for the chart; missing values are null."""
    if comparison is None:
        return None
    cells = comparison.cells
    reach = 1.96 * cells["our_se"]
    # A proportion cannot leave its axis, though its interval may.
    limit = [1.0 if COLUMNS[name].scale == "proportion" else np.inf for name in cells["metric"]]
    floor = [0.0 if COLUMNS[name].scale == "proportion" else -np.inf for name in cells["metric"]]
    cells = cells.assign(
        low=np.maximum(cells["our_mean"] - reach, floor),
        high=np.minimum(cells["our_mean"] + reach, limit),
        tip=[_cell_text(cell) for cell in cells.to_dict("records")],
    )
    known = cells.astype(object).where(cells.notna() & ~cells.isin([np.inf, -np.inf]), None)
    return {"cells": known.to_dict("records"), "verdict": comparison.verdict}


def _cell_text(cell: dict[str, Any]) -> str:
    """What the pointer shows of a published mean and ours."""
    where = (
        f"{display_name('scenario', cell['scenario'])}: {display_name('method', cell['method'])}"
    )
    numbers = (
        f"published {cell['mean']:.3g} (SE {cell['se']:.3g})\n"
        f"ours {cell['our_mean']:.3g} (SE {cell['our_se']:.3g})\nz = {cell['z']:.3g}"
    )
    return f"{where}, E = {cell['epochs']}\n" + numbers.replace("-", "−").replace("nan", "—")


def _agreement_table(
    comparison: Comparison | None, findings: Sequence[Finding]
) -> dict[str, Any] | None:
    """Return published and reproduced cells for the table, by scenario, method and epochs."""
    if comparison is None:
        return None
    claims = [finding.text for finding in findings if finding.chart == "agreement"]
    cells = comparison.cells
    lines = []
    by = ["scenario", "method", "epochs"]
    for (scenario, method, epochs), own in cells.groupby(by, sort=False):
        texts = [
            {
                "published": f"{cell['mean']:g} ({cell['se']:g})",
                "ours": mean_se([cell["our_mean"]], [cell["our_se"]])[0],
                "z": "—" if pd.isna(cell["z"]) else f"{cell['z']:+.2f}".replace("-", "−"),
                "far": abs(cell["z"]) > 1.96,
            }
            for cell in own.to_dict("records")
        ]
        named = {
            "scenario": display_name("scenario", scenario),
            "method": display_name("method", method),
        }
        lines.append(named | {"epochs": epochs, "cells": texts})
    return {
        "verdict": comparison.verdict,
        "agrees": comparison.agrees,
        "claim": claims[0] if claims else "",
        "metrics": [COLUMNS[metric].label for metric in dict.fromkeys(cells["metric"])],
        "rows": lines,
    }


def _pooled(results: Results) -> dict[str, dict[str, list[float]]]:
    """Return mean and standard error of the pooled Lasso, by scenario and metric."""
    metrics = [m for m in results.metrics if m in results.reference and COLUMNS[m].scale != "log"]
    if not metrics or "family" in results.axes:
        return {}
    table = average(results.reference, ["scenario"], metrics).fillna(0.0).set_index("scenario")
    return {
        scenario: {m: [float(own[m]), float(own[f"{m}_se"])] for m in metrics}
        for scenario, own in table.iterrows()
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def page_data(results: Results) -> dict[str, Any]:
    """Return what the page's script reads, ready for JSON."""
    rows = results.outcome
    columns = [*known("metric", rows), *known("cost", rows), *known("note", rows)]
    replicates = {
        scenario: sorted(set(rows.loc[rows["scenario"] == scenario, "replicate"].tolist()))
        for scenario in results.values("scenario")
    }
    vectors: dict[bytes, int] = {}
    codes = {axis: {v: i for i, v in enumerate(results.values(axis))} for axis in results.axes}
    cells = []
    numbers = rows[columns].to_numpy(dtype="<f8")
    replicate = rows["replicate"].to_numpy()
    for key, places in rows.groupby(results.axes, sort=False).indices.items():
        where = dict(zip(results.axes, key, strict=True))
        wanted = replicates[where["scenario"]]
        cell = numbers[places]
        if len(cell) != len(wanted):  # replicates that a cell lacks are missing values
            found = dict(zip(replicate[places].tolist(), cell, strict=True))
            missing = np.full(len(columns), np.nan)
            cell = np.array([found.get(number, missing) for number in wanted])
        pointers = []
        for values, constant in zip(cell.T, (cell == cell[0]).all(axis=0), strict=True):
            vector = values[:1] if constant else values
            pointers.append(vectors.setdefault(vector.tobytes(), len(vectors)))
        cells.append([codes[a][v] for a, v in where.items()] + pointers)
    places = [results.axes.index(axis) for axis in results.order]
    cells.sort(key=lambda cell: [cell[i] for i in places])
    lengths = [len(vector) // 8 for vector in vectors]
    return {
        "study": results.manifest.name,
        "words": term_texts(results),
        "scenarios": _scenarios(results),
        "pooled": _pooled(results),
        "gaps": [] if (gaps := follow_gaps(results)) is None else gaps.to_dict("records"),
        "cite": {
            "seed": results.manifest.study["seed"],
            "code": results.manifest.code.get("hash", ""),
            "version": results.manifest.code.get("fedlasso", ""),
            "started": results.manifest.runs[0].started,
        },
        "axes": [_axis(results, axis) for axis in results.axes],
        "pairs": [asdict(pair) for pair in find_pairs(results)],
        "columns": [_column(name) for name in columns],
        "methods": {m: asdict(look) for m, look in looks(results.values("method")).items()},
        "replicates": list(replicates.values()),
        "cells": cells,
        "spans": list(zip(accumulate(lengths, initial=0), lengths, strict=False)),
        "doubles": _base64(zlib.compress(b"".join(vectors), 6)),
    }


def _axis(results: Results, name: str) -> dict[str, Any]:
    """Return the entry of an axis; a scenario of real data is a data set."""
    entry = _column(name)
    if name == "scenario" and results.on_real_data:
        entry |= {"label": "Data set", "heading": "Data set"}
    values = results.values(name)
    entry |= {"values": values, "titles": [title(name, v) for v in values]}
    return entry | {"words": [display_name(name, v) for v in values]}


def _column(name: str) -> dict[str, Any]:
    """Return the entry of a column, with its heading."""
    return asdict(COLUMNS[name]) | {"heading": COLUMNS[name].heading}
