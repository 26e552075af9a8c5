"""The page that cards and diagnoses are written on: one file, light and dark, wide and narrow.

It has no script and no font, and needs no file beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from numpy import format_float_positional

STYLE = """
:root{--ink:#1c2430;--soft:#5d6b7c;--line:#dfe4ea;--back:#fff;--panel:#f6f8fa;--warn:#fff4dd;
--c0:#1769aa;--c1:#c4472b;--c2:#2e7d4f;--c3:#8a4fa3;--c4:#b07d12;--c5:#0f7f86;--c6:#a8386b;--c7:#5b6470}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa7b6;
--line:#333d49;--back:#14181d;--panel:#1c2229;--warn:#3a3018;--c0:#63b0ec;--c1:#f08a70;
--c2:#72c795;--c3:#c79add;--c4:#e0b354;--c5:#58c4cb;--c6:#e58ab4;--c7:#a3adb9}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:860px;margin:0 auto;padding:24px 20px 60px}h1{font-size:1.7rem;line-height:1.2;
margin:.2em 0}h1,p,li{overflow-wrap:anywhere}td,th{overflow-wrap:break-word}
h2{font-size:1.15rem;margin:2em 0 .5em;border-top:1px solid var(--line);
padding-top:1em}
p{margin:.4em 0 .8em}.soft,.tick,.title{color:var(--soft);fill:var(--soft)}.lead{font-size:1.08rem}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(124px,1fr));gap:10px;margin:1em 0}
.facts div{background:var(--panel);border-radius:8px;padding:10px 12px}
.facts b{display:block;font-size:1.25rem;overflow-wrap:anywhere}
.warn{background:var(--warn);border-radius:8px;padding:8px 14px;margin:1em 0}
.warn li{margin:.25em 0}
ul{padding-left:1.2em}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;
font-size:.92rem;font-variant-numeric:tabular-nums}th,td{text-align:right;padding:5px 8px;
border-bottom:1px solid var(--line)}td{white-space:nowrap}
th{color:var(--soft);font-weight:600;vertical-align:bottom}
th:first-child,td:first-child{text-align:left;white-space:normal;min-width:9em}
tr.own td{font-weight:650}
.bars{max-width:680px}.bars.wide{max-width:none}.forest td{white-space:normal}
.forest td:nth-child(3){white-space:nowrap}.bars th:nth-child(2){text-align:left}
.bars td.bar{width:38%;min-width:64px}.forest td.bar{width:24%;min-width:150px}
svg{width:100%;max-width:520px;height:auto;display:block;margin:.4em 0}
svg.bar{height:15px;margin:0}svg.bar .zero{vector-effect:non-scaling-stroke}
svg text{font-size:11px;fill:var(--ink)}
svg .tick,svg .title{fill:var(--soft)}
.grid{stroke:var(--line)}.zero{stroke:var(--soft)}
.mark{stroke:var(--ink);stroke-dasharray:4 4}
.tick,.title{text-anchor:middle}.side{text-anchor:end}
polyline{fill:none;stroke-width:1.8}.error{opacity:.45}.quiet polyline{stroke-width:.8;opacity:.6}
.legend{display:flex;flex-wrap:wrap;gap:2px 18px;list-style:none;padding:0;margin:.2em 0 1em;
font-size:.85rem;max-width:680px}
.legend li::before{content:"";display:inline-block;width:16px;height:4px;margin:0 6px 3px 0}
@media(max-width:480px){main{padding:16px 14px 40px}table{font-size:.8rem}th,td{padding:4px}
th:first-child,td:first-child{min-width:6.5em}svg text{font-size:13px}
.bars td.bar{min-width:40px}
.wide tr:first-child{display:none}.wide,.wide tbody{display:block}
.wide tr{display:block;padding:6px 0;border-bottom:1px solid var(--line)}
.wide td{display:flex;justify-content:space-between;gap:12px;border:0;padding:1px 4px;
white-space:normal}
.wide td::before{content:attr(data-head);color:var(--soft);text-align:left}
.wide td:first-child{display:block;font-weight:650}.bars.wide td.bar{width:auto}
.bars.wide td.bar::before{content:none}}
@page{size:A4;margin:14mm}
@media print{main{max-width:none;padding:0}.chart,.facts,.warn,tr,li,p{break-inside:avoid}
h2,h2+p,p:has(+.chart),tr:first-child{break-after:avoid}
.forest{font-size:.78rem}.forest td.bar{min-width:90px}
.forest :is(th,td):first-child{min-width:6.5em}
.legend li::before,rect,.facts div,.warn{print-color-adjust:exact;
-webkit-print-color-adjust:exact}}
""" + "".join(
    f".c{i}{{stroke:var(--c{i});fill:var(--c{i})}}.c{i} polyline{{fill:none}}"
    f"rect.c{i}{{stroke:none}}.legend .t{i}::before{{background:var(--c{i})}}"
    for i in range(8)
)


# More columns than this do not fit beside each other on a telephone.
WIDE = 4
# A larger ratio says only that the unit of a column is far wider than its values.
MOST_RATIO = 1000.0
# No reader tells smaller p-values apart, and no approximation is as good as that.
LEAST_P = 1e-4


def whole(title: str, body: str) -> str:
    """A whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def section(title: str, note: str, body: str) -> str:
    """A heading, what there is to know about it, and what it is about."""
    return f'<h2>{title}</h2><p class="soft">{note}</p>{body}'


