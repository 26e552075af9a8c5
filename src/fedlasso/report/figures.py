"""Style and saving of figures: colours, print size, vector text, labels at the lines.

Colours are Paul Tol's "bright" scheme: safe for colour-blind readers, with a contrast of at least
3:1 against both the white and the dark page.
"""

import atexit
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from fontTools import subset
from matplotlib import font_manager
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import LogFormatter

from fedlasso.study.record_columns import display_name

WIDTH = 6.5  # inches between the margins of a page
SCREEN = 1.5  # how much wider a figure is on a screen than on paper
# Formats, each without the time of writing: the same records give the same bytes.
FORMATS: dict[str, tuple[type[FigureCanvasBase], Any]] = {
    "pdf": (FigureCanvasPdf, {"CreationDate": None}),
    "png": (FigureCanvasAgg, None),
    "svg": (FigureCanvasSVG, {"Date": None}),
}
# TeX reads PDF, so this is written first: TeX can start while the other formats are written.
FIRST = ("pdf",)
REST = ("png", "svg")
INK = "#222222"
FAINT = "#cccccc"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# The font of figures, and the characters that it has: Latin, Greek, dashes, raised digits, a few
# signs. Others come from the whole font.
LIGHT = "DejaVu Sans of figures"
_CHARACTERS = (
    *range(0x20, 0x7F),
    *range(0xA0, 0x100),
    *range(0x370, 0x400),
    *range(0x2010, 0x2030),
    *range(0x2070, 0x2090),
    *(0x2212, 0x2248, 0x2264, 0x2265),
)
_LOOK: Any = {
    "font.family": [LIGHT, "sans-serif"],
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
    "figure.dpi": 200,
}


@dataclass(frozen=True)
class Look:
    """How a method is drawn: its colour, and its marker for Matplotlib and for the page."""

    colour: str
    marker: str
    shape: str


