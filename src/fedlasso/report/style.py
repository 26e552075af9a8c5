"""One look everywhere: colours and marks of methods, and words for the values of axes.

Colours are Paul Tol's "bright" scheme: told apart with every common colour vision, and at least
3:1 against both the white and the dark page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle

from fedlasso.study.columns import axes


@dataclass(frozen=True)
class Look:
    """How a method is drawn: its colour, and its marker for Matplotlib and for Vega."""

    colour: str
    marker: str
    shape: str


_PAPER = {
    "CD": Look("#4477aa", "o", "circle"),
    "ST": Look("#ee6677", "s", "square"),
    "P": Look("#228833", "^", "triangle-up"),
    "DA": Look("#aa3377", "D", "diamond"),
}
_MORE = (
    Look("#997700", "v", "triangle-down"),
    Look("#3399bb", "P", "cross"),
    Look("#dd7700", "X", "cross"),
    Look("#777777", "<", "triangle-left"),
    Look("#6655cc", ">", "triangle-right"),
    Look("#00857a", "p", "square"),
    Look("#a05030", "h", "circle"),
)
PLAIN = _PAPER["CD"]


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """The look of every method: the paper's four always have theirs, others in order."""
    more = cycle(_MORE)
    return {m: _PAPER[m] if m in _PAPER else next(more) for m in dict.fromkeys(methods)}


def label(axis: str, value: object) -> str:
    """How a value is printed in a column of its axis."""
    return axes()[axis].say(value)


def title(axis: str, value: object) -> str:
    """How a value is printed where its axis is not named beside it."""
    return axes()[axis].title(value)


def titles(where: Mapping[str, object]) -> str:
    """Values of several axes, as a list of words."""
    return ", ".join(title(axis, value) for axis, value in where.items())
