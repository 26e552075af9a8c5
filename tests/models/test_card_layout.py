"""Cards on screens and on paper: nothing is cut, and colours follow the page."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.browsing import open_browser
from helpers.cards import SCHEMA, draw_sites
from helpers.programs import needs
from playwright.sync_api import Browser

from fedlasso.fitting import Settings
from fedlasso.models import ModelDocument, make_model, write_model
from fedlasso.models.document import Coefficient
from fedlasso.models.inference_document import ColumnEstimate, SiteEstimate, TrustDocument
from fedlasso.tables import Schema
from fedlasso.tables.columns import Column

pytestmark = pytest.mark.standard

# Texts of charts that leave them.
CUT = """() => [...document.querySelectorAll('svg text')].filter(text => {
    const own = text.getBoundingClientRect();
    const whole = text.closest('svg').getBoundingClientRect();
    return own.left < whole.left || own.right > whole.right
        || own.top < whole.top || own.bottom > whole.bottom;
}).map(text => text.textContent)"""
# Number of tables that are wider than the page.
SCROLLED = """() => [...document.querySelectorAll('.scroll')].filter(
    box => box.scrollWidth > box.clientWidth).length"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def compared() -> ModelDocument:
    return make_model(draw_sites("plain"), Settings(), SCHEMA, compare=True)


@needs("browser")
@pytest.mark.parametrize("width", [320, 768, 1280])
def test_nothing_is_cut_on_any_screen(
    browser: Browser, compared: ModelDocument, tmp_path: Path, width: int
) -> None:
    write_model(tmp_path, compared)
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "card.html").as_uri())
    assert page.locator("svg text").count() > 10
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate(CUT) == []
    assert page.evaluate(SCROLLED) == 0
    page.close()


@needs("browser")
def test_ratios_have_room_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    settings = Settings(penalty=0.01, family="binomial")
    document = make_model(draw_sites("0/1", settings.loss), settings, SCHEMA)
    write_model(tmp_path, document)
    page = browser.new_page(viewport={"width": 320, "height": 900})
    page.goto((tmp_path / "card.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator(".effects [data-head='odds ratio per SD']").first.is_visible()
    page.close()


@needs("browser")
def test_paper_has_the_colours_of_daylight(
    browser: Browser, compared: ModelDocument, tmp_path: Path
) -> None:
    write_model(tmp_path, compared)
    page = browser.new_page(color_scheme="dark")
    page.goto((tmp_path / "card.html").as_uri())
    ask = "getComputedStyle(document.body).color"
    on_screen = page.evaluate(ask)
    # Charts follow the page.
    ink = "getComputedStyle(document.querySelector('svg text')).fill"
    soft = page.evaluate(ink)
    page.emulate_media(media="print", color_scheme="dark")
    on_paper = page.evaluate(ask)
    page.emulate_media(media="screen", color_scheme="light")
    assert on_screen != on_paper == page.evaluate(ask)
    assert soft != page.evaluate(ink)
    page.close()


@needs("browser")
@pytest.mark.parametrize("columns", [0, 1, 40])
def test_any_number_of_columns_and_sites_fits_the_page(
    browser: Browser, compared: ModelDocument, tmp_path: Path, columns: int
) -> None:
    names = [f"an_unusually_long_name_of_a_measurement_{k}" for k in range(columns)]
    rows = [Coefficient(name, 0.3, 0.1 * k - 1, 0.0, 2.0) for k, name in enumerate(names)]
    estimates = [
        ColumnEstimate(
            row.name, 2.0, row.standardised / 2, 0.2, -1.0, 1.0, 0.5, 1.0, i_squared=0.5,
            heterogeneity=0.2, sites=(SiteEstimate("north", 0.1, -3.0, 3.0),),
        )
        for row in rows
    ]  # fmt: skip
    table = compared.table_one
    assert table is not None
    many = 20 if columns > 1 else 1
    summaries = tuple(replace(column, sites=column.sites[:1] * many) for column in table.columns)
    schema = Schema("y", tuple(Column(name, "number") for name in names))
    document = replace(
        compared,
        schema=schema,
        coefficients=tuple(rows),
        columns=columns,
        trust=TrustDocument(level=0.95, named=tuple(estimates)),
        sites=tuple(replace(compared.sites[0], name=f"site{k}") for k in range(many)),
        table_one=replace(
            table,
            sites=tuple(f"site{k}" for k in range(many)),
            rows=(30,) * many,
            columns=summaries,
        ),
        settings=replace(compared.settings, family="poisson"),
        path=None,
    )
    write_model(tmp_path, document)
    assert not re.search(r"\b1 (sites|columns|rows)\b", (tmp_path / "card.html").read_text())
    for width in (390, 1400):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((tmp_path / "card.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.evaluate(CUT) == []
        page.close()


@needs("browser")
def test_tables_are_whole_on_paper(
    browser: Browser, compared: ModelDocument, tmp_path: Path
) -> None:
    row = ColumnEstimate(
        "a_rather_long_name_of_a_column_0", 20.0, -0.123, 0.1, -12.34, 12.34, 0.01, 0.02,
        heterogeneity=0.012, i_squared=0.33, sites=(SiteEstimate("north", 0.1, -0.9, 1.1),),
    )  # fmt: skip
    write_model(tmp_path, replace(compared, trust=TrustDocument(level=0.95, named=(row,))))
    # A4 without its margins.
    page = browser.new_page(viewport={"width": 688, "height": 1000})
    page.goto((tmp_path / "card.html").as_uri())
    page.emulate_media(media="print")
    assert page.evaluate(SCROLLED) == 0
    page.close()
