"""How Sphinx makes the documentation site: `make docs`.

All that a page needs is in the site: no font, script or picture is fetched from elsewhere.
Formulas are MathML, which browsers draw themselves.
"""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

project = "fedlasso"
author = "The fedlasso developers"
copyright = "the fedlasso developers"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
# A link to a heading is a name of it, as in every Markdown reader.
myst_heading_anchors = 4
html_theme = "furo"
html_title = "fedlasso"
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"


def _draw_formula(writer: HTML5Translator, node: nodes.Element) -> None:
    """Draw a formula within a line."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _draw_displayed(writer: HTML5Translator, node: nodes.Element) -> None:
    """Draw a formula on a line of its own."""
    writer.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Have formulas drawn as MathML."""
    app.add_html_math_renderer("mathml", (_draw_formula, None), (_draw_displayed, None))
