"""Pages that are one file each: no script, no font, and nothing beside them that they need.

Texts are escaped here; a cell, a note or a body is HTML already.
"""

from collections.abc import Iterable, Sequence
from html import escape as escape
from importlib.resources import files

# More columns than this do not fit beside each other on a telephone.
WIDE = 4


def page(title: str, style: str, body: str) -> str:
    """A whole page, by the style sheet of that name."""
    sheet = (files("fedlasso.html") / f"{style}.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{sheet}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def section(title: str, note: str, body: str) -> str:
    """A heading, what there is to know about it, and what it is about."""
    return f'<h2>{title}</h2><p class="soft">{note}</p>{body}'


def left_out(title: str, why: str | None) -> str:
    """A section that says why it is left out; nothing without a reason."""
    return section(title, f"Left out: {escape(why)}.", "") if why else ""


def bullets(texts: Iterable[str]) -> str:
    """A list."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def facts(values: Iterable[tuple[str, str]]) -> str:
    """Names and values side by side."""
    cells = "".join(f"<div>{name}<b>{value}</b></div>" for name, value in values)
    return f'<div class="facts">{cells}</div>'


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    attributes: Sequence[str] = (),
    kind: str = "",
    own: int | None = None,
) -> str:
    """A table of cells in HTML, with a row of titles where there is a `head`.

    `attributes` are those of the cells in each column, `kind` is the class of the table, and `own`
    the number of the row that stands out.
    """
    lines = [_row("th", map(escape, head))] if head else []
    lines += [
        _row("td", cells, attributes, ' class="own"' * (at == own)) for at, cells in enumerate(rows)
    ]
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}>{''.join(lines)}</table>"


def _row(tag: str, cells: Iterable[str], attributes: Sequence[str] = (), kind: str = "") -> str:
    own = list(cells)
    said = attributes or [""] * len(own)
    inner = (f"<{tag}{more}>{cell}</{tag}>" for more, cell in zip(said, own, strict=True))
    return f"<tr{kind}>{''.join(inner)}</tr>"


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]], own: int | None = None) -> str:
    """A table of texts, of which the first column is left of the others; row `own` stands out.

    On a narrow page a table with many columns is a list, and its cells bear their own heads.
    """
    wide = len(head) > WIDE
    cells = [[breakable(text) for text in row] for row in rows]
    said = name_cells(head) if wide else ()
    return scrolled(table(head, cells, attributes=said, kind="wide" * wide, own=own))


def scrolled(inner: str) -> str:
    """What may be wider than the page."""
    return f'<div class="scroll">{inner}</div>'


def name_cells(head: Sequence[str]) -> list[str]:
    """Attributes by which the cells of a row bear their own heads; the first needs none."""
    return ["", *(f' data-head="{escape(name)}"' for name in head[1:])]


def breakable(text: str) -> str:
    """A text as HTML, in which long names may go on in the next line after an underscore."""
    return escape(text).replace("_", "_<wbr/>")