_PAPER = {
    "CD": Look("#4477aa", "o", "circle"),
    "ST": Look("#ee6677", "s", "square"),
    "P": Look("#228833", "^", "triangle-up"),
    "DA": Look("#aa3377", "D", "diamond"),
}
# Seven colours and eight shapes: the pairs repeat after 56 methods.
_COLOURS = ("#997700", "#2b8cae", "#dd7700", "#777777", "#7766dd", "#00857a", "#b0603c")
_MARKERS = ("v", "P", "<", ">", "*", "X", "p", "d")
_SHAPES = (
    "triangle-down", "cross", "triangle-left", "triangle-right",
    "star", "saltire", "wye", "narrow",
)  # fmt: skip
PLAIN = _PAPER["CD"]


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return the look of every method: fixed for the paper's four, in order for others."""
    names = list(dict.fromkeys(methods))
    more = {}
    for i, method in enumerate(name for name in names if name not in _PAPER):
        shape = (i % 7 + i // 7) % 8
        more[method] = Look(_COLOURS[i % 7], _MARKERS[shape], _SHAPES[shape])
    return {name: (_PAPER | more)[name] for name in names}


@dataclass(frozen=True)
class FigureText:
    """Name, title and caption of a figure."""

    name: str
    title: str
    caption: str


@dataclass(frozen=True, eq=False)
class Figure(FigureText):
    """A drawn figure, with its title and caption."""

    canvas: Canvas

    def write(self, folder: Path, kinds: Collection[str] = FIRST + REST) -> None:
        """Write ``NAME.pdf``, ``NAME.svg`` and ``NAME.png``, or some of them."""
        with look():
            self._lay_out()
            for kind, (sheet, metadata) in FORMATS.items():
                if kind not in kinds:
                    continue
                if kind == "svg":
                    self._widen()
                self.canvas.dpi = matplotlib.rcParams["figure.dpi"]
                # Figure.savefig would draw everything twice for every format.
                save = getattr(sheet(self.canvas), f"print_{kind}")
                save(folder / f"{self.name}.{kind}", metadata=metadata)

    def _lay_out(self) -> None:
        """Place everything now, as drawing would do it; one layout serves every format on paper."""
        if (engine := self.canvas.get_layout_engine()) is not None:
            engine.execute(self.canvas)
        self.canvas.set_layout_engine("none")

    def _widen(self) -> None:
        """Make the figure as wide as the page in a browser, with words of the same size."""
        self.canvas.set_figwidth(SCREEN * WIDTH)
        if self.canvas.get_layout_engine() is not None:
            self.canvas.set_layout_engine("constrained")
            self._lay_out()


def look() -> AbstractContextManager[None]:
    """Return a context with the style, for figures drawn without a display."""
    matplotlib.use("agg")
    lighten_fonts()
    return matplotlib.rc_context(_LOOK)


@cache
def lighten_fonts() -> None:
    """Make the font of figures, plain and bold: DejaVu Sans without other scripts.

    Every PDF embeds its fonts; subsetting the full ones would take longer than drawing.
    """
    folder = tempfile.mkdtemp(prefix="fedlasso-fonts-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    options = subset.Options(
        layout_features=[], drop_tables=["GSUB", "GPOS", "GDEF", "kern", "FFTM"]
    )
    for weight in ("normal", "bold"):
        whole = font_manager.findfont(FontProperties(family="DejaVu Sans", weight=weight))
        file = Path(folder) / f"{weight}.ttf"
        with subset.load_font(str(whole), options) as font:
            subsetter = subset.Subsetter(options)
            subsetter.populate(unicodes=_CHARACTERS)
            subsetter.subset(font)
            font["name"].setName(LIGHT, 1, 3, 1, 0x409)
            font.save(file)
        font_manager.fontManager.addfont(file)


class Powers(LogFormatter):
    """Powers of ten as plain characters: a formula per label would be slow to draw."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a value, or ""."""
        if not super().__call__(x, pos):
            return ""
        exponent = int(np.floor(np.log10(x) + 1e-9))
        factor = f"{x / 10.0**exponent:g}"
        power = "10" + str(exponent).translate(_RAISED)
        return power if factor == "1" else f"{factor}×{power}"


def label_powers(axis: Axis) -> None:
    """Label a logarithmic axis with powers of ten."""
    axis.set_major_formatter(Powers())
    axis.set_minor_formatter(Powers())


def make_panels(
    down: int, across: int, height: float, sharex: Any = True, sharey: Any = True
) -> tuple[Canvas, Any]:
    """Return a canvas as wide as a page, and its panels in rows."""
    size = (WIDTH, height)
    return plt.subplots(down, across, figsize=size, sharex=sharex, sharey=sharey, squeeze=False)


def mark_rows(
    axes: Axes,
    own: pd.DataFrame,
    names: Sequence[str],
    by: str,
    value: str,
    drawn: Mapping[str, Look],
    one_sided: bool = False,
    **style: Any,
) -> None:
    """Mark a value in every scenario, one row each, side by side for the values of an axis.

    Bars of the length ``bar`` extend to both sides of the marks, or to the right only.
    """
    style = {"elinewidth": 0.9, "markersize": 3} | style
    values = [name for name in drawn if name in set(own[by])]
    # Many marks stay nearer to their row than to the next.
    step = min(0.22, 0.8 / len(values)) if values else 0.0
    for i, name in enumerate(values):
        here = own[own[by] == name]
        shift = step * (i - (len(values) - 1) / 2)
        rows = [names.index(scenario) + shift for scenario in here["scenario"]]
        bars = [0 * here["bar"], here["bar"]] if one_sided else here["bar"]
        style |= {
            "fmt": drawn[name].marker,
            "color": drawn[name].colour,
            "label": display_name(by, name),
        }
        axes.errorbar(here[value], rows, xerr=bars, **style)
    name_rows(axes)


def name_rows(axes: Axes, names: Sequence[str] = ()) -> None:
    """Draw a line across for every row, and name them, the first one at the top."""
    axes.grid(axis="y", visible=True)
    axes.tick_params(axis="y", length=0)
    if names:
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)


def put_legend(canvas: Canvas, axes: Axes, columns: int) -> None:
    """Put a legend of the marks of these axes above all panels."""
    marks = axes.get_legend_handles_labels()
    canvas.legend(*marks, loc="outside upper center", ncols=columns, frameon=False)


def label_ends(axes: Axes, gap: float) -> None:
    """Put the labels of lines at their right ends, moved apart if they would overlap.

    ``gap`` is the minimum distance as a fraction of the height.
    """
    # Reading the limits fixes them, and with them the transforms.
    axes.get_xlim()
    axes.get_ylim()
    ends = []
    for drawn, text in zip(*axes.get_legend_handles_labels(), strict=True):
        line: Any = drawn[0] if isinstance(drawn, ErrorbarContainer) else drawn
        end = tuple(float(values[-1]) for values in line.get_data())
        across, height = axes.transAxes.inverted().transform(axes.transData.transform(end))
        ends.append((height, text, line.get_color(), across))
    ends.sort()
    places = spread([height for height, *_ in ends], gap)
    for (height, text, colour, across), place in zip(ends, places, strict=True):
        aside: Any = {"color": colour, "transform": axes.transAxes, "clip_on": False}
        axes.plot((across + 0.02, 1.025), (height, place), lw=0.5, marker="", **aside)
        axes.text(1.035, place, text, fontsize=7.5, fontweight="bold", va="center", **aside)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Return sorted places, moved as little as needed to be at least ``gap`` apart."""
    moved = np.array(places, dtype=float)
    for _ in range(200):
        short = gap - np.diff(moved)
        if not (short > 1e-9).any():
            break
        push = np.maximum(short, 0) / 2
        moved[:-1] -= push
        moved[1:] += push
    return [float(v) for v in moved]
