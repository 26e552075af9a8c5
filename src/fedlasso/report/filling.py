"""Fills the templates of pages, of the supplement and of tables."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import jinja2

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "—": "---", "–": "--", "−": "$-$", "±": r"$\pm$", "|": r"$|$", "<": "$<$", ">": "$>$",
    "≤": r"$\leq$", "×": r"$\times$",
})  # fmt: skip


def read_template(name: str) -> str:
    """Text of a file in ``templates/``."""
    return (files("fedlasso.report") / "templates" / name).read_text(encoding="utf-8")


_HTML = jinja2.Environment(loader=jinja2.FunctionLoader(read_template), autoescape=True)
_HTML.globals["read"] = read_template
# Braces mean something else in LaTeX.
_PLAIN = _HTML.overlay(
    block_start_string="<%",
    block_end_string="%>",
    variable_start_string="<<",
    variable_end_string=">>",
    trim_blocks=True,
    autoescape=False,
)
_PLAIN.filters["tex"] = lambda text: text.translate(_LATEX)


def fill(name: str, **values: Any) -> str:
    """A filled-in template; in HTML, values are escaped unless the template says otherwise."""
    environment = _HTML if name.endswith(".html") else _PLAIN
    return environment.get_template(name).render(**values)
