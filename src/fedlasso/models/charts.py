"""Line and bar charts of cards and diagnoses, as inline SVG.

Names are on the page, not in the SVG, so they wrap. Values that cannot be drawn are left out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from fedlasso.html import WIDE, breakable, escape, name_cells, table
from fedlasso.models.numbers import number

# Rows of a table on the card.
ROWS_SHOWN = 30
CHART_WIDTH = 380
HEIGHT = 250
TOP = 12
BOTTOM = 200
RIGHT = CHART_WIDTH - 12
COLOURS = 8
# The last colour, grey, is for lines without a name in the legend.
QUIET = COLOURS - 1
# Mean width of a letter in the largest font size of charts, at most.
LETTER = 7.6
# Space between two labels of an axis.
LABEL_SPACE = 8
# Lines with more points than this are drawn without dots.
MOST_DOTS = 40
# Larger numbers are drawn as this one, so that differences do not overflow.
LARGEST_DRAWN = 1e300
# Values with a smaller relative difference are one value.
SAME = 1e-9


@dataclass(frozen=True)
class ChartLine:
    """One line of a chart; a quiet one is grey and not in the legend."""

    x: Sequence[float]
    y: Sequence[float]
    label: str = ""
    colour: int = 0
    error: Sequence[float | None] = ()
    dots: bool = False
    quiet: bool = False

    def points(self, log: bool) -> list[tuple[float, float, float]]:
        """Return the points that can be drawn, each with the length of its error bar."""
        errors = chain(self.error, repeat(None))
        points = []
        for x, y, e in zip(self.x, self.y, errors, strict=False):
            if math.isfinite(x) and (x > 0 or not log) and math.isfinite(y):
                at = max(_limit(x), 1 / LARGEST_DRAWN) if log else _limit(x)
                length = _limit(e) if e is not None and math.isfinite(e) and e > 0 else 0.0
                points.append((at, _limit(y), length))
        return points


def line_chart(
    lines: Sequence[ChartLine],
    x_title: str,
    y_title: str,
    *,
    mark: float | None = None,
    reverse: bool = False,
    legend: bool = False,
    log: bool = True,
) -> str:
    """Return lines over one axis, with a vertical line at `mark`; empty if there are no points."""
    drawn = [(line, points) for line in lines if (points := line.points(log))]
    if not drawn:
        return ""
    xs = [x for _, points in drawn for x, _, _ in points]
    ys = [y + s * e for _, points in drawn for _, y, e in points for s in (-1, 1)]
    low, high, y_ticks = _linear(ys)
    left = 26 + LETTER * max((len(text) for _, text in y_ticks), default=0)
    y = _place(low, high, BOTTOM, TOP)
    low, high, x_ticks = _powers(xs) if log else _linear(xs)
    on_scale = _place(low, high, *((RIGHT, left) if reverse else (left, RIGHT)))

    def x(value: float) -> float:
        return on_scale(math.log10(value) if log else value)

    parts = []
    for tick, text in y_ticks:
        parts.append(_stroke((left, RIGHT), (y(tick), y(tick)), "grid"))
        parts.append(_text(text, left - 6, y(tick) + 4, "tick side"))
    parts += _labels([(x(tick), text) for tick, text in x_ticks])
    parts.append(_text(x_title, _within((left + RIGHT) / 2, x_title), HEIGHT - 10, "title"))
    turned = f'<g transform="translate(12 {(TOP + BOTTOM) / 2:.0f}) rotate(-90)">'
    parts.append(f"{turned}{_text(y_title, 0, 0, 'title')}</g>")
    if mark is not None and min(xs) <= mark <= max(xs):
        parts.append(_stroke((x(mark), x(mark)), (TOP, BOTTOM), "mark"))
    # The first lines lie above the others.
    for line, points in reversed(drawn):
        parts.append(_draw_line(line, [(x(a), y(b), y(b - e), y(b + e)) for a, b, e in points]))
    what = escape(f"{y_title} by {x_title}")
    svg = (
        f'<svg viewBox="0 0 {CHART_WIDTH} {HEIGHT}" role="img" aria-label="{what}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
    return f'<div class="chart">{svg}{_legend(drawn) if legend else ""}</div>'


def bar_chart(
    bars: Sequence[tuple[str, float, *tuple[str, ...]]], head: Sequence[str] = (), top: float = 0.0
) -> str:
    """Return a table with one bar per row (name, value, further texts), at least up to `top`."""
    if not bars:
        return ""
    values = [value if math.isfinite(value) else 0.0 for _, value, *_ in bars]
    largest = max(top, *map(abs, values)) or 1.0
    lengths = [value / largest for value in values]
    low = min(0.0, *lengths)
    span = max(0.0, top / largest, *lengths) - low or 1.0
    zero = -low / span * 100
    rows = []
    for (name, _, *texts), length in zip(bars, lengths, strict=True):
        width = abs(length) / span * 100
        start = zero if length >= 0 else max(zero - width, 0.0)
        svg = (
            '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect class="{"c0" if length >= 0 else "c1"}" x="{start:.2f}" y="1" '
            f'width="{width:.2f}" height="8"/>{_stroke((zero, zero), (0, 10), "zero")}</svg>'
        )
        rows.append([breakable(name), svg, *map(escape, texts)])
    wide = len(head) > WIDE
    attributes = name_cells(head) if wide else [""] * len(rows[0])
    attributes[1] = f' class="bar"{attributes[1]}'
    return table(head, rows, attributes=attributes, kind=f"bars{' wide' * wide}")


def _draw_line(line: ChartLine, places: Sequence[tuple[float, float, float, float]]) -> str:
    """Draw a line with dots and error bars; a place is (x, y, lower end, upper end)."""
    title = f"<title>{escape(line.label)}</title>"
    corners = " ".join(f"{a:.1f},{b:.1f}" for a, b, _, _ in places)
    parts = [f'<polyline points="{corners}">{title}</polyline>']
    # A line of one point is just its dot.
    if len(places) == 1 or (line.dots and len(places) <= MOST_DOTS):
        dot = '<circle cx="{:.1f}" cy="{:.1f}" r="3">{}</circle>'
        parts += [dot.format(a, b, title) for a, b, _, _ in places]
    parts += [_stroke((a, a), (start, end)) for a, _, start, end in places if start != end]
    kind = f"quiet c{QUIET}" if line.quiet else f"c{line.colour % COLOURS}"
    return f'<g class="{kind}">{"".join(parts)}</g>'


def _legend(drawn: Sequence[tuple[ChartLine, Sequence[tuple[float, float, float]]]]) -> str:
    named = [(line, points[-1][1]) for line, points in drawn if line.label and not line.quiet]
    items = [
        f'<li class="t{line.colour % COLOURS}">{breakable(line.label)}</li>'
        for line, _ in sorted(named, key=lambda one: -one[1])
    ]
    return f'<ul class="legend">{"".join(items)}</ul>' if items else ""


def _stroke(x: tuple[float, float], y: tuple[float, float], kind: str = "error") -> str:
    return f'<line class="{kind}" x1="{x[0]:.1f}" x2="{x[1]:.1f}" y1="{y[0]:.1f}" y2="{y[1]:.1f}"/>'


def _text(text: str, x: float, y: float, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _within(x: float, text: str) -> float:
    """Return where to centre a text so that it stays inside the chart."""
    half = LETTER * len(text) / 2
    return max(min(x, CHART_WIDTH - half), half)


def _labels(ticks: Sequence[tuple[float, str]]) -> list[str]:
    """Return labels under the axis, without those that would touch the one before."""
    parts = []
    taken: tuple[float, float] | None = None
    for x, text in ticks:
        centre = _within(x, text)
        half = LETTER * len(text) / 2
        if taken is None or abs(centre - taken[0]) >= half + taken[1] + LABEL_SPACE:
            parts.append(_text(text, centre, BOTTOM + 18, "tick"))
            taken = (centre, half)
    return parts


def _limit(value: float) -> float:
    return max(-LARGEST_DRAWN, min(LARGEST_DRAWN, value))


def _place(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _linear(values: Sequence[float]) -> tuple[float, float, list[tuple[float, str]]]:
    """Return the ends of an axis, and its ticks with their labels."""
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    pad = 0.04 * (high - low)
    if high - low <= max(SAME * size, 1 / LARGEST_DRAWN):
        pad = size * 0.1 if size > 1 / LARGEST_DRAWN else 1.0
    low -= pad
    high += pad
    power = math.floor(math.log10((high - low) / 4))
    factor = next(k for k in (1, 2, 2.5, 5, 10) if (high - low) / (k * 10.0**power) <= 6)
    step = factor * 10.0**power
    decimals = max(0, -power + (factor == 2.5) - (factor == 10))
    if step < 1 and all(float(value).is_integer() for value in values):
        # Counts are whole numbers.
        step = 1.0
        decimals = 0
    ticks = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    plain = decimals <= 5 and size < 1e7
    return low, high, [(t, f"{t:,.{decimals}f}" if plain else f"{t:.3g}") for t in ticks]


def _powers(values: Sequence[float]) -> tuple[float, float, list[tuple[float, str]]]:
    """Return the logarithms of the ends of an axis, and its ticks with their labels."""
    low = math.log10(min(values))
    high = math.log10(max(values))
    if high - low < SAME:
        low -= 0.5
        high += 0.5
    first = math.ceil(low)
    last = math.floor(high)
    every = max(1, math.ceil((last - first) / 5))
    ticks = [10.0**k for k in range(first, last + 1, every)]
    if last - first < 2:
        few = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        ticks = [tick for tick in few if low <= math.log10(tick) + SAME <= high + SAME]
    return low, high, [(tick, number(tick)) for tick in ticks]
