"""Plots of a model, each on matplotlib axes of its own or on given ones.

matplotlib is imported only when something is drawn. Numbers that are not finite are left out. A
given figure without a layout engine gets the constrained one, so that no label is cut off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlasso.fitting.examination.assessment import Assessment
from fedlasso.fitting.examination.comparison import CoefficientPath
from fedlasso.models.document import ErrorCurve
from fedlasso.models.effects import Effect, exponentiate
from fedlasso.models.numbers import number
from fedlasso.models.svg import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, LINE = PALETTE["ink"], PALETTE["soft"], PALETTE["line"]
COLOURS = [PALETTE[f"c{k}"] for k in range(7)]
GREY = PALETTE["c7"]
PENALTY = "penalty λ (log scale, smaller to the right)"
# Letters of a column's name in a chart.
LETTERS = 26
# Labelled lines of a path, and space between their labels as a fraction of the axis.
LABELLED = 12
LABEL_SPACE = 0.062
# Counts along the top of an axis.
COUNTS = 8
COUNT_SPACE = 0.08
# Sites' own estimates in a forest plot, at most, and how far beyond the pooled ones it reaches.
SITES_DRAWN = 12
MAX_REACH = 2.0
# Ticks of a logarithmic axis as multiples of powers of ten, dense ones first.
TICKS = (
    (1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1, 3),
    (1,),
)
# Ratios and numbers beyond this are cut.
LARGEST = 1e100
LARGEST_LOG = math.log(1000.0)


def plot_cv(curve: ErrorCurve, error_name: str = "error", ax: Axes | None = None) -> Axes:
    """Plot the held-out error against the penalty, as glmnet does.

    Bars are one standard error, counts along the top the nonzero coefficients, of the fits to all
    rows where all of these are known; dotted lines are the penalty of least error (min) and the
    largest within one standard error of it (1se).
    """
    ax = _axes(ax)
    se = [value or 0.0 for value in curve.se]
    ax.errorbar(
        curve.penalties, curve.mse, se, fmt="o", ms=3.5, color=COLOURS[1], ecolor=GREY,
        elinewidth=0.8, capsize=1.5,
    )  # fmt: skip
    _penalty_axis(ax, curve.penalties)
    ax.set_ylabel(error_name)
    marks = {curve.minimum: "min"}
    marks[curve.one_se] = "min = 1se" if curve.one_se == curve.minimum else "1se"
    for at, name in marks.items():
        ax.axvline(curve.penalties[at], color=INK, ls=":", lw=1)
        ax.annotate(
            name, (curve.penalties[at], 1), (3, -3), xycoords=("data", "axes fraction"),
            textcoords="offset points", va="top", fontsize=9, color=SOFT,
        )  # fmt: skip
    shown = _spread_out(curve.penalties)
    top = ax.secondary_xaxis("top")
    counts = curve.counts
    texts = [f"{(counts or curve.active)[k]:.3g}" for k in shown]
    top.set_xticks([curve.penalties[k] for k in shown], texts)
    top.set_xticks([], minor=True)
    without = "" if counts else ", mean without held-out rows"
    top.set_xlabel(f"nonzero coefficients{without}")
    return ax


def plot_path(
    path: CoefficientPath,
    selected: Sequence[str] = (),
    penalty: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot coefficients against the penalty; lines of `selected` columns end in their names."""
    ax = _axes(ax)
    named = [name for name in path.names if name in set(selected)][:LABELLED]
    colours = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(named)}
    ends = {}
    for name, values in zip(path.names, path.coefficients, strict=True):
        own = colours.get(name)
        width = 1.6 if own else 0.6
        ax.plot(path.penalties, values, color=own or GREY, lw=width, zorder=2 + bool(own))
        if own:
            ends[name] = values[-1]
    _penalty_axis(ax, path.penalties)
    ax.axhline(0, color=LINE, lw=0.8, zorder=1)
    if penalty is not None:
        ax.axvline(penalty, color=INK, ls="--", lw=0.9)
    ax.set_ylabel("coefficient per SD")
    _label_ends(ax, ends, colours)
    return ax


