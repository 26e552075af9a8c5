"""The proof of the correlated proposition, step by step, for LaTeX and for HTML.

``templates/proof.txt`` has a heading per step, ``$...$`` in a line and ``$$...$$`` on its own line.
``tests/report/test_proof.py`` checks the algebra of every step with exact symbols.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from latex2mathml.converter import convert

from fedlasso.report.page import read_template


@dataclass(frozen=True)
class Step:
    """One step: what it claims, and why."""

    title: str
    text: str


def read_proof() -> list[Step]:
    """The claim, and then the steps that prove it."""
    _, *pieces = re.split(r"^# (.+)$", read_template("proof.txt"), flags=re.MULTILINE)
    return [Step(*pair) for pair in zip(pieces[::2], pieces[1::2], strict=True)]


def proof_latex() -> str:
    """The proof as LaTeX."""
    parts = [rf"\paragraph{{{step.title}.}}{_displays(step.text)}" for step in read_proof()]
    return "\n".join([*parts, r"\hfill$\square$", ""])


def _displays(text: str) -> str:
    return re.sub(r"\$\$(.+?)\$\$", r"\\[\1\\]", text, flags=re.DOTALL)


def proof_html() -> str:
    """The proof as HTML with MathML, which browsers draw without any script."""
    return "".join(
        f"<h3>{html.escape(step.title, quote=False)}</h3>{_to_html(step.text)}"
        for step in read_proof()
    )


def _to_html(text: str) -> str:
    pieces = re.split(r"(\$\$.+?\$\$|\$.+?\$)", text.strip(), flags=re.DOTALL)
    out = ["<p>"]
    for piece in pieces:
        if piece.startswith("$$"):
            out.append("</p>" + convert(piece[2:-2], display="block") + "<p>")
        elif piece.startswith("$"):
            out.append(convert(piece[1:-1]))
        else:
            out.append(html.escape(piece, quote=False))
    return "".join([*out, "</p>"])
