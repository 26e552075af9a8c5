"""The report of the joint-tuning study keeps its two arms apart."""

from pathlib import Path

import pandas as pd
import pytest
from helpers.programs import needs, program
from helpers.study.small import SMALL
from playwright.sync_api import sync_playwright

from fedlasso.report import Results, write_report
from fedlasso.report.figure_registry import baseline_figure, contrast_figure
from fedlasso.study import STUDIES, Store, run_study

ARMS = ("inherited penalty", "jointly tuned penalty")
CELLS = 4 * 2  # methods and epoch counts of one arm


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joint")


@pytest.fixture(scope="module")
def joint(out: Path) -> Results:
    study = STUDIES["joint-tuning"](seed=7, epochs=(1, 5))  # type: ignore[call-arg]
    run_study(study, [SMALL], 2, Store(out / "results"), workers=1)
    return write_report(out / "results", out)


def test_tables_name_the_arm_of_every_row(joint: Results, out: Path) -> None:
    for name in ("main", "grid", "paired-method", "resources", "empty"):
        text = (out / "tables" / f"{name}.md").read_text()
        assert "| Tuning |" in text, name
        assert all(arm in text for arm in ARMS), name
    assert len(pd.read_csv(out / "tables" / "grid.csv")) == len(joint.outcome) / 2
    main = pd.read_csv(out / "tables" / "main.csv")
    assert len(main) == 2 * CELLS
    assert not main.duplicated(["scenario", "method", "epochs", "tuning"]).any()
    paired = (out / "tables" / "paired-tuning.md").read_text()
    assert "jointly tuned penalty minus inherited penalty" in paired


def test_figures_draw_the_arms_apart(joint: Results) -> None:
    figure = baseline_figure(joint)
    assert figure is not None
    rows = [axes.get_ylabel() for axes in figure.canvas.axes if axes.get_ylabel()]
    assert [row.split(",")[0] for row in rows] == list(ARMS)
    for axes in figure.canvas.axes:
        for container in axes.containers:
            assert len(container[0].get_xdata()) == 2
    figure = contrast_figure(joint)
    assert figure is not None
    labels = [label.get_text() for label in figure.canvas.axes[0].get_yticklabels()]
    assert labels == [f"small, {arm}" for arm in ARMS]


@needs("browser")
def test_the_page_has_a_control_for_the_arm(joint: Results, out: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program("browser"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto((out / "index.html").as_uri())
        page.wait_for_selector("#grid-table tbody tr")
        assert page.locator("#tuning option").all_inner_texts() == list(ARMS)
        shown = []
        for value, arm in zip(("inherited", "joint"), ARMS, strict=True):
            page.select_option("#tuning", value)
            assert arm in page.inner_text("#status")
            assert arm in str(page.text_content("#means-table caption"))
            marks = page.locator("#means-chart .point").count()
            assert marks == page.locator("#means-table tbody tr").count() == CELLS
            shown.append(page.text_content("#means-table tbody"))
        assert shown[0] != shown[1]
        pairs = page.locator("#pair option").all_inner_texts()
        assert "jointly tuned penalty minus inherited penalty" in pairs
        heads = page.locator("#grid-table th").all_inner_texts()
        assert "Tuning" in heads
        assert "undefined" not in page.inner_text("body")
        browser.close()
