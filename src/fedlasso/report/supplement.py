"""The supplement, as HTML and as LaTeX source: proof, every table, every figure, provenance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from fedlasso.report.figures import Figure
from fedlasso.report.page import fill, read_template
from fedlasso.report.proof import proof_html, proof_latex
from fedlasso.report.records import Results
from fedlasso.report.tables import Table, escape_latex

_LONG = 60  # rows that are folded away at first in HTML


def write_supplement(
    results: Results, tables: Sequence[Table], figures: Sequence[Figure], folder: Path
) -> None:
    """``index.html`` and ``supplement.tex``; both point to ``../tables`` and ``../figures``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(_html(results, tables, figures), encoding="utf-8")
    (folder / "supplement.tex").write_text(_latex(results, tables, figures), encoding="utf-8")


def _html(results: Results, tables: Sequence[Table], figures: Sequence[Figure]) -> str:
    return fill(
        "supplement.html",
        study=results.manifest.name,
        completeness=results.completeness,
        missing=results.missing,
        css=Markup(read_template("page.css")),
        proof=proof_html(),
        tables=[
            {"name": t.name, "title": t.title, "html": t.html(), "rows": len(t.shown),
             "long": len(t.shown) > _LONG}
            for t in tables
        ],
        figures=figures,
        failures=_failures(results),
        manifest_text=results.manifest.text(),
    )  # fmt: skip


def _latex(results: Results, tables: Sequence[Table], figures: Sequence[Figure]) -> str:
    environment = jinja2.Environment(
        block_start_string="<%", block_end_string="%>",
        variable_start_string="<<", variable_end_string=">>",
        trim_blocks=True, autoescape=False,
    )  # fmt: skip
    return environment.from_string(read_template("supplement.tex")).render(
        study=escape_latex(results.manifest.name),
        completeness=escape_latex(results.completeness),
        missing=[escape_latex(line) for line in results.missing],
        proof=proof_latex(),
        tables=[
            {"name": t.name, "title": t.title,
             "size": "scriptsize" if len(t.columns) > 7 else "small"}
            for t in tables
        ],
        figures=[{"name": f.name, "caption": escape_latex(f.caption)} for f in figures],
        provenance=[escape_latex(line) for line in _provenance(results)],
    )  # fmt: skip


def _provenance(results: Results) -> list[str]:
    """What was run, flat enough for a list."""
    manifest = results.manifest
    lines = [f"{key}: {_plain(value)}" for key, value in manifest.study.items()]
    lines += [f"{key}: {value}" for key, value in manifest.code.items()]
    for run in manifest.runs:
        lines.append(
            f"run started {run.started}, engine {run.engine}, {run.workers} workers, "
            f"{run.machine.processor}, {run.machine.system}"
        )
        if run.another_processor:
            lines.append(f"on another kind of processor: {run.another_processor}")
    return lines + _failures(results)


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _failures(results: Results) -> list[str]:
    return [
        f"failed: {scenario} {number}: {text.strip().splitlines()[-1]}"
        for (scenario, number), text in results.failures.items()
    ]
