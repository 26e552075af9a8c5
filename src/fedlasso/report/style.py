"""One look everywhere: names, colours and marks of methods, metrics, scenarios and axes.

Colours are Paul Tol's "bright" scheme: told apart with every common colour vision, and at least
3:1 against both the white and the dark page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

COLOURS = {"CD": "#4477aa", "ST": "#ee6677", "P": "#228833", "DA": "#aa3377"}
MARKERS = {"CD": "o", "ST": "s", "P": "^", "DA": "D"}
METHODS = {
    "CD": "average of local coordinate-descent fits",
    "ST": "CD, soft-thresholded once at the end",
    "P": "CD, soft-thresholded after every average",
    "DA": "federated dual averaging",
}
# What Vega calls each of Matplotlib's markers.
VEGA_SHAPES = {
    "o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down",
    "P": "cross", "X": "cross", "<": "triangle-left", ">": "triangle-right", "p": "square",
    "h": "circle",
}  # fmt: skip
_MORE_COLOURS = ("#997700", "#3399bb", "#dd7700", "#777777", "#6655cc", "#00857a", "#a05030")
_MORE_MARKERS = ("v", "P", "X", "<", ">", "p", "h")

PANELS = {"upload": "upload-only limit", "joint": "joint limits"}
RULES = {"min": "minimum validation error", "1se": "one standard error"}
AXES = {
    "scenario": "Scenario",
    "method": "Method",
    "epochs": "E",
    "budget": "B",
    "panel": "Panel",
    "rule": "Rule",
}
SCENARIOS = {
    "baseline": "Baseline",
    "independent": "Independent predictors",
    "strong-correlation": "Strong correlation",
    "two-sites": "Two sites",
    "five-sites": "Five sites",
    "ten-sites": "Ten sites",
    "weak-signal": "Weak signal",
    "strong-signal": "Strong signal",
    "fewer-predictors": "Fewer predictors",
    "more-predictors": "More predictors",
    "unequal-sizes": "Unequal site sizes",
    "different-distributions": "Different site distributions",
}


@dataclass(frozen=True)
class Metric:
    """How a recorded quantity is called, and what it can and cannot show."""

    label: str
    caption: str
    better: str = ""


METRICS = {
    "f1": Metric(
        "F1",
        "Agreement of the selected with the truly nonzero predictors (1 is perfect, an empty model "
        "scores 0). It says nothing about prediction or about the size of the coefficients.",
        "higher",
    ),
    "precision": Metric(
        "Precision",
        "Share of the selected predictors that are truly nonzero. A tiny model can score well.",
        "higher",
    ),
    "recall": Metric(
        "Recall",
        "Share of the truly nonzero predictors that were selected. Selecting everything scores 1.",
        "higher",
    ),
    "active": Metric(
        "Active coefficients",
        "How many coefficients exceed 1e-4 in size. Fewer is sparser, not necessarily better.",
    ),
    "test_mse": Metric(
        "Test MSE",
        "Mean squared prediction error on 2000 fresh records. The noise is part of it, so even the "
        "truth does not score 0; it does not show whether the right predictors were found.",
        "lower",
    ),
    "coef_error": Metric(
        "Coefficient error",
        "Euclidean distance to the true coefficients, shrinkage by the penalty included.",
        "lower",
    ),
    "gap": Metric(
        "Objective gap",
        "How far the common objective is above its pooled minimum at the same penalty. Zero means "
        "the pooled Lasso was reached; it does not mean that the pooled Lasso is right.",
        "lower",
    ),
    "relative_gap": Metric(
        "Relative gap",
        "The objective gap divided by the pooled minimum (or by 1 if that is larger). Optimisation "
        "error only: a smaller gap need not select or predict better.",
        "lower",
    ),
    "stationarity": Metric(
        "Stationarity",
        "Largest violation of the pooled optimality conditions; zero exactly at the pooled Lasso.",
        "lower",
    ),
    "f1_1e6": Metric("F1, cutoff 1e-6", "F1 of the same fits if any |b| > 1e-6 counts as active."),
    "f1_1e2": Metric("F1, cutoff 1e-2", "F1 of the same fits if only |b| > 1e-2 counts as active."),
}


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


def label(axis: str, value: Any) -> str:
    """How a value is printed in a column of its axis."""
    names: dict[Any, str] = {"scenario": SCENARIOS, "panel": PANELS, "rule": RULES}.get(axis, {})
    return names.get(value, str(value))


def title(axis: str, value: Any) -> str:
    """How a value is printed where its axis is not named beside it."""
    text = label(axis, value)
    return f"{AXES[axis]} = {text}" if axis in ("epochs", "budget") else text
