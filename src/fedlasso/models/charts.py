"""Small charts as inline SVG: no script, no font, no file beside the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 520
HEIGHT = 290
LEFT = 66
RIGHT = 12
TOP = 14
BOTTOM = 46
LEGEND = 96
COLOURS = 8
Place = Callable[[float], float]


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
    x, x_ticks = _axis(xs, True, LEFT, WIDTH - RIGHT - (LEGEND if legend else 0), reverse)
    y, y_ticks = _axis(ys, False, HEIGHT - BOTTOM, TOP, False)
    parts = [_grid(x_ticks, y_ticks, x, y, x_title, y_title, legend)]
    if mark is not None:
        parts.append(
            f'<line class="mark" x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{TOP}" '
            f'y2="{HEIGHT - BOTTOM}"/>'
        )
    for line in lines:
        pairs = [(x(a), y(b)) for a, b in zip(line.x, line.y, strict=True)]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in pairs)
        kind = f"c{line.colour % COLOURS}"
        title = f"<title>{escape(line.label)}</title>"
        parts.append(f'<g class="{kind}"><polyline points="{points}">{title}</polyline>')
        if line.dots:
            parts += [
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5">{title}</circle>' for a, b in pairs
            ]
        for a, b, e in zip(line.x, line.y, line.error, strict=False):
            if e:
                parts.append(
                    f'<line x1="{x(a):.1f}" x2="{x(a):.1f}" y1="{y(b - e):.1f}" '
                    f'y2="{y(b + e):.1f}"/>'
                )
        parts.append("</g>")
    if legend:
        parts += _legend(lines, y)
    return _svg("".join(parts), HEIGHT)


def bar_chart(names: Sequence[str], values: Sequence[float], texts: Sequence[str]) -> str:
    """Horizontal bars to both sides of zero, each with its name and its value."""
    if not names:
        return ""
    step = 24
    left = 150
    height = step * len(names) + 10
    largest = max(abs(v) for v in values) or 1.0
    negative = max([-v for v in values if v < 0], default=0.0)
    positive = max([v for v in values if v > 0], default=0.0)
    room = WIDTH - left - 90
    unit = room / ((negative + positive) or largest)
    zero = left + negative * unit
    parts = []
    for i, (name, value, text) in enumerate(zip(names, values, texts, strict=True)):
        top = 5 + i * step
        x, width = (zero if value >= 0 else zero + value * unit), abs(value) * unit
        colour = "c0" if value >= 0 else "c1"
        shown = name if len(name) <= 21 else name[:20] + "…"
        parts.append(
            f'<text class="name" x="{left - 8}" y="{top + 16}">{escape(shown)}'
            f"<title>{escape(name)}</title></text>"
            f'<rect class="{colour}" x="{x:.1f}" y="{top + 3}" width="{max(width, 1):.1f}" '
            f'height="{step - 7}" rx="2"/>'
            f'<text class="value" x="{max(x + width, zero) + 6:.1f}" y="{top + 16}">'
            f"{escape(text)}</text>"
        )
    parts.append(f'<line class="zero" x1="{zero:.1f}" x2="{zero:.1f}" y1="0" y2="{height}"/>')
    return _svg("".join(parts), height)


def _svg(inside: str, height: float) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg">{inside}</svg>'
    )


def _axis(
    values: Sequence[float], log: bool, start: float, end: float, reverse: bool
) -> tuple[Place, list[float]]:
    low, high = min(values), max(values)
    if log:
        low, high = math.log10(low), math.log10(high)
        if high - low < 1e-9:
            low, high = low - 0.5, high + 0.5
        first, last = math.ceil(low), math.floor(high)
        every = max(1, (last - first) // 5 + ((last - first) % 5 > 0))
        ticks = [10.0**k for k in range(first, last + 1, every)]
        if last - first < 2:
            few = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
            ticks = [tick for tick in few if 10**low <= tick * 1.0001 and tick <= 10**high * 1.0001]
    else:
        pad = 0.04 * (high - low) or abs(high) * 0.1 or 1.0
        low, high = low - pad, high + pad
        step = 10 ** math.floor(math.log10((high - low) / 4))
        step *= next(k for k in (1, 2, 2.5, 5, 10) if (high - low) / (k * step) <= 6)
        ticks = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    if reverse:
        start, end = end, start

    def place(value: float) -> float:
        value = math.log10(value) if log else value
        return start + (value - low) / (high - low) * (end - start)

    return place, ticks


def _grid(
    x_ticks: Sequence[float],
    y_ticks: Sequence[float],
    x: Place,
    y: Place,
    x_title: str,
    y_title: str,
    legend: bool,
) -> str:
    right = WIDTH - RIGHT - (LEGEND if legend else 0)
    parts = [
        f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">'
        f"{_number(tick)}</text>"
        for tick in y_ticks
    ]
    parts += [
        f'<text class="tick" x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" '
        f'text-anchor="middle">{_number(tick)}</text>'
        for tick in x_ticks
    ]
    middle, half = (LEFT + right) / 2, (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="title" x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f'{escape(x_title)}</text><text class="title" text-anchor="middle" '
        f'transform="translate(12 {half:.0f}) rotate(-90)">{escape(y_title)}</text>'
    )
    return "".join(parts)


def _legend(lines: Sequence[Line], y: Place) -> list[str]:
    """Labels beside the last point of each line, pushed apart."""
    places = sorted((y(line.y[-1]), line.label, line.colour) for line in lines if line.label)
    parts = []
    last = TOP - 14.0
    for at, label, colour in places:
        last = max(at, last + 14.0)
        shown = label if len(label) <= 15 else label[:14] + "…"
        parts.append(
            f'<text class="label t{colour % COLOURS}" x="{WIDTH - RIGHT - LEGEND + 6}" '
            f'y="{last + 4:.1f}">{escape(shown)}</text>'
        )
    return parts


def _number(value: float) -> str:
    return number(value) if abs(value) > 1e-12 else "0"


def number(value: float, digits: int = 3) -> str:
    """A number for people: no powers of ten where a few digits do."""
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    if 100 <= abs(value) < 1000:
        return f"{value:.0f}" if digits <= 3 else f"{value:.1f}"
    return f"{value:.{digits}g}"
