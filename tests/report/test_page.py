"""The page in a real browser, with the network off."""

from pathlib import Path

import pandas as pd
import pytest
from helpers.programs import needs
from helpers.report.views import choose, downloaded, shown
from playwright.sync_api import Browser, Page

from fedlasso.report.records import Results
from fedlasso.study import contrast, summarise

pytestmark = needs("browser")


# What each control changes, charts and tables alike.
CHANGES = {
    "scenario": "means-chart means-table contrast-chart spread-chart ledger-table rows-table "
    "tradeoff-chart uploads-chart",
    "budget": "overview-chart means-table spread-chart ledger-chart rows-table",
    "panel": "means-table ledger-chart",
    "rule": "means-chart means-table overview-chart",
    "metric": "overview-chart means-chart means-table contrast-chart contrast-table spread-chart "
    "metric-caption overview-chart-title",
    "epochs_shown": "uploads-chart",
    "pair": "contrast-chart contrast-table",
    "scope": "contrast-chart contrast-table",
    "cost": "ledger-chart ledger-table",
    "row-method": "rows-table",
    "row-epochs": "rows-table",
    "replicate": "rows-table rerun",
}


def test_every_control_changes_what_is_shown(page: Page) -> None:
    controls = page.locator("select[name]").evaluate_all("all => all.map((e) => e.id)")
    assert set(controls) == set(CHANGES)
    for control, changes in CHANGES.items():
        start = page.input_value(f"#{control}")
        values = page.locator(f"#{control} option").evaluate_all("all => all.map((e) => e.value)")
        before = {part: shown(page, f"#{part}") for part in changes.split()}
        choose(page, control, values[-1] if values[-1] != start else values[0])
        for part, old in before.items():
            assert shown(page, f"#{part}") != old, f"{control} changes nothing in {part}"
        choose(page, control, start)
        assert {part: shown(page, f"#{part}") for part in before} == before


def test_means_in_the_page_equal_the_export(page: Page, results: Results) -> None:
    choose(page, "metric", "test_mse")
    table = pd.DataFrame(downloaded(page, "means"))
    expected = summarise(results.at(scenario="baseline", **results.primary), ["test_mse"])
    assert set(table["scenario"]) == {"baseline"}
    assert set(table["metric"]) == {"test_mse"}
    table["epochs"] = table["epochs"].astype(int)
    merged = expected.merge(table, on=["method", "epochs"], suffixes=("", "_page"))
    assert len(merged) == 12
    for name in ("mean", "se"):
        found = merged[f"{name}_page"].astype(float).to_numpy()
        assert found == pytest.approx(merged[name], rel=1e-12)
    first = page.locator("#means-table tbody tr").first.locator("td").nth(2).text_content()
    # Printed to the digits of the standard error; the download has all of them.
    error = float(table["se"].iloc[0])
    assert float(str(first)) == pytest.approx(float(table["mean"].iloc[0]), abs=error / 10)
    assert len(str(first)) < 8


def test_paired_differences_in_the_page_equal_the_export(page: Page, results: Results) -> None:
    choose(page, "scope", "all")
    table = pd.DataFrame(downloaded(page, "contrast"))
    expected = contrast(results.at(**results.primary), "epochs", 1, 20, ["f1"])
    assert set(table["difference"]) == {"E = 20 minus E = 1"}
    merged = expected.merge(table, on=["scenario", "method"], suffixes=("", "_page"))
    assert len(merged) == 8
    for name in ("mean", "se", "low", "high"):
        found = merged[f"{name}_page"].astype(float).to_numpy()
        assert found == pytest.approx(merged[name], abs=1e-14)


def test_rows_behind_a_point_are_the_records_to_the_last_digit(
    page: Page, results: Results
) -> None:
    page.locator("[aria-label='Rows of DA, E = 5']").evaluate("button => button.click()")
    rows = downloaded(page, "rows")
    expected = results.at(scenario="baseline", method="DA", epochs=5, **results.primary)
    assert [int(r["replicate"]) for r in rows] == expected["replicate"].tolist()
    for column in set(rows[0]) & set(expected.select_dtypes("number").columns):
        assert [float(r[column]) for r in rows] == expected[column].tolist(), column
    assert {"f1", "gap", "lam", "candidate", "upload_bytes", "seconds_rate"} <= set(rows[0])


