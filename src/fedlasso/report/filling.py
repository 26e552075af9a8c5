"""Fill the templates of the page, the supplement and the tables."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "—": "---", "–": "--", "−": "$-$", "±": r"$\pm$", "|": r"$|$", "<": "$<$", ">": "$>$",
    "≤": r"$\leq$", "×": r"$\times$",
})  # fmt: skip


def read_template(name: str) -> str:
    return (files("fedlasso.report") / "templates" / name).read_text(encoding="utf-8")


_HTML = jinja2.Environment(loader=jinja2.FunctionLoader(read_template), autoescape=True)
_HTML.globals["read"] = read_template
# LaTeX uses braces itself.
_PLAIN = _HTML.overlay(
    block_start_string="<%",
    block_end_string="%>",
    variable_start_string="<<",
    variable_end_string=">>",
    trim_blocks=True,
    autoescape=False,
)


# Rows of tables are filled here, much faster than by a template. Methods get a dot of their colour.
def _cells(row: Sequence[str], table: Any) -> Markup:
    cells = []
    for column, side, cell in zip(table.columns, table.alignment, row, strict=True):
        kind = ' class="text"' if side == "l" else ""
        colour = table.colours.get((column, cell))
        dot = f'<i class="dot" style="background:{colour}"></i>' if colour else ""
        cells.append(f"<td{kind}>{dot}{escape(cell)}</td>")
    return Markup("".join(cells))


def _tex_cells(row: Sequence[str], table: Any) -> str:
    cells = []
    for column, cell in zip(table.columns, row, strict=True):
        colour = table.colours.get((column, cell))
        dot = rf"\textcolor[HTML]{{{colour[1:].upper()}}}{{$\bullet$}}~" if colour else ""
        cells.append(dot + _tex(cell))
    return " & ".join(cells)


def _tex(text: str) -> str:
    return text.translate(_LATEX)


_HTML.filters["cells"] = _cells
_PLAIN.filters |= {"tex": _tex, "tex_cells": _tex_cells}


def fill(name: str, **values: Any) -> str:
    """Return a filled template; in HTML, values are escaped unless marked as safe."""
    environment = _HTML if name.endswith(".html") else _PLAIN
    return environment.get_template(name).render(**values)
