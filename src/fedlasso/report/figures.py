"""How every figure looks and is saved: print size, vector text, labels at the lines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

WIDTH = 6.5  # inches between the margins of a page
FORMATS = ("pdf", "svg", "png")
INK, FAINT = "#222222", "#cccccc"
_LOOK: Any = {
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "fedlasso",
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
}


@dataclass(frozen=True, eq=False)
class Figure:
    """A drawn figure, with the words that go below it."""

    name: str
    title: str
    caption: str
    canvas: Canvas

    def write(self, folder: Path) -> None:
        """``NAME.pdf``, ``NAME.svg`` and ``NAME.png``; the same records give the same bytes."""
        folder.mkdir(parents=True, exist_ok=True)
        with look():
            for kind in FORMATS:
                none = {"pdf": "CreationDate", "svg": "Date"}.get(kind)
                metadata = {none: None} if none else None
                self.canvas.savefig(folder / f"{self.name}.{kind}", metadata=metadata)
        plt.close(self.canvas)


def look() -> AbstractContextManager[None]:
    """The style, for this figure only; drawn without a display."""
    matplotlib.use("agg")
    return matplotlib.rc_context(_LOOK)


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str, float]], gap: float) -> None:
    """Name lines at their right ends, moved apart where they would overlap.

    ``ends`` are (y, text, colour, x); ``gap`` is the least distance as a share of the height.
    """
    order = sorted(ends)
    heights = [
        axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1]
        for y, _, _, x in order
    ]
    for (y, text, colour, x), place in zip(order, spread(heights, gap), strict=True):
        axes.annotate(
            text, xy=(x, y), xycoords="data",
            xytext=(1.03, place), textcoords="axes fraction",
            color=colour, fontsize=7.5, fontweight="bold", va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkA": 1, "shrinkB": 3},
        )  # fmt: skip


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Sorted places moved as little as needed to be at least ``gap`` apart."""
    moved = np.array(places, dtype=float)
    for _ in range(200):
        short = gap - np.diff(moved)
        if not (short > 1e-9).any():
            break
        push = np.maximum(short, 0) / 2
        moved[:-1] -= push
        moved[1:] += push
    return [float(v) for v in moved]
