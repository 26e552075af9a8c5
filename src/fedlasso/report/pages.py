"""The page to explore (``index.html``) and the supplement, as HTML and as LaTeX source.

The page is one file that carries its charting library, its script and the recorded rows: every
double exactly, stored once, deflated. A cell is one value of every axis. For each quantity it
points to a vector over the scenario's replicates. Equal vectors (joint and upload-only at E = 1,
both rules of CD) are stored once, and a quantity that is the same in every replicate (bytes, steps)
is a vector of length one.

``templates/proof.txt`` has a heading per step, ``$...$`` in a line and ``$$...$$`` on its own line.
``tests/report/test_proof.py`` checks the algebra of every step with exact symbols.
"""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import vl_convert
from latex2mathml.converter import convert

from fedlasso.report.figures import Figure, looks
from fedlasso.report.filling import fill, read_template
from fedlasso.report.records import Results
from fedlasso.report.tables import Table
from fedlasso.study import STUDIES
from fedlasso.study.columns import COLUMNS, known, say, title


def write_page(results: Results, main: Table, figures: Sequence[Figure], out: Path) -> None:
    """Write the page, with the figures that have been written as SVG files."""
    pictures = {f.name: (out / "figures" / f"{f.name}.svg").read_bytes() for f in figures}
    # The data cannot end the script element they stand in.
    data = json.dumps(page_data(results), separators=(",", ":"), allow_nan=False)
    text = fill(
        "page.html",
        results=results,
        table=main,
        figures=figures,
        findings=_findings(results),
        pictures={name: _base64(picture) for name, picture in pictures.items()},
        data=data.replace("<", "\\u003c"),
        vega=_vega(),
    )
    (out / "index.html").write_text(text, encoding="utf-8")


def _findings(results: Results) -> list[str]:
    """What the study concludes in sentences, if it does."""
    find = getattr(STUDIES.get(results.manifest.name), "findings", None)
    return find(results.outcome) if find else []


@cache
def _vega() -> str:
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def page_data(results: Results) -> dict[str, Any]:
    """What the page's script reads, ready for JSON."""
    rows = results.outcome
    columns = [*known("metric", rows), *known("cost", rows), *known("note", rows)]
    replicates = {
        scenario: sorted(set(rows.loc[rows["scenario"] == scenario, "replicate"].tolist()))
        for scenario in results.values("scenario")
    }
    vectors: dict[bytes, int] = {}
    codes = {axis: {v: i for i, v in enumerate(results.values(axis))} for axis in results.axes}
    cells = []
    for key, cell in rows.groupby(results.axes, sort=False):
        where = dict(zip(results.axes, key, strict=True))
        wanted = replicates[where["scenario"]]
        if len(cell) != len(wanted):  # a cell that lacks replicates has missing values, not others
            cell = cell.set_index("replicate").reindex(wanted)
        pointers = []
        for values in cell[columns].to_numpy(dtype="<f8").T:
            vector = values[:1] if (values == values[0]).all() else values
            pointers.append(vectors.setdefault(vector.tobytes(), len(vectors)))
        cells.append([codes[a][v] for a, v in where.items()] + pointers)
    places = [results.axes.index(axis) for axis in results.order]
    cells.sort(key=lambda cell: [cell[i] for i in places])
    lengths = [len(vector) // 8 for vector in vectors]
    return {
        "study": results.manifest.name,
        "axes": [
            {
                **_column(axis),
                "values": results.values(axis),
                "titles": [title(axis, v) for v in results.values(axis)],
                "words": [say(axis, v) for v in results.values(axis)],
            }
            for axis in results.axes
        ],
        "primary": results.primary,
        "columns": [_column(name) for name in columns],
        "methods": {m: asdict(look) for m, look in looks(results.values("method")).items()},
        "replicates": list(replicates.values()),
        "cells": cells,
        "spans": list(zip(accumulate(lengths, initial=0), lengths, strict=False)),
        "doubles": _base64(zlib.compress(b"".join(vectors), 9)),
    }


def _column(name: str) -> dict[str, Any]:
    """The entry of a column in the table of columns, with its heading."""
    return asdict(COLUMNS[name]) | {"heading": COLUMNS[name].heading}


def write_supplement(
    results: Results, tables: Sequence[Table], figures: Sequence[Figure], folder: Path
) -> None:
    """``index.html`` and ``supplement.tex``; both point to ``../tables`` and ``../figures``."""
    failures = [
        f"failed: {scenario} {number}: {text.strip().splitlines()[-1]}"
        for (scenario, number), text in results.failures.items()
    ]
    page = fill(
        "supplement.html",
        results=results,
        tables=tables,
        figures=figures,
        failures=failures,
        proof=proof_html(),
    )
    (folder / "index.html").write_text(page, encoding="utf-8")
    source = fill(
        "supplement.tex",
        results=results,
        tables=tables,
        figures=figures,
        provenance=_provenance(results) + failures,
        proof=proof_latex(),
    )
    (folder / "supplement.tex").write_text(source, encoding="utf-8")


def _provenance(results: Results) -> list[str]:
    """What was run, flat enough for a list."""
    manifest = results.manifest
    lines = []
    for key, value in [*manifest.study.items(), *manifest.code.items()]:
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        lines.append(f"{key}: {text}")
    for run in manifest.runs:
        lines.append(
            f"run started {run.started}, engine {run.engine}, {run.workers} workers, "
            f"{run.machine.processor}, {run.machine.system}"
        )
        if run.another_processor:
            lines.append(f"on another kind of processor: {run.another_processor}")
    return lines


def read_proof() -> list[tuple[str, str]]:
    """The claim, and then the steps that prove it: what each says, and why."""
    _, *pieces = re.split(r"^# (.+)$", read_template("proof.txt"), flags=re.MULTILINE)
    return list(zip(pieces[::2], pieces[1::2], strict=True))


def proof_latex() -> str:
    """The proof as LaTeX."""
    steps = "".join(rf"\paragraph{{{heading}.}}{text}" + "\n" for heading, text in read_proof())
    displayed = re.sub(r"\$\$(.+?)\$\$", r"\\[\1\\]", steps, flags=re.DOTALL)
    return displayed + r"\hfill$\square$" + "\n"


def proof_html() -> str:
    """The proof as HTML with MathML, which browsers draw without any script."""
    out = []
    for heading, text in read_proof():
        out.append(f"<h3>{html.escape(heading, quote=False)}</h3><p>")
        for piece in re.split(r"(\$\$.+?\$\$|\$.+?\$)", text.strip(), flags=re.DOTALL):
            if piece.startswith("$$"):
                out.append("</p>" + convert(piece[2:-2], display="block") + "<p>")
            elif piece.startswith("$"):
                out.append(convert(piece[1:-1]))
            else:
                out.append(html.escape(piece, quote=False))
        out.append("</p>")
    return "".join(out)
