"""The page in a real browser, with the network off."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from browsing import open_browser
from playwright.sync_api import Browser, ConsoleMessage, Page, Request
from programs import needs

from fedlasso.report.records import Results
from fedlasso.study import contrast, summarise

pytestmark = needs("browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, results: Results, report: Path) -> Iterator[Page]:
    """The page, loaded; at the end, nothing was logged and nothing was fetched."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(10_000)
    page = context.new_page()
    complaints: list[str] = []
    fetched: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        complaints.append(f"{message.type}: {message.text}")

    def watch(request: Request) -> None:
        fetched.append(request.url)

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", watch)
    page.goto((report / "index.html").as_uri())
    page.wait_for_selector("#grid-table tbody tr")
    yield page
    assert complaints == []
    own = ((report / "index.html").as_uri(), "data:", "blob:")
    assert [url for url in fetched if not url.startswith(own)] == []
    context.close()


def choose(page: Page, control: str, index: int) -> None:
    page.select_option(f"#{control}", str(index))
    settle(page)


def settle(page: Page) -> None:
    """Until what was chosen is drawn."""
    page.wait_for_function("!document.body.hasAttribute('aria-busy')")


def shown(page: Page, selector: str) -> str:
    return page.inner_html(selector)


def downloaded(page: Page, table: str) -> list[dict[str, str]]:
    with page.expect_download() as event:
        page.click(f"[data-csv={table}]")
    text = Path(event.value.path()).read_text()
    return list(csv.DictReader(io.StringIO(text)))


# What each control changes, charts and tables alike.
CHANGES = {
    "scenario": "means-chart means-table contrast-chart spread-chart ledger-table rows-table",
    "budget": "means-table spread-chart ledger-chart rows-table",
    "panel": "means-table ledger-chart",
    "rule": "means-chart means-table",
    "metric": "means-chart means-table contrast-chart contrast-table spread-chart metric-caption",
    "pair": "contrast-chart contrast-table",
    "scope": "contrast-chart contrast-table",
    "cost": "ledger-chart ledger-table",
    "row-method": "rows-table",
    "row-epochs": "rows-table",
}


def test_every_control_changes_what_is_shown(page: Page) -> None:
    assert set(page.locator("select").evaluate_all("all => all.map((e) => e.id)")) == set(CHANGES)
    for control, changes in CHANGES.items():
        start = int(page.input_value(f"#{control}"))
        before = {part: shown(page, f"#{part}") for part in changes.split()}
        choose(page, control, page.locator(f"#{control} option").count() - 1 - start)
        for part, old in before.items():
            assert shown(page, f"#{part}") != old, f"{control} changes nothing in {part}"
        choose(page, control, start)
        assert {part: len(shown(page, f"#{part}")) for part in before} == {
            part: len(old) for part, old in before.items()
        }


def test_means_in_the_page_equal_the_export(page: Page, results: Results) -> None:
    choose(page, "metric", 4)
    table = pd.DataFrame(downloaded(page, "means-table"))
    expected = summarise(results.at(scenario="baseline", **results.primary), ["test_mse"])
    merged = expected.assign(E=expected["epochs"].astype(str)).merge(
        table, left_on=["method", "E"], right_on=["Method", "E"]
    )
    assert len(merged) == 12
    assert merged["Mean"].astype(float).to_numpy() == pytest.approx(merged["mean"], rel=1e-12)
    assert merged["SE"].astype(float).to_numpy() == pytest.approx(merged["se"], rel=1e-12)
    first = page.locator("#means-table tbody tr").first.locator("td").nth(2).inner_text()
    assert first == f"{float(table['Mean'].iloc[0]):.6g}"


