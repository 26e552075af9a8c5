"""Charts draw whatever numbers they are given, and draw them inside."""

import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlasso.models.charts import ChartLine, bar_chart, line_chart

FLOATS = st.floats() | st.sampled_from([0.0, 5e-324, 1e-300, 1.0, 1.0 + 1e-15, 1e300, -1.7e308])
POINTS = st.lists(st.tuples(FLOATS, FLOATS, st.none() | FLOATS))
LABELS = st.text("ab_ <&>\"'é", max_size=60)
PLACES = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy")


def svgs(html: str) -> list[ElementTree.Element]:
    """The drawings of a chart, which is well-formed."""
    root = ElementTree.fromstring(html)
    return [element for element in root.iter() if element.tag.endswith("svg")]


def check_inside(svg: ElementTree.Element) -> None:
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    for element in svg.iter():
        places = [("x" if "x" in name else "y", element.get(name)) for name in PLACES]
        places += [
            (axis, value)
            for pair in element.get("points", "").split()
            for axis, value in zip("xy", pair.split(","), strict=True)
        ]
        for axis, value in places:
            if value is not None:
                assert 0 <= float(value) <= (width if axis == "x" else height), element.attrib
    for element in svg.iter("rect"):
        assert float(element.attrib["x"]) + float(element.attrib["width"]) <= width + 0.01


@given(st.lists(st.tuples(POINTS, LABELS), max_size=4), st.none() | FLOATS, st.booleans())
def test_lines_of_any_numbers_are_drawn_inside_the_chart(
    drawn: Sequence[tuple[Sequence[tuple[float, float, float | None]], str]],
    mark: float | None,
    reverse: bool,
) -> None:
    lines = [
        ChartLine([x for x, _, _ in points], [y for _, y, _ in points], label, i,
             [e for _, _, e in points], dots=True, quiet=i > 2)
        for i, (points, label) in enumerate(drawn)
    ]  # fmt: skip
    html = line_chart(lines, "penalty", "error", mark=mark, reverse=reverse, legend=True)
    can = [x for points, _ in drawn for x, y, _ in points if 0 < x < math.inf and math.isfinite(y)]
    assert bool(html) == bool(can)
    if html:
        (svg,) = svgs(html)
        text = ElementTree.tostring(svg, encoding="unicode")
        assert not re.search(r"\b(nan|inf)\b", text)
        check_inside(svg)


@given(st.lists(st.tuples(LABELS, FLOATS, LABELS)), st.sampled_from([0.0, 1.0]))
def test_bars_of_any_numbers_are_drawn_inside_the_chart(
    bars: Sequence[tuple[str, float, str]], top: float
) -> None:
    html = bar_chart(bars, ["", "", "value"], top)
    assert bool(html) == bool(bars)
    if html:
        drawn = svgs(html)
        assert len(drawn) == len(bars)
        for svg in drawn:
            assert "nan" not in ElementTree.tostring(svg, encoding="unicode")
            check_inside(svg)
        # Names and values stand there as they are.
        shown = "".join(ElementTree.fromstring(html).itertext())
        assert all(name in shown and text in shown for name, _, text in bars)


def test_a_longer_bar_is_a_larger_number() -> None:
    widths = [
        float(rect.attrib["width"])
        for svg in svgs(bar_chart([("a", 1.0, ""), ("b", -2.0, ""), ("c", 4.0, "")]))
        for rect in svg.iter("rect")
    ]
    assert widths == pytest.approx([100 / 6, 200 / 6, 400 / 6], abs=0.01)


def test_counts_have_no_halves_on_their_axis() -> None:
    chart = line_chart([ChartLine([1.0, 2.0, 5.0], [9.0, 9.0, 10.0])], "epochs", "columns")
    ticks = re.findall('<text class="tick side".*?>(.*?)</text>', chart)
    assert ticks == ["9", "10"]
