"""Charts as SVG inside a page: matplotlib draws them, the page's style sheet colours them."""

import io
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from fedlasso.html import escape

# Colours by name; card.css has the same ones, and others for dark pages.
PALETTE = {
    "ink": "#1c2430", "soft": "#5d6b7c", "line": "#dfe4ea", "c0": "#1769aa", "c1": "#c4472b",
    "c2": "#2e7d4f", "c3": "#8a4fa3", "c4": "#b07d12", "c5": "#0f7f86", "c6": "#a8386b",
    "c7": "#5b6470",
}  # fmt: skip
WIDE = (5.2, 3.4)
SQUARE = (4.3, 3.9)
NO_CHARTS = "Charts need matplotlib: pip install 'fedlasso[fit]', then fit again."
LOOK: dict[str, Any] = {
    "font.size": 10,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "text.color": PALETTE["ink"],
    "axes.labelcolor": PALETTE["soft"],
    "axes.edgecolor": PALETTE["soft"],
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": PALETTE["soft"],
    "ytick.color": PALETTE["soft"],
    "grid.color": PALETTE["line"],
    "axes.axisbelow": True,
    "svg.fonttype": "none",
}
_FONT = re.compile(r"(font: [^;\"]*?[\d.]+px )[^;\"]*")
_IDS = re.compile(r' id="[A-Za-z0-9.]+_\d+"')
_HEAD = re.compile(r"^.*?<svg[^>]*?(viewBox=\"[^\"]*\")[^>]*>", re.DOTALL)
_NOT_SHOWN = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", re.DOTALL)


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw_svg(plot: Callable[[Any], Any], label: str, size: tuple[float, float] = WIDE) -> str:
    """Return what `plot` draws on matplotlib axes of that size in inches; empty without matplotlib.

    `label` describes the chart to readers who cannot see it. The same chart has the same bytes.
    """
    if not can_draw():
        return ""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    text = io.StringIO()
    look: Any = LOOK | {"svg.hashsalt": label}
    with rc_context(look):
        figure = Figure(figsize=size, layout="constrained")
        plot(figure.subplots())
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(text, metadata={"Date": None})
    drawn = _IDS.sub("", _NOT_SHOWN.sub("", text.getvalue()))
    drawn = _FONT.sub(r"\1system-ui,sans-serif", drawn).replace("xlink:href", "href")
    for name, colour in PALETTE.items():
        drawn = drawn.replace(colour, f"var(--{name})")
    named = f'<svg role="img" aria-label="{escape(label)}" \\1>'
    kind = "chart square" if size == SQUARE else "chart"
    return f'<div class="{kind}">{_HEAD.sub(named, drawn)}</div>'