def test_paired_differences_in_the_page_equal_the_export(page: Page, results: Results) -> None:
    choose(page, "scope", 1)
    table = pd.DataFrame(downloaded(page, "contrast-table"))
    expected = contrast(results.at(**results.primary), "epochs", 1, 20, ["f1"])
    names = {"baseline": "Baseline", "other": "other"}
    merged = expected.assign(Scenario=expected["scenario"].map(names)).merge(
        table, left_on=["Scenario", "method"], right_on=["Scenario", "Of"]
    )
    assert len(merged) == 8
    for ours, theirs in (("mean", "Mean"), ("se", "SE"), ("low", "Low"), ("high", "High")):
        assert merged[theirs].astype(float).to_numpy() == pytest.approx(merged[ours], abs=1e-14)


def test_rows_behind_a_point_are_the_records_to_the_last_digit(
    page: Page, results: Results
) -> None:
    page.click("[aria-label='Rows of DA, E = 5']")
    rows = downloaded(page, "rows-table")
    expected = results.at(scenario="baseline", method="DA", epochs=5, **results.primary)
    assert [int(r["replicate"]) for r in rows] == expected["replicate"].tolist()
    for column in set(rows[0]) & set(expected.columns):
        assert [float(r[column]) for r in rows] == expected[column].tolist(), column
    assert {"f1", "gap", "lam", "candidate", "upload_bytes", "seconds_rate"} <= set(rows[0])


def test_a_point_in_the_chart_opens_its_rows(page: Page) -> None:
    before = shown(page, "#rows-table")
    page.locator("#means-chart [aria-roledescription=point]").last.click()
    settle(page)
    assert shown(page, "#rows-table") != before


def test_the_grid_filters_sorts_and_downloads(page: Page, report: Path) -> None:
    exported = pd.read_csv(report / "tables" / "grid.csv")
    table = pd.DataFrame(downloaded(page, "grid-table"))
    assert len(table) == len(exported) == 192
    for name, label in (("f1", "F1"), ("gap", "Objective gap"), ("coef_error_se", None)):
        column = label or "Coefficient error SE"
        assert sorted(table[column].astype(float)) == pytest.approx(
            sorted(exported[name]), rel=1e-12, abs=1e-14
        )
    page.fill("#filter", "baseline joint DA E = 5")
    rows = downloaded(page, "grid-table")
    assert {(r["Scenario"], r["Method"], r["E"]) for r in rows} == {("Baseline", "DA", "5")}
    assert len(rows) == 4
    page.fill("#filter", "")
    for mark in ("ascending", "descending"):
        page.click("#grid-table th button:text-matches('^F1( |$)')")
        assert page.locator("#grid-table th[aria-sort]").get_attribute("aria-sort") == mark
        order = [float(r["F1"]) for r in downloaded(page, "grid-table")]
        assert order == sorted(order, reverse=mark == "descending")
    assert page.locator("#grid-table tbody tr").count() == 100
    page.check("#all")
    assert page.locator("#grid-table tbody tr").count() == 192


def test_an_address_carries_the_choices(page: Page) -> None:
    choose(page, "metric", 3)
    choose(page, "panel", 0)
    page.goto(page.url)
    page.reload()
    page.wait_for_selector("#grid-table tbody tr")
    assert (page.input_value("#metric"), page.input_value("#panel")) == ("3", "0")


def test_light_and_dark(page: Page) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) != light
    assert page.inner_text("#theme") == "Light colours"


def test_it_is_usable_by_keyboard_and_by_screen_readers(page: Page) -> None:
    unnamed = """[...document.querySelectorAll("select, input, button")]
        .filter((e) => !(e.labels?.length || e.textContent.trim() || e.ariaLabel)).length"""
    assert page.evaluate(unnamed) == 0
    for chart in ("means-chart", "contrast-chart", "spread-chart", "ledger-chart"):
        assert page.locator(f"#{chart} svg [aria-label]").count() > 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#metric")
    before = shown(page, "#means-table")
    page.keyboard.press("ArrowDown")
    settle(page)
    assert shown(page, "#means-table") != before
    page.focus("[aria-label='Rows of P, E = 20']")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "row-method"


def test_nothing_is_wider_than_the_screen(page: Page) -> None:
    for width in (360, 768):
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
