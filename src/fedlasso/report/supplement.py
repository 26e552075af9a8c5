"""The supplement as HTML, as LaTeX source and, where a TeX is found, as PDF.

``templates/proof.txt`` has a heading per step, ``$...$`` in a line and ``$$...$$`` on its own line.
``tests/report/test_proof.py`` checks the algebra of every step with exact symbols.
"""

import html
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from latex2mathml.converter import convert

from fedlasso.report.figures import FigureText
from fedlasso.report.filling import fill, read_template
from fedlasso.report.findings import Finding
from fedlasso.report.records import Results
from fedlasso.report.tables import ReportTable

# Turns of TeX at most, until page numbers and the widths of long tables have settled.
TURNS = 4
# Notes of TeX that change with the figures: their list, and the number of the last page.
UNPRINTED = (rb"\@writefile{lof}", rb"\gdef \@abspage@last")


@dataclass(frozen=True)
class Supplement:
    """What the supplement tells beside its figures; these are known later."""

    results: Results
    tables: Sequence[ReportTable]
    findings: Sequence[Finding]
    folder: Path

    def write_page(self, figures: Sequence[FigureText]) -> None:
        """``index.html``, which points to ``../tables`` and ``../figures``."""
        self._fill("index.html", "supplement.html", figures, proof_html())

    def write_tex(self, figures: Sequence[FigureText]) -> None:
        """``supplement.tex``, which reads ``../tables`` and ``../figures``."""
        self._fill("supplement.tex", "supplement.tex", figures, proof_latex())

    def _fill(self, name: str, template: str, figures: Sequence[FigureText], proof: str) -> None:
        text = fill(
            template,
            results=self.results,
            tables=self.tables,
            figures=figures,
            findings=self.findings,
            failures=[
                f"failed: {scenario} {number}: {text.strip().splitlines()[-1]}"
                for (scenario, number), text in self.results.failures.items()
            ],
            provenance=_provenance(self.results),
            proof=proof,
        )
        (self.folder / name).write_text(text, encoding="utf-8")


def draft_tex(folder: Path) -> None:
    """Let a TeX note the contents and the widths of tables, which it does not know before.

    Figures come last and move neither, so a draft can be made before they are drawn.
    """
    engine = _find_tex()
    if engine is not None and engine.name == "pdflatex":
        _turn(engine, folder, "-draftmode")


def compile_tex(folder: Path) -> Path | None:
    """Compile the supplement where a TeX is found; nothing where it is not, or cannot."""
    if (engine := _find_tex()) is None:
        return None
    for _ in range(TURNS):
        before = _read_notes(folder)
        if not _turn(engine, folder):
            return None  # the log beside the source says why
        if _read_notes(folder) == before:
            break
    for kind in ("aux", "log", "out", "toc"):
        (folder / f"supplement.{kind}").unlink(missing_ok=True)
    return folder / "supplement.pdf"


def _find_tex() -> Path | None:
    found = next(filter(None, map(shutil.which, ("pdflatex", "tectonic"))), None)
    return Path(found) if found else None


def _turn(engine: Path, folder: Path, *options: str) -> bool:
    """Whether a TeX went through the source."""
    if engine.name == "pdflatex":
        options = ("-interaction=batchmode", "-halt-on-error", *options)
    command = [str(engine), *options, "supplement.tex"]
    # The same records give the same bytes.
    undated = os.environ | {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"}
    try:
        done = subprocess.run(command, cwd=folder, env=undated, capture_output=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _read_notes(folder: Path) -> list[bytes]:
    """What TeX notes for its next turn, without what the supplement does not print."""
    notes = folder / "supplement.aux"
    lines = notes.read_bytes().splitlines() if notes.exists() else []
    return [line for line in lines if not line.startswith(UNPRINTED)]


def _provenance(results: Results) -> list[str]:
    """What was run, flat enough for a list."""
    manifest = results.manifest
    lines = []
    for key, value in [*manifest.study.items(), *manifest.code.items()]:
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        lines.append(f"{key}: {text}")
    for run in manifest.runs:
        how = f"engine {run.engine}, {run.workers} workers"
        on = f"{run.machine.processor}, {run.machine.system}"
        lines.append(f"run started {run.started}, {how}, {on}")
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
