"""Plots show the numbers that they are given, on any axes, and the same bytes every time."""

import math
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedlasso.fitting.examination.assessment import (
    Assessment,
    CalibrationGroup,
    Measure,
    SurvivalCurve,
)
from fedlasso.fitting.examination.comparison import CoefficientPath
from fedlasso.models import plots, svg
from fedlasso.models.document import Coefficient, ErrorCurve
from fedlasso.models.effects import Effect
from fedlasso.models.inference_document import ColumnEstimate, SiteEstimate

CURVE = ErrorCurve(
    (10.0, 3.0, 1.0, 0.3), (9.0, 4.2, 4.0, 4.1), (0.5, 0.3, 0.3, None), (0, 1, 2.5, 4), 2
)
ESTIMATE = ColumnEstimate(
    "age", 2.0, 0.5, 0.1, 0.3, 0.7, 0.01, 0.02, sites=(SiteEstimate("north", 0.4, -9.0, 9.0),)
)
SURVIVAL = SurvivalCurve("low", (0.0, 5.0), (1.0, 0.5), (1.0, 0.4), (1.0, 0.6), (30, 12))
FOUND = Assessment(
    rows=90,
    how="On held-out rows.",
    auroc=Measure(0.8, 0.7, 0.9),
    roc=((0.0, 0.0), (0.1, 0.6), (1.0, 1.0)),
    groups=(CalibrationGroup(45, 0.2, 0.25, 0.2, 0.3), CalibrationGroup(45, 0.8, 0.7)),
    curves=(SURVIVAL, SurvivalCurve("high", (0.0, 5.0), (1.0, 0.25))),
)


@pytest.fixture
def ax() -> Any:
    return Figure().subplots()


def texts_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_counts_of_near_penalties_do_not_touch(ax: Any) -> None:
    near = ErrorCurve((8.0, 4.0, 1.0, 0.95, 0.9), (3.0,) * 5, (0.1,) * 5, (0, 1, 2, 3, 4), 2)
    plots.plot_cv(near, ax=ax)
    (top,) = ax.child_axes
    assert [label.get_text() for label in top.get_xticklabels()] == ["0", "1", "2"]


def test_the_curve_has_glmnets_lines_and_counts(ax: Any) -> None:
    assert (CURVE.minimum, CURVE.one_se) == (2, 1)
    drawn: Any = plots.plot_cv(CURVE, "deviance", ax)
    assert drawn is ax
    marks = [float(line.get_xdata()[0]) for line in drawn.lines if line.get_linestyle() == ":"]
    assert sorted(marks) == [1.0, 3.0]
    assert sorted(texts_of(ax)) == ["1se", "min"]
    (top,) = ax.child_axes
    assert [label.get_text() for label in top.get_xticklabels()] == ["0", "1", "2.5", "4"]
    left, right = ax.get_xlim()
    assert left > 10.0 > 0.3 > right
    known = plots.plot_cv(replace(CURVE, nzero=(0, 1, 3, 4)), "error", Figure().subplots())
    (top,) = known.child_axes
    assert [label.get_text() for label in top.get_xticklabels()] == ["0", "1", "3", "4"]
    assert top.get_xlabel() == "nonzero coefficients"


def test_lines_of_selected_columns_end_in_their_names(ax: Any) -> None:
    names = tuple(f"x{k}" for k in range(20))
    path = CoefficientPath((2.0, 1.0), names, tuple((0.0, 1 + 1e-3 * k) for k in range(20)))
    plots.plot_path(path, names[:9], 1.5, ax)
    assert sorted(texts_of(ax)) == sorted(names[:9])
    places = sorted(text.xy[1] for text in ax.texts)
    assert np.diff(places).min() >= plots.LABEL_SPACE - 1e-9
    assert 0 <= places[0] <= places[-1] <= 1 + 1e-9


def test_a_forest_plot_is_on_the_scale_of_ratios(ax: Any) -> None:
    effects = [
        Effect("age", estimate=ESTIMATE),
        Effect("sex", coefficient=Coefficient("sex", 0.1, -0.2, 0.0, 1.0)),
    ]
    plots.plot_forest(effects, "odds ratio", True, ax)
    drawn = [line.get_xdata() for line in ax.lines]
    np.testing.assert_allclose(drawn[0], np.exp([0.6, 1.4]))
    np.testing.assert_allclose(drawn[1], np.exp([1.0]))
    np.testing.assert_allclose(drawn[4], np.exp([-0.2]))
    assert ax.get_xscale() == "log"
    # A site's wide interval does not shrink the others.
    assert ax.get_xlim()[1] < math.exp(4)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["age", "sex"]


def test_assessments_are_drawn_as_steps_points_and_counts(ax: Any) -> None:
    plots.plot_survival(FOUND, ax)
    assert ax.lines[0].get_drawstyle() == "steps-post"
    assert {"number at risk", "low", "high", "30", "12"} <= set(texts_of(ax))
    calibration: Any = plots.plot_calibration(FOUND, Figure().subplots())
    (intervals,) = calibration.collections
    np.testing.assert_allclose(intervals.get_segments()[0], [[0.2, 0.2], [0.2, 0.3]])
    roc: Any = plots.plot_roc(FOUND, Figure().subplots())
    np.testing.assert_allclose(roc.lines[1].get_xydata(), FOUND.roc)


