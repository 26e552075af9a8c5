"""Every study is drawn whole: a mark for each cell that has a number, and none without a word."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.programs import needs
from helpers.study.small import OTHER, SMALL
from helpers.study.tiny_data import write_data
from playwright.sync_api import Browser, Page

from fedlasso.report import Results, write_report
from fedlasso.study import STUDIES, Scenario, Store, run_study
from fedlasso.study.real import RealStudy
from fedlasso.study.trust import TrustStudy

pytestmark = [needs("browser"), pytest.mark.usefixtures("svg_only")]
FEW = Scenario("few", sizes=(60, 60), p=30, nonzeros=4, validation=40, test=10)
SETTINGS: dict[str, dict[str, Any]] = {
    "paper": {"epochs": (1, 5)},
    "whole": {"epochs": (1, 5)},
    "earlier": {"epochs": (1, 5)},
    "literature": {"budgets": (5, 100)},
    "tuned": {"epochs": (1, 5)},
    "epochs": {"epochs": (1, 2, 5)},
    "joint-tuning": {"epochs": (1, 5)},
    "site-effects": {"epochs": (1, 5)},
    "families": {"families": ("binomial", "poisson"), "methods": ("Newton", "CD"), "epochs": (1,)},
}


def make(name: str, folder: Path) -> tuple[Any, list[Scenario]]:
    if name == "real":
        study = RealStudy(methods=("prediction", "LassoCV"), data=str(write_data(folder / "data")))
        return study, [study.scenarios[name] for name in ("plain", "nearly")]
    if name == "trust":
        return TrustStudy(seed=5), [FEW, replace(FEW, name="other", nonzeros=2)]
    kind: Callable[..., Any] = STUDIES[name]
    return kind(**SETTINGS[name]), [SMALL, OTHER]


def test_no_study_is_left_out() -> None:
    assert {*SETTINGS, "real", "trust"} == set(STUDIES)


@pytest.mark.parametrize("name", [*SETTINGS, "real", "trust"])
def test_marks_are_the_cells(name: str, browser: Browser, tmp_path: Path) -> None:
    study, scenarios = make(name, tmp_path)
    run_study(study, scenarios, 2, Store(tmp_path / "results"), workers=1)
    results = write_report(tmp_path / "results", tmp_path / "report")
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "report" / "index.html").as_uri())
    page.wait_for_selector("body[data-ready]")
    wanted = ("f1", "test_mse", "test_deviance", "relative_gap", "fdp", "coverage_zero")
    for metric in [name for name in wanted if name in results.metrics]:
        page.select_option("#metric", metric)
        for choice in choices(results):
            for axis, value in choice.items():
                page.select_option(f"#{axis}", str(value))
            check_marks(page, results, metric, choice)
    assert errors == []
    for chart in page.locator(".chart").all():
        assert "NaN" not in chart.inner_html()
        assert "undefined" not in chart.inner_html()
    body = page.inner_text("body")
    assert "undefined" not in body
    assert "NaN" not in body
    # No sentence has a hole where a choice would be told that the study does not have.
    assert re.findall(r".{30}[,;:] [.,;]", body) == []
    page.close()


def choices(results: Results) -> list[dict[str, Any]]:
    """The usual view, and the last value of every control."""
    usual = {"scenario": results.first_scenario, **results.primary}
    usual |= {arm: results.values(arm)[0] for arm in results.arms}
    return [usual, *({**usual, axis: results.values(axis)[-1]} for axis in usual)]


def check_marks(page: Page, results: Results, metric: str, choice: dict[str, Any]) -> None:
    rows = results.at(**choice).dropna(subset=[metric])
    side = [axis for axis in ("method", "epochs", "split") if axis in results.axes]
    cells = rows.groupby(side).ngroups
    assert page.locator("#means-chart .point").count() == cells
    assert page.locator("#spread-chart .dot").count() == len(rows)
    everywhere = results.at(**{k: v for k, v in choice.items() if k != "scenario"})
    everywhere = everywhere.dropna(subset=[metric])
    drawn = page.locator("#overview-chart .point").count()
    assert drawn == everywhere.groupby(["scenario", *side]).ngroups
    for chart in ("means", "overview", "contrast", "spread", "tradeoff", "uploads"):
        marks = page.locator(f"#{chart}-chart .point, #{chart}-chart .dot")
        tips = marks.evaluate_all("all => all.map((e) => e.dataset.tip ?? '')")
        assert all("\n" in tip for tip in tips), chart
    for scope in ("one", "all"):
        if page.locator("#pair option").count():
            page.select_option("#scope", scope)
            found = page.locator("#contrast-table tbody tr td:nth-child(3)").all_text_contents()
            points = page.locator("#contrast-chart .point").count()
            assert points == sum(text != "—" for text in found)
    # Each group of dots in every scenario says which of the other choices it is.
    words = page.locator("#contrast-chart text").all_text_contents()
    others = set(page.locator("#contrast-table tbody td:nth-child(2)").all_text_contents())
    if len(others) > 1 and not any(other in words for other in others):
        rests = {other.partition(", ")[2] for other in others if other}
        assert rests - {""} <= set(words)
