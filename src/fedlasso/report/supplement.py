"""The supplement as HTML, as LaTeX source and, if TeX is installed, as PDF.

``templates/proof.txt`` has a heading per step, ``$...$`` in a line and ``$$...$$`` on its own line.
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

# Maximum runs of TeX until page numbers and the widths of long tables have converged.
TEX_RUNS = 4
# Lines of the .aux file that change with the figures: their list, and the last page number.
IGNORED_NOTES = (rb"\@writefile{lof}", rb"\gdef \@abspage@last")


@dataclass(frozen=True)
class Supplement:
    """The supplement without its figures, which are drawn meanwhile."""

    results: Results
    tables: Sequence[ReportTable]
    findings: Sequence[Finding]
    folder: Path

    def write(self, name: str, figures: Sequence[FigureText]) -> None:
        """Write ``index.html`` or ``supplement.tex``; both use ``../tables`` and ``../figures``."""
        page = name.endswith(".html")
        text = fill(
            "supplement.html" if page else "supplement.tex",
            results=self.results,
            tables=self.tables,
            figures=figures,
            findings=self.findings,
            failures=[
                f"failed: {scenario} {number}: {text.strip().splitlines()[-1]}"
                for (scenario, number), text in self.results.failures.items()
            ],
            provenance=_provenance(self.results),
            proof=proof_html() if page else proof_latex(),
        )
        (self.folder / name).write_text(text, encoding="utf-8")


def draft_tex(folder: Path) -> None:
    """Run TeX for the contents and the widths of tables, which figures do not change."""
    engine = _find_tex()
    if engine is not None and engine.name == "pdflatex":
        _run_tex(engine, folder, "-draftmode")


def compile_tex(folder: Path) -> Path | None:
    """Compile the supplement; None if there is no TeX or it fails."""
    if (engine := _find_tex()) is None:
        return None
    for _ in range(TEX_RUNS):
        before = _read_notes(folder)
        if not _run_tex(engine, folder):
            return None  # the log beside the source states why
        if _read_notes(folder) == before:
            break
    for kind in ("aux", "log", "out", "toc"):
        (folder / f"supplement.{kind}").unlink(missing_ok=True)
    return folder / "supplement.pdf"


def _find_tex() -> Path | None:
    found = next(filter(None, map(shutil.which, ("pdflatex", "tectonic"))), None)
    return Path(found) if found else None


def _run_tex(engine: Path, folder: Path, *options: str) -> bool:
    """Run TeX once; return whether it succeeded."""
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
    """Return the lines of the .aux file, without those that the supplement does not print."""
    notes = folder / "supplement.aux"
    lines = notes.read_bytes().splitlines() if notes.exists() else []
    return [line for line in lines if not line.startswith(IGNORED_NOTES)]


def _provenance(results: Results) -> list[str]:
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
    """Return heading and text of the claim, then of every step of its proof."""
    _, *pieces = re.split(r"^# (.+)$", read_template("proof.txt"), flags=re.MULTILINE)
    return list(zip(pieces[::2], pieces[1::2], strict=True))


def proof_latex() -> str:
    steps = "".join(rf"\paragraph{{{heading}.}}{text}" + "\n" for heading, text in read_proof())
    displayed = re.sub(r"\$\$(.+?)\$\$", r"\\[\1\\]", steps, flags=re.DOTALL)
    return displayed + r"\hfill$\square$" + "\n"


def proof_html() -> str:
    """Return the proof as HTML with MathML, which browsers render without a script."""
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