def test_a_point_in_the_chart_opens_its_rows(page: Page) -> None:
    before = shown(page, "#rows-table")
    page.locator("#means-chart .point").last.click()
    assert shown(page, "#rows-table") != before


def test_the_grid_filters_sorts_and_downloads(page: Page, report: Path) -> None:
    exported = pd.read_csv(report / "tables" / "grid.csv")
    table = pd.DataFrame(downloaded(page, "grid"))
    assert len(table) == len(exported) == 192
    for name, label in (("f1", "F1"), ("gap", "Objective gap"), ("coef_error_se", None)):
        column = label or "Coefficient error SE"
        assert sorted(table[column].astype(float)) == pytest.approx(
            sorted(exported[name]), rel=1e-12, abs=1e-14
        )
    page.fill("#filter", "baseline joint DA E = 5")
    rows = downloaded(page, "grid")
    assert {(r["Scenario"], r["Method"], r["E"]) for r in rows} == {("Baseline", "DA", "5")}
    assert len(rows) == 4
    page.fill("#filter", "")
    for mark in ("ascending", "descending"):
        page.click("#grid-table th button:text-matches('^F1( |$)')")
        assert page.locator("#grid-table th[aria-sort]").get_attribute("aria-sort") == mark
        order = [float(r["F1"]) for r in downloaded(page, "grid")]
        assert order == sorted(order, reverse=mark == "descending")
    assert page.locator("#grid-table tbody tr").count() == 100
    page.check("#all")
    assert page.locator("#grid-table tbody tr").count() == 192


def test_an_address_carries_the_choices_by_name(page: Page) -> None:
    choose(page, "metric", "active")
    choose(page, "panel", "upload")
    assert page.url.endswith("#panel=upload&metric=active")
    page.goto(page.url)
    page.reload()
    page.wait_for_selector("#grid-table tbody tr")
    assert (page.input_value("#metric"), page.input_value("#panel")) == ("active", "upload")
    # In the same tab too, and what an address does not say is as usual.
    page.evaluate("location.hash = 'metric=recall&at=spread&only=DA'")
    page.wait_for_function("document.getElementById('metric').value === 'recall'")
    assert page.input_value("#panel") == "joint"
    page.click("#reset")
    assert page.input_value("#metric") == "f1"
    assert "#" not in page.url


def test_colours_are_chosen_and_remembered(page: Page) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.click("#theme")
    dark = page.evaluate(colour)
    assert dark != light
    assert page.inner_text("#theme") == "Light colours"
    page.reload()
    page.wait_for_selector("#grid-table tbody tr")
    assert page.evaluate(colour) == dark


def test_it_is_usable_by_keyboard_and_by_screen_readers(page: Page) -> None:
    unnamed = """[...document.querySelectorAll("select, input, button")]
        .filter((e) => !(e.labels?.length || e.textContent.trim() || e.ariaLabel)).length"""
    assert page.evaluate(unnamed) == 0
    for chart in ("overview", "tradeoff", "uploads", "means", "contrast", "spread", "ledger"):
        assert page.locator(f"#{chart}-chart > svg[role=img]").get_attribute("aria-label")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#metric")
    before = shown(page, "#means-table")
    page.keyboard.press("ArrowDown")
    assert shown(page, "#means-table") != before
    page.click("#means details.data summary")
    page.focus("[aria-label='Rows of P, E = 20']")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "row-method"


def test_nothing_is_wider_than_the_screen(page: Page) -> None:
    for width in (360, 768, 900, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        page.reload()
        page.wait_for_selector("#grid-table tbody tr")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_provenance_is_at_the_foot(page: Page, results: Results) -> None:
    foot = page.inner_text("footer")
    assert results.manifest.code["hash"] in foot
    assert f"Study seed {results.manifest.study['seed']}" in foot


def test_the_supplement_opens_too(browser: Browser, results: Results, report: Path) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto((report / "supplement" / "index.html").as_uri())
    assert page.locator("math").count() > 40
    assert page.locator("table").count() == 12
    page.locator("#figures").scroll_into_view_if_needed()
    assert complaints == []
    context.close()
