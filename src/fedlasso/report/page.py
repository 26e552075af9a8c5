"""``index.html``: one file that carries its data, its charting library and its script."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from fedlasso.report.figures import Figure
from fedlasso.report.page_data import page_data
from fedlasso.report.records import Results
from fedlasso.report.tables import Table

_TEMPLATES = files("fedlasso.report") / "templates"
_VEGA = "window.vegaEmbed = vegaEmbed;"
_SCRIPTS = ("data.js", "charts.js", "grid.js", "page.js")


def read_template(name: str) -> str:
    """Text of a file in ``templates/``."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def fill(name: str, **values: Any) -> str:
    """A filled-in HTML template; values are escaped unless the template says otherwise."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.ChainableUndefined)
    return environment.from_string(read_template(name)).render(**values)


def write_page(
    results: Results, main: Table, figures: Sequence[Figure], drawn: Path, file: Path
) -> None:
    """Write the page; ``drawn`` is where the figures' SVG files are."""
    pictures = [
        {
            "title": figure.title,
            "caption": figure.caption,
            "svg": base64.b64encode((drawn / f"{figure.name}.svg").read_bytes()).decode(),
        }
        for figure in figures
    ]
    text = fill(
        "page.html",
        study=results.manifest.name,
        completeness=results.completeness,
        missing=results.missing,
        main=main.html(),
        figures=pictures,
        manifest=results.manifest,
        manifest_text=results.manifest.text(),
        css=Markup(read_template("page.css")),
        data=to_script(page_data(results)),
        vega=vl_convert.javascript_bundle(_VEGA).replace("</script", "<\\/script"),
        script="\n".join(read_template(name) for name in _SCRIPTS),
    )
    file.write_text(text, encoding="utf-8")


def to_script(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