def plot_forest(
    effects: Sequence[Effect], ratio: str | None = None, per_sd: bool = True, ax: Axes | None = None
) -> Axes:
    """Plot estimates with their intervals, ratios on a log axis, and sites' own in grey below.

    A column without an interval has a hollow mark at its penalised coefficient.
    """
    ax = _axes(ax)
    shown: Any = exponentiate if ratio else lambda *values: values
    most = LARGEST_LOG if ratio else LARGEST
    y = 0.0
    places, reach, far = [], [0.0], [0.0]
    for effect in effects:
        places.append(y)
        if (own := effect.interval(per_sd)) is not None and effect.estimate is not None:
            value, low, high = np.clip(own, -most, most).tolist()
            ax.plot(shown(low, high), (y, y), color=COLOURS[0], lw=2, solid_capstyle="butt")
            ax.plot(shown(value), (y,), "s", color=COLOURS[0], ms=5)
            reach += [low, high]
            by = effect.estimate.scale if per_sd else 1.0
            for site in effect.estimate.sites[:SITES_DRAWN]:
                y += 0.32
                ends = by * np.array([site.value, site.low, site.high])
                value, low, high = np.clip(ends, -most, most).tolist()
                ax.plot(shown(low, high), (y, y), color=GREY, lw=0.8)
                ax.plot(shown(value), (y,), "o", color=GREY, ms=2.2)
                far += [low, high]
        elif (row := effect.coefficient) is not None:
            value = float(np.clip(row.standardised if per_sd else row.value, -most, most))
            ax.plot(shown(value), (y,), "o", mfc="none", color=COLOURS[0], ms=5)
            reach.append(value)
        y += 1.0
    low = max(min(reach + far), MAX_REACH * min(reach))
    high = min(max(reach + far), MAX_REACH * max(reach))
    pad = 0.06 * (high - low) or 0.5
    ax.axvline(1 if ratio else 0, color=SOFT, lw=0.8, zorder=1)
    if ratio:
        ax.set_xscale("log")
        _plain_log_ticks(ax.xaxis, exponentiate(low - pad, high + pad))
    ax.set_xlim(shown(low - pad, high + pad))
    ax.set_ylim(y - 0.4, -0.6)
    ax.set_yticks(places, [shorten(effect.name) for effect in effects])
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    ax.spines["left"].set_visible(False)
    unit = "per SD" if per_sd else "per unit"
    ax.set_xlabel(f"{ratio} {unit}, log scale" if ratio else f"effect {unit}")
    return ax


def plot_roc(found: Assessment, ax: Axes | None = None) -> Axes:
    """Plot the ROC curve, with the area under it."""
    ax = _axes(ax)
    ax.plot((0, 1), (0, 1), color=GREY, lw=0.8, ls="--")
    ax.plot(*zip(*found.roc, strict=True), color=COLOURS[0], lw=1.8)
    ax.set_xlabel("false positive rate (1 - specificity)")
    ax.set_ylabel("true positive rate (sensitivity)")
    _unit_square(ax)
    return ax


def plot_calibration(found: Assessment, ax: Axes | None = None) -> Axes:
    """Plot mean responses, with 95% intervals, against mean predictions in groups of rows."""
    ax = _axes(ax)
    expected = [group.expected for group in found.groups]
    observed = [group.observed for group in found.groups]
    low = [group.observed if group.low is None else group.low for group in found.groups]
    high = [group.observed if group.high is None else group.high for group in found.groups]
    ends = (min([*expected, *observed]), max([*expected, *observed]))
    ax.plot(ends, ends, color=GREY, lw=0.8, ls="--")
    ax.vlines(expected, low, high, color=COLOURS[0], lw=1.2)
    ax.plot(expected, observed, "o", color=COLOURS[0], ms=4)
    # Long numbers have room for few ticks.
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel("mean prediction")
    ax.set_ylabel("mean response")
    return ax