def bullets(texts: Iterable[str]) -> str:
    """A list."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], own: int | None = None) -> str:
    """A table whose first column is text; row `own` stands out.

    On a narrow page a table with many columns is a list, and its cells bear their own heads.
    """
    wide = len(head) > WIDE
    lines = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"]
    heads = tell_heads(head) if wide else [""] * len(head)
    for i, row in enumerate(rows):
        kind = ' class="own"' if i == own else ""
        cells = zip(heads, row, strict=True)
        inner = "".join(f"<td{name}>{breakable(cell)}</td>" for name, cell in cells)
        lines.append(f"<tr{kind}>{inner}</tr>")
    kind = ' class="wide"' if wide else ""
    return f'<div class="scroll"><table{kind}>{"".join(lines)}</table></div>'


def tell_heads(head: Sequence[str]) -> list[str]:
    """Attributes by which the cells of a row bear their own heads; the first needs none."""
    return ["", *(f' data-head="{escape(name)}"' for name in head[1:])]


def breakable(text: str) -> str:
    """A text as HTML, in which long names may go on in the next line after an underscore."""
    return escape(text).replace("_", "_<wbr/>")


def bytes_of(count: float) -> str:
    """Bytes for people."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def ratio(value: float, digits: int = 4) -> str:
    """A ratio of odds, rates or hazards for people: beyond a thousandfold only the bound."""
    if value > MOST_RATIO:
        return f">{MOST_RATIO:.0f}"
    if value < 1 / MOST_RATIO:
        return f"<{1 / MOST_RATIO:g}"
    return number(value, digits)


def p_value(value: float) -> str:
    """A p-value for people: of very small ones only the bound."""
    return f"<{LEAST_P:.4f}" if value < LEAST_P else number(value, 2)


def percent(share: float, digits: int = 3, least: float = 1e-5) -> str:
    """A share in per cent for people: no powers of ten, and of shares below `least` that bound."""
    if share < least:
        return f"less than {percent(least, digits, least)}"
    rounded = float(f"{100 * share:.{digits}g}")
    return f"{format_float_positional(rounded, trim='-')}%"


def number(value: float, digits: int = 3) -> str:
    """A number for people: no powers of ten where a few digits do."""
    if not math.isfinite(value):
        return "–"
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    if 100 <= abs(value) < 1000:
        return f"{value:.0f}" if digits <= 3 else f"{value:.1f}"
    return f"{value:.{digits}g}"
