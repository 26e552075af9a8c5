"""One look everywhere: colours and marks of methods, and words for the values of axes.

Colours are Paul Tol's "bright" scheme: told apart with every common colour vision, and at least
3:1 against both the white and the dark page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedlasso.study.columns import COLUMNS, axes

COLOURS = {"CD": "#4477aa", "ST": "#ee6677", "P": "#228833", "DA": "#aa3377"}
MARKERS = {"CD": "o", "ST": "s", "P": "^", "DA": "D"}
# What Vega calls each of Matplotlib's markers.
VEGA_SHAPES = {
    "o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down",
    "P": "cross", "X": "cross", "<": "triangle-left", ">": "triangle-right", "p": "square",
    "h": "circle",
}  # fmt: skip
_MORE_COLOURS = ("#997700", "#3399bb", "#dd7700", "#777777", "#6655cc", "#00857a", "#a05030")
_MORE_MARKERS = ("v", "P", "X", "<", ">", "p", "h")


def colours(methods: Sequence[str]) -> dict[str, str]:
    """Colour of every method: the paper's four always have theirs, others in order."""
    others = [m for m in methods if m not in COLOURS]
    more = {m: _MORE_COLOURS[i % len(_MORE_COLOURS)] for i, m in enumerate(others)}
    return {m: (COLOURS | more)[m] for m in methods}


def markers(methods: Sequence[str]) -> dict[str, str]:
    """Matplotlib marker of every method."""
    others = [m for m in methods if m not in MARKERS]
    more = {m: _MORE_MARKERS[i % len(_MORE_MARKERS)] for i, m in enumerate(others)}
    return {m: (MARKERS | more)[m] for m in methods}


def label(axis: str, value: object) -> str:
    """How a value is printed in a column of its axis."""
    return axes()[axis].say(value)


def title(axis: str, value: object) -> str:
    """How a value is printed where its axis is not named beside it."""
    return axes()[axis].title(value)


def titles(where: Mapping[str, object]) -> str:
    """Values of several axes, as a list of words."""
    return ", ".join(title(axis, value) for axis, value in where.items())


def heading(column: str) -> str:
    """How a column of the records heads a column of a table."""
    return COLUMNS[column].heading
