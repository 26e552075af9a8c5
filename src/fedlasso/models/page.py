"""The page that cards and diagnoses are written on: one file, light and dark, wide and narrow.

Its charts are inline SVG: no script, no font, no file beside the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root{--ink:#1c2430;--soft:#5d6b7c;--line:#dfe4ea;--back:#fff;--panel:#f6f8fa;--warn:#fff4dd;
--c0:#1769aa;--c1:#c4472b;--c2:#2e7d4f;--c3:#8a4fa3;--c4:#b07d12;--c5:#0f7f86;--c6:#a8386b;--c7:#5b6470}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa7b6;--line:#333d49;--back:#14181d;
--panel:#1c2229;--warn:#3a3018;--c0:#63b0ec;--c1:#f08a70;--c2:#72c795;--c3:#c79add;--c4:#e0b354;
--c5:#58c4cb;--c6:#e58ab4;--c7:#a3adb9}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:860px;margin:0 auto;padding:24px 20px 60px}h1{font-size:1.7rem;line-height:1.2;
margin:.2em 0}h2{font-size:1.15rem;margin:2em 0 .5em;border-top:1px solid var(--line);
padding-top:1em}
p{margin:.4em 0 .8em}.soft,.tick,.title{color:var(--soft);fill:var(--soft)}.lead{font-size:1.08rem}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:1em 0}
.facts div{background:var(--panel);border-radius:8px;padding:10px 12px}
.facts b{display:block;font-size:1.25rem;overflow-wrap:anywhere}
.warn{background:var(--warn);border-radius:8px;padding:8px 14px;margin:1em 0}
.warn li{margin:.25em 0}
ul{padding-left:1.2em}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;
font-size:.92rem;font-variant-numeric:tabular-nums}th,td{text-align:right;padding:5px 8px;
border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;min-width:9em}th{color:var(--soft);font-weight:600;white-space:normal;vertical-align:bottom}

tr.own td{font-weight:650}
svg{width:100%;max-width:680px;height:auto;display:block;margin:.4em 0}
svg text{font-size:12px;fill:var(--ink)}
svg .tick,svg .title{fill:var(--soft)}
.grid{stroke:var(--line)}.zero{stroke:var(--soft)}
.mark{stroke:var(--ink);stroke-dasharray:4 4}
.tick,.title{text-anchor:middle}.name,.side{text-anchor:end}
polyline{fill:none;stroke-width:1.8}
""" + "".join(
    f".c{i}{{stroke:var(--c{i});fill:var(--c{i})}}.c{i} polyline{{fill:none}}"
    f"rect.c{i}{{stroke:none}}svg .t{i}{{fill:var(--c{i})}}"
    for i in range(8)
)
WIDTH = 520
HEIGHT = 290
LEFT = 66
TOP = 14
BOTTOM = 244
COLOURS = 8


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
    """A table whose first column is text; row `own` stands out."""
    lines = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"]
    for i, row in enumerate(rows):
        kind = ' class="own"' if i == own else ""
        lines.append(f"<tr{kind}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>")
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def bytes_of(count: float) -> str:
    """Bytes for people."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def number(value: float, digits: int = 3) -> str:
    """A number for people: no powers of ten where a few digits do."""
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    if 100 <= abs(value) < 1000:
        return f"{value:.0f}" if digits <= 3 else f"{value:.1f}"
    return f"{value:.{digits}g}"


@dataclass(frozen=True)
class Line:
    """One line of a chart; `label` is written at its end when there is room."""

    x: Sequence[float]
    y: Sequence[float]
    label: str = ""
    colour: int = 0
    error: Sequence[float | None] = ()
    dots: bool = False


def line_chart(
    lines: Sequence[Line],
    x_title: str,
    y_title: str,
    *,
    mark: float | None = None,
    reverse: bool = False,
    legend: bool = False,
) -> str:
    """Lines over a common axis with powers of ten; `mark` is a vertical line."""
    xs = [v for line in lines for v in line.x]
    ys = [v for line in lines for v in line.y]
    for line in lines:
        spread = zip(line.y, line.error, strict=False)
        ys += [v + s * (e or 0.0) for v, e in spread for s in (-1, 1)]
    if not xs or not ys:
        return ""
    right = WIDTH - (108 if legend else 12)
    x, x_ticks = _axis(xs, right, LEFT, True) if reverse else _axis(xs, LEFT, right, True)
    y, y_ticks = _axis(ys, BOTTOM, TOP, False)
    parts = []
    for tick in y_ticks:
        parts.append(_stroke((LEFT, right), (y(tick), y(tick)), "grid"))
        parts.append(_text(number(tick), LEFT - 6, y(tick) + 4, "tick side"))
    parts += [_text(number(tick), x(tick), BOTTOM + 18, "tick") for tick in x_ticks]
    parts.append(_text(x_title, (LEFT + right) / 2, HEIGHT - 8, "title"))
    turned = f'<g transform="translate(12 {(TOP + BOTTOM) / 2:.0f}) rotate(-90)">'
    parts.append(f"{turned}{_text(y_title, 0, 0, 'title')}</g>")
    if mark is not None:
        parts.append(_stroke((x(mark), x(mark)), (TOP, BOTTOM), "mark"))
    for line in lines:
        pairs = [(x(a), y(b)) for a, b in zip(line.x, line.y, strict=True)]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
        title = f"<title>{escape(line.label)}</title>"
        parts.append(f'<g class="c{line.colour % COLOURS}">')
        parts.append(f'<polyline points="{points}">{title}</polyline>')
        if line.dots:
            parts += [
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5">{title}</circle>' for a, b in pairs
            ]
        for a, b, e in zip(line.x, line.y, line.error, strict=False):
            if e:
                parts.append(_stroke((x(a), x(a)), (y(b - e), y(b + e))))
        parts.append("</g>")
    if legend:
        # Labels beside the last point of each line, pushed apart.
        last = TOP - 14.0
        for at, label, colour in sorted((y(n.y[-1]), n.label, n.colour) for n in lines if n.label):
            last = max(at, last + 14.0)
            kind = f"label t{colour % COLOURS}"
            parts.append(_text(label, right + 6, last + 4, kind, most=15))
    return _svg(parts, HEIGHT)


def bar_chart(bars: Sequence[tuple[str, float, str]]) -> str:
    """Horizontal bars to both sides of zero, each with its name, its value and that in words."""
    if not bars:
        return ""
    step = 24
    left = 150
    height = step * len(bars) + 10
    values = [value for _, value, _ in bars]
    negative = max(0.0, -min(values))
    positive = max(0.0, *values)
    unit = (WIDTH - left - 90) / ((negative + positive) or 1.0)
    zero = left + negative * unit
    parts = []
    for i, (name, value, text) in enumerate(bars):
        top = 5 + i * step
        width = abs(value) * unit
        x = zero if value >= 0 else zero - width
        parts.append(_text(name, left - 8, top + 16, "name", most=21))
        parts.append(
            f'<rect class="{"c0" if value >= 0 else "c1"}" x="{x:.1f}" y="{top + 3}" '
            f'width="{max(width, 1):.1f}" height="{step - 7}" rx="2"/>'
        )
        parts.append(_text(text, max(x + width, zero) + 6, top + 16, "value"))
    parts.append(_stroke((zero, zero), (0, height), "zero"))
    return _svg(parts, height)


def _svg(parts: Sequence[str], height: float) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _stroke(x: tuple[float, float], y: tuple[float, float], kind: str = "error") -> str:
    return f'<line class="{kind}" x1="{x[0]:.1f}" x2="{x[1]:.1f}" y1="{y[0]:.1f}" y2="{y[1]:.1f}"/>'


def _text(text: str, x: float, y: float, kind: str, most: int = 1000) -> str:
    """A text, shortened to so many letters; the whole is shown where the pointer rests."""
    shown = escape(text)
    if len(text) > most:
        shown = f"{escape(text[: most - 1])}…<title>{escape(text)}</title>"
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{shown}</text>'


def _axis(
    values: Sequence[float], start: float, end: float, log: bool
) -> tuple[Callable[[float], float], list[float]]:
    """Where a value lies on an axis, and its ticks."""
    low = min(values)
    high = max(values)
    if log:
        low = math.log10(low)
        high = math.log10(high)
        if high - low < 1e-9:
            low = low - 0.5
            high = high + 0.5
        first = math.ceil(low)
        last = math.floor(high)
        every = max(1, math.ceil((last - first) / 5))
        ticks = [10.0**k for k in range(first, last + 1, every)]
        if last - first < 2:
            few = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
            ticks = [tick for tick in few if 10**low <= tick * 1.0001 and tick <= 10**high * 1.0001]
    else:
        pad = 0.04 * (high - low) or abs(high) * 0.1 or 1.0
        low = low - pad
        high = high + pad
        step = 10 ** math.floor(math.log10((high - low) / 4))
        step *= next(k for k in (1, 2, 2.5, 5, 10) if (high - low) / (k * step) <= 6)
        ticks = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]

    def place(value: float) -> float:
        value = math.log10(value) if log else value
        return start + (value - low) / (high - low) * (end - start)

    return place, ticks
