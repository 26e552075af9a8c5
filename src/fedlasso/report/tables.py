"""A table: numbers for machines, text for readers, and how both are written."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fedlasso.report.style import looks
from fedlasso.study.columns import axes

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "—": "---", "–": "--", "−": "$-$", "±": r"$\pm$", "|": r"$|$", "<": "$<$", ">": "$>$",
    "≤": r"$\leq$", "×": r"$\times$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_LATEX.get(c, c) for c in text)


@dataclass(frozen=True, eq=False)
class Table:
    """One table.

    Attributes
    ----------
    data : every row, plain numbers; written as CSV
    shown : what is printed, as text; ``Method`` columns get the method's colour
    block : column of ``shown`` whose values head blocks of rows instead of filling a column
    """

    name: str
    title: str
    note: str
    data: pd.DataFrame
    shown: pd.DataFrame
    block: str | None = None

    def write(self, folder: Path) -> None:
        """``NAME.csv``, ``NAME.md`` and ``NAME.tex``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.data.to_csv(folder / f"{self.name}.csv", index=False)
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")
        (folder / f"{self.name}.tex").write_text(self.latex(), encoding="utf-8")

    @property
    def columns(self) -> list[str]:
        """Printed columns."""
        return [c for c in self.shown.columns if c != self.block]

    def blocks(self) -> list[tuple[str, list[list[str]]]]:
        """Heading and rows of each block; one block without a heading if there are none."""
        if self.block is None:
            return [("", self.shown[self.columns].astype(str).to_numpy().tolist())]
        return [
            (str(heading), rows[self.columns].astype(str).to_numpy().tolist())
            for heading, rows in self.shown.groupby(self.block, sort=False, observed=True)
        ]

    def markdown(self) -> str:
        """Pipe tables."""
        lines = [f"# {self.title}", ""]
        for heading, rows in self.blocks():
            lines += [f"## {heading}", ""] if heading else []
            lines += [_pipes(self.columns), _pipes(["---"] * len(self.columns))]
            lines += [*map(_pipes, rows), ""]
        return "\n".join([*lines, self.note, ""])

    def latex(self) -> str:
        """A booktabs longtable: short ones stay whole, long ones break over pages."""
        head = " & ".join(rf"\textbf{{{escape_latex(c)}}}" for c in self.columns) + r" \\"
        width = len(self.columns)
        words = {self.columns[0], "Contrast"}
        words |= {axis.heading for axis in axes().values() if not axis.number}
        aligned = "".join("l" if column in words else "r" for column in self.columns)
        lines = [
            "% needs: booktabs, longtable, xcolor",
            rf"\begin{{longtable}}{{{aligned}}}",
            rf"\caption{{{escape_latex(self.title)}. {escape_latex(self.note)}}}"
            rf"\label{{tab:{self.name}}}\\",
            r"\toprule", head, r"\midrule", r"\endfirsthead",
            r"\toprule", head, r"\midrule", r"\endhead",
            r"\bottomrule", r"\endfoot",
        ]  # fmt: skip
        marks = self._marks()
        for i, (heading, rows) in enumerate(self.blocks()):
            if heading:
                lines += [r"\addlinespace"] if i else []
                text = rf"\textit{{{escape_latex(heading)}}}"
                lines.append(rf"\multicolumn{{{width}}}{{l}}{{{text}}}\\*")
            for row in rows:
                cells = [
                    rf"\textcolor[HTML]{{{marks[c][1:].upper()}}}{{$\bullet$}}~{escape_latex(c)}"
                    if name == "Method" and c in marks
                    else escape_latex(c)
                    for name, c in zip(self.columns, row, strict=True)
                ]
                lines.append(" & ".join(cells) + r" \\")
        return "\n".join([*lines, r"\end{longtable}", ""])

    def html(self) -> str:
        """A table element with a caption."""
        out = [f'<table class="numbers"><caption>{html.escape(self.title)}</caption><thead><tr>']
        out += [f'<th scope="col">{html.escape(c)}</th>' for c in self.columns]
        out.append("</tr></thead>")
        marks = self._marks()
        for heading, rows in self.blocks():
            out.append("<tbody>")
            if heading:
                span = len(self.columns)
                text = html.escape(heading)
                out.append(f'<tr><th class="block" colspan="{span}" scope="colgroup">{text}</th>')
            for row in rows:
                out.append("<tr>")
                for name, c in zip(self.columns, row, strict=True):
                    mark = name == "Method" and c in marks
                    dot = f'<i class="dot" style="background:{marks[c]}"></i>' if mark else ""
                    out.append(f"<td>{dot}{html.escape(c)}</td>")
            out.append("</tbody>")
        return "".join([*out, f'</table><p class="note">{html.escape(self.note)}</p>'])

    def _marks(self) -> dict[str, str]:
        return {method: look.colour for method, look in looks(self.shown.get("Method", [])).items()}


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def decimals(errors: pd.Series) -> int:
    """Decimals that give a typical standard error two significant digits."""
    known = errors[(errors > 0) & np.isfinite(errors)]
    if known.empty:
        return 3
    return int(np.clip(1 - np.floor(np.log10(known.median())), 0, 8))


def mean_se(mean: pd.Series, se: pd.Series, sign: bool = False) -> list[str]:
    """``mean (SE)`` with the same decimals down a column; an unknown SE (n = 1) is a dash."""
    digits = decimals(se)
    # z: rounding below zero is no minus zero
    form = f"{'+' if sign else ''}z.{digits}f"
    return [
        "—"
        if np.isnan(m)
        else f"{m:{form}} ({'—' if np.isnan(s) else f'{s:.{digits}f}'})".replace("-", "−")
        for m, s in zip(mean, se, strict=True)
    ]