LONG = "body_mass_index_kg_per_m2"
PATH = CoefficientPath((1.0, 0.1), (LONG,), ((0.0, 2.0),))
PLOTS: list[Any] = [
    lambda ax: plots.plot_path(PATH, [LONG], 0.1, ax),
    lambda ax: plots.plot_forest([Effect(LONG, estimate=ESTIMATE)], "odds ratio", True, ax),
    lambda ax: plots.plot_survival(FOUND, ax),
]


@pytest.mark.parametrize("plot", PLOTS)
def test_no_text_is_cut_off_on_axes_without_a_layout(plot: Any) -> None:
    figure = Figure(figsize=(4, 4))
    FigureCanvasAgg(figure)
    drawn = plot(figure.subplots())
    figure.canvas.draw()
    whole = figure.bbox.padded(1)
    texts = [*drawn.texts, *drawn.get_yticklabels()]
    names = [text for text in texts if any(map(str.isalpha, text.get_text()))]
    assert names
    for text in names:
        box = text.get_window_extent()
        assert whole.contains(*box.min), text
        assert whole.contains(*box.max), text


def test_numbers_at_risk_end_with_their_curve(ax: Any) -> None:
    times = (0.0, 50.0, 100.0)
    whole = SurvivalCurve("low", times, (1.0, 0.9, 0.8), at_risk=(30, 20, 12))
    short = SurvivalCurve("high", times[:2], (1.0, 0.5), at_risk=(30, 7))
    plots.plot_survival(replace(FOUND, curves=(whole, short)), ax)
    texts = texts_of(ax)
    ticks = ax.get_xticks()
    own = texts[texts.index("high") + 1 :]
    assert own[: len(ticks)] == ["–" if t > 50 else "30" if t < 50 else "7" for t in ticks]
    assert texts[texts.index("low") + 1 :][: len(ticks)].count("–") == 0


def test_long_numbers_of_a_calibration_plot_do_not_touch(ax: Any) -> None:
    groups = (CalibrationGroup(45, 80_000.0, 81_000.0), CalibrationGroup(45, 140_000.0, 139_000.0))
    plots.plot_calibration(replace(FOUND, groups=groups), ax)
    assert len(ax.get_xticks()) <= 6


def test_survival_curves_have_a_legend(ax: Any) -> None:
    plots.plot_survival(FOUND, ax)
    assert texts_of(ax.get_legend()) == ["low", "high"]


@pytest.mark.parametrize("values", [(0.0, 0.0), (1e300, -1e300), (1e-300, 0.0), (5.0, 5.0)])
def test_any_numbers_are_drawn(values: tuple[float, float]) -> None:
    curve = ErrorCurve((1.0, 0.5), values, (None, 1.0), (0, 1), 0)
    path = CoefficientPath((1.0, 0.5), ("a",), (values,))
    effects = [Effect("a", coefficient=Coefficient("a", *values, 0.0, 0.0))]
    assert svg.draw_svg(lambda ax: plots.plot_forest(effects, None, True, ax), "effects")
    assert svg.draw_svg(lambda ax: plots.plot_forest(effects, "odds ratio", True, ax), "ratios")
    assert svg.draw_svg(lambda ax: plots.plot_cv(curve, "error", ax), "curve")
    assert svg.draw_svg(lambda ax: plots.plot_path(path, ("a",), 0.7, ax), "path")


def test_a_chart_is_text_coloured_by_the_page_and_has_the_same_bytes() -> None:
    first, again = (
        svg.draw_svg(lambda ax: plots.plot_cv(CURVE, "a < b & c", ax), 'a "curve"')
        for _ in range(2)
    )
    assert first == again
    root = ElementTree.fromstring(first)
    shown = ["".join(text.itertext()) for text in root.iter() if text.tag.endswith("text")]
    assert "a < b & c" in shown
    assert "nonzero coefficients, mean without held-out rows" in shown
    # Every colour is one of the page's.
    assert not re.search("#[0-9a-f]{6}", first)
    assert "<metadata" not in first


def test_colours_are_those_of_the_style_sheet() -> None:
    sheet = (files("fedlasso.html") / "card.css").read_text()
    light, dark = sheet.split("@media screen and (prefers-color-scheme:dark)")
    for name, colour in svg.PALETTE.items():
        assert f"--{name}:{colour}" in light
        assert f"--{name}:" in dark


def test_without_matplotlib_a_card_says_how_to_get_charts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(svg, "find_spec", lambda name: None)
    assert svg.draw_svg(lambda ax: plots.plot_cv(CURVE, "error", ax), "curve") == ""


def test_axes_are_made_where_none_are_given() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    ax = plots.plot_roc(FOUND)
    assert ax.get_xlabel().startswith("false positive rate")
    pyplot.close(ax.figure)


def test_long_names_keep_both_ends() -> None:
    name = "systolic_blood_pressure_at_admission_mmHg"
    assert plots.shorten(name) == "systolic_bloo…mission_mmHg"
    assert plots.shorten("age") == "age"