def plot_survival(found: Assessment, ax: Axes | None = None) -> Axes:
    """Plot Kaplan-Meier curves as steps, with 95% bands and numbers at risk."""
    ax = _axes(ax)
    colours = [COLOURS[k] for k in (2, 4, 1)]
    last = 0.0
    for curve, colour in zip(found.curves, colours, strict=False):
        name = shorten(curve.name)
        ax.step(curve.times, curve.shares, where="post", color=colour, lw=1.6, label=name)
        if curve.low and curve.high:
            band: Any = {"step": "post", "color": colour, "alpha": 0.13, "lw": 0}
            ax.fill_between(curve.times, curve.low, curve.high, **band)
        last = max(last, max(curve.times))
    ax.set_xlim(0, last)
    ax.set_ylim(0, 1.02)
    ax.set_ylabel("proportion event-free")
    ax.legend(frameon=False, fontsize=9)
    ax.set_xlabel("time")
    ticks = [tick for tick in ax.get_xticks() if 0 <= tick <= last]
    ax.set_xticks(ticks)
    note: Any = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    note["fontsize"] = 9
    ax.annotate("number at risk", (0, 0), (-28, -44), color=SOFT, ha="left", va="top", **note)
    for k, (curve, colour) in enumerate(zip(found.curves, colours, strict=False)):
        down = -58 - 26 * k
        ax.annotate(curve.name, (0, 0), (-28, down), color=colour, ha="left", va="top", **note)
        for tick in ticks if curve.at_risk else ():
            at = max(int(np.searchsorted(curve.times, tick, side="right")) - 1, 0)
            # Beyond the end of a curve the number is not known.
            text = "–" if tick > curve.times[-1] else f"{curve.at_risk[at]:,.0f}"
            ax.annotate(text, (tick, 0), (0, down - 12), ha="center", va="top", **note)
    return ax


def shorten(name: str) -> str:
    """Return a name with an ellipsis in its middle if it is too long for a chart."""
    if len(name) <= LETTERS:
        return name
    return f"{name[: LETTERS // 2]}…{name[1 - LETTERS // 2 :]}"


def _spread_out(penalties: Sequence[float]) -> list[int]:
    """Return places of penalties whose labels do not touch on a log axis."""
    wanted = np.unique(np.linspace(0, len(penalties) - 1, COUNTS).round().astype(int))
    apart = abs(math.log(penalties[0] / penalties[-1])) * COUNT_SPACE
    shown: list[int] = []
    for k in wanted.tolist():
        if not shown or abs(math.log(penalties[shown[-1]] / penalties[k])) >= apart:
            shown.append(k)
    return shown


def _axes(ax: Any) -> Axes:
    """Return axes, new ones if none are given, in a layout that leaves room for their labels."""
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(layout="constrained")
    figure = ax.figure.figure
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    new: Axes = ax
    return new


def _penalty_axis(ax: Any, penalties: Sequence[float]) -> None:
    ax.set_xscale("log")
    low, high = min(penalties), max(penalties)
    wide = (high / low) ** 0.03 if high > low else 2.0
    ax.set_xlim(high * wide, low / wide)
    _plain_log_ticks(ax.xaxis, (low / wide, high * wide))
    ax.set_xlabel(PENALTY)


def _plain_log_ticks(axis: Any, ends: tuple[float, ...]) -> None:
    """Set about five ticks at 1, 2 or 5 times powers of ten, as plain numbers."""
    powers = range(math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1])) + 1)
    for steps in TICKS:
        ticks = [k * 10.0**p for p in powers for k in steps if ends[0] <= k * 10.0**p <= ends[1]]
        if len(ticks) <= 7:
            break
    ticks = ticks[:: math.ceil(len(ticks) / 7) or 1]
    axis.set_ticks(ticks, [number(tick) for tick in ticks])
    axis.set_ticks([], minor=True)


def _label_ends(ax: Any, ends: dict[str, float], colours: dict[str, str]) -> None:
    """Write names at the ends of lines, moved apart where they would touch."""
    low, high = ax.get_ylim()
    names = sorted(ends, key=lambda name: ends[name])
    places = [(ends[name] - low) / (high - low) for name in names]
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + LABEL_SPACE)
    above = max(places[-1] - 1.0, 0.0) if places else 0.0
    if above:
        places[-1] -= above
        for k in range(len(places) - 2, -1, -1):
            places[k] = min(places[k], places[k + 1] - LABEL_SPACE)
    for name, place in zip(names, places, strict=True):
        ax.annotate(
            shorten(name), (1, place), (4, 0), xycoords="axes fraction", va="center",
            textcoords="offset points", color=colours[name], fontsize=9,
        )  # fmt: skip


def _unit_square(ax: Any) -> None:
    ax.set_xlim(-0.01, 1.01)
    ax.set_ylim(-0.01, 1.01)
    ax.set_aspect("equal")
