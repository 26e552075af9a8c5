"""Self-contained HTML pages, without scripts or fonts.

Texts are escaped here; cells, notes and bodies are HTML already.
"""

from collections.abc import Iterable, Sequence
from html import escape as escape
from importlib.resources import files

# Tables with more columns than this do not fit the width of a telephone.
WIDE = 4
# A cell without a value; a narrow page hides it.
NONE = "–"


def page(title: str, style: str, body: str) -> str:
    """Return a page with the style sheet of that name."""
    sheet = (files("fedlasso.html") / f"{style}.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{sheet}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def section(title: str, note: str, body: str) -> str:
    return f'<h2>{title}</h2><p class="soft">{note}</p>{body}'


def left_out(title: str, why: str | None) -> str:
    """Return a section with the reason why it is left out; nothing without a reason."""
    return section(title, f"Left out: {escape(why)}.", "") if why else ""


def bullets(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def facts(values: Iterable[tuple[str, str]]) -> str:
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
    """Return a table of HTML cells, with a header row if there is a `head`.

    `attributes` are those of the cells in each column, `kind` is the class of the table, and `own`
    the number of the highlighted row.
    """
    lines = [_row("th", map(escape, head))] if head else []
    lines += [
        _row("td", cells, attributes, ' class="own"' * (at == own)) for at, cells in enumerate(rows)
    ]
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}>{''.join(lines)}</table>"


def _row(tag: str, cells: Iterable[str], attributes: Sequence[str] = (), kind: str = "") -> str:
    texts = list(cells)
    added = attributes or [""] * len(texts)
    none = (' class="none"' * (cell == NONE) for cell in texts)
    cells_of = zip(added, none, texts, strict=True)
    inner = (f"<{tag}{more}{empty}>{cell}</{tag}>" for more, empty, cell in cells_of)
    return f"<tr{kind}>{''.join(inner)}</tr>"


def text_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], own: int | None = None, kind: str = ""
) -> str:
    """Return a table of texts of that class, whose row `own` is highlighted.

    On a narrow page a table with many columns becomes a list, whose cells show their column heads.
    """
    wide = len(head) > WIDE
    cells = [[breakable(text) for text in row] for row in rows]
    heads = name_cells(head) if wide else ()
    kinds = f"{kind} {'wide' * wide}".strip()
    return scrolled(table(head, cells, attributes=heads, kind=kinds, own=own))


def scrolled(inner: str) -> str:
    """Return HTML that scrolls if it is wider than the page."""
    return f'<div class="scroll">{inner}</div>'


def name_cells(head: Sequence[str]) -> list[str]:
    """Return attributes with the column heads of the cells in a row; the first has none."""
    return ["", *(f' data-head="{escape(name)}"' for name in head[1:])]


def breakable(text: str) -> str:
    """Return a text as HTML in which lines may break after underscores."""
    return escape(text).replace("_", "_<wbr/>")
