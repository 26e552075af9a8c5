"""The card draws whatever it is given, and cuts and hides nothing."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.browsing import open_browser
from helpers.programs import needs
from playwright.sync_api import Browser

from fedlasso import InProcess, Site
from fedlasso.fitting import Settings
from fedlasso.fitting.examination.comparison import ComparedModel, SiteError
from fedlasso.models import ModelDocument, describe_model, draw_card, make_model, write_model
from fedlasso.models.document import CHOSE, Coefficient
from fedlasso.models.inference_document import (
    ColumnEstimate,
    GroupEstimate,
    SiteEstimate,
    TrustDocument,
)
from fedlasso.models.numbers import number
from fedlasso.numerics import Certificate
from fedlasso.tables import Schema
from fedlasso.tables.columns import Column

COLUMNS = tuple(f"a_rather_long_name_of_a_column_{k}" for k in range(4))
SCHEMA = Schema("y", tuple(Column(name, "number") for name in COLUMNS))


def draw_sites(kind: str, loss: str = "quadratic") -> InProcess:
    rng = np.random.default_rng(0)
    sites = []
    for j in range(3):
        X = rng.standard_normal((30, 4)) if kind != "constant columns" else np.ones((30, 4))
        y = X[:, 0] + 0.5 * rng.standard_normal(30)
        if kind == "constant target":
            y = np.full(30, 2.5)
        if kind == "0/1":
            y = (y > 0).astype(np.float64)
        sites.append(Site(f"s{j}", X, y, columns=COLUMNS, raw=True, loss=loss))
    return InProcess(sites)


@pytest.fixture(scope="module")
def plain() -> ModelDocument:
    return make_model(draw_sites("plain"), Settings(), SCHEMA)


@pytest.mark.standard
@pytest.mark.parametrize("compare", [False, True])
@pytest.mark.parametrize("settings", [Settings(), Settings(penalty=0.1), Settings(cv=2)], ids=str)
@pytest.mark.parametrize("kind", ["constant target", "constant columns"])
def test_nothing_to_fit_has_a_card_that_says_so(
    kind: str, settings: Settings, compare: bool
) -> None:
    document = make_model(draw_sites(kind), settings, SCHEMA, compare=compare)
    assert document.warnings is not None
    assert "no column is selected: every row gets the same prediction" in document.warnings
    card = draw_card(document)
    assert "Read this first" in card
    assert not re.search(r"\b(nan|inf)\b", card)
    if kind == "constant columns":
        assert any(text.startswith("constant, so left out") for text in document.warnings)


@pytest.mark.standard
def test_a_response_of_zeros_and_ones_is_told_from_the_moments(plain: ModelDocument) -> None:
    reported = "the target 'y' is 0 or 1"
    document = make_model(draw_sites("0/1"), Settings(), SCHEMA)
    assert any(text.startswith(reported) for text in document.warnings or ())
    assert not any(text.startswith(reported) for text in plain.warnings or ())
    alike = make_model(draw_sites("0/1"), Settings(intercept=False), SCHEMA)
    assert any(text.startswith(reported) for text in alike.warnings or ())


def test_uploads_that_ended_early_come_first() -> None:
    rng = np.random.default_rng(1)
    names = tuple(f"x{k}" for k in range(60))
    X = rng.standard_normal((120, 60)).cumsum(axis=1)
    sites = [Site("a", X, X @ rng.standard_normal(60), columns=names, raw=True)]
    schema = Schema("y", tuple(Column(name, "number") for name in names))
    settings = Settings(goal="objective", validation=0.2, uploads=25)
    document = make_model(InProcess(sites), settings, schema)
    assert document.status == "CUT"
    assert document.warnings is not None
    assert document.warnings[0].startswith("the uploads ended too early")
    assert describe_model(document).startswith(document.status_text)
    assert draw_card(document).index("ended too early") < draw_card(document).index("<h2>")
    assert document.family == "Lasso"
    # The path's error is not that of a model which falls short of it.
    assert document.error is None


def test_a_lasso_that_held_out_rows_chose_tells_their_error() -> None:
    settings = Settings(goal="objective", validation=0.2)
    document = make_model(draw_sites("plain"), settings, SCHEMA)
    assert document.curve is not None
    assert document.error is not None
    assert document.error.mse == document.curve.mse[document.curve.chosen]
    assert document.error.rows == CHOSE


def test_the_best_penalty_may_be_the_last_one() -> None:
    # Without noise no penalty is too small.
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 4))
    y = X @ np.array([3.0, -2.0, 1.0, 0.5])
    sites = [Site(f"s{j}", X[j::2], y[j::2], columns=COLUMNS, raw=True) for j in range(2)]
    document = make_model(InProcess(sites), Settings(goal="objective"), SCHEMA)
    assert document.curve is not None
    assert document.curve.chosen == len(document.curve.penalties) - 1
    assert any("the best penalty is the smallest" in text for text in document.warnings or ())


@pytest.mark.standard
@pytest.mark.parametrize("settings", [Settings(), Settings(goal="selection")], ids=str)
def test_the_penalty_is_one_number_everywhere(settings: Settings) -> None:
    document = make_model(draw_sites("plain"), settings, SCHEMA)
    reported = f"{document.penalty:.4g}"
    card = draw_card(document)
    assert f"<b>{reported}</b>" in card
    assert f"Penalty λ = {reported}, {document.penalty_text}." in card
    assert f"penalty (lambda) {reported}, {document.penalty_text}" in describe_model(document)
    assert document.penalty_text.startswith("for standardised columns")


def test_a_penalty_says_what_it_is_of(plain: ModelDocument) -> None:
    scale = "for standardised columns"
    own = replace(plain, curve=None)
    assert own.penalty_text == scale
    assert replace(own, l1_ratio=0.5).penalty_text == f"{scale}, l1_ratio 0.5"
    relaxed = replace(own, penalty_factors={"a": 1.0, "b": 0.0})
    assert relaxed.penalty_text == f"{scale}, on 2 columns only"
    adaptive = replace(plain, penalty=1e3, penalty_factors={"a": 1.0, "b": 2.0})
    path = f"; chosen on the Lasso path: {adaptive.path_penalty:.4g}"
    assert adaptive.penalty_text == f"{scale}, times factors of 2 columns{path}"


def test_the_curve_says_whose_columns_it_counts(plain: ModelDocument) -> None:
    assert plain.curve is not None
    curve = replace(plain.curve, active=(16.0,) * len(plain.curve.active))
    count = len(plain.coefficients)
    card = draw_card(replace(plain, curve=curve))
    assert f"the Lasso has 16 columns there, and this model has {count}." in card


def test_errors_per_site_stand_beside_that_of_all_sites(plain: ModelDocument) -> None:
    errors = (SiteError("north", 30, 4.0), SiteError("south", 10, 16.0))
    card = draw_card(replace(plain, site_errors=errors))
    section = card.split("<h2>Error per site</h2>")[1].split("<h2>")[0]
    assert "On the training rows" in section
    cells = [re.sub("<[^>]*>", "", cell) for cell in re.findall("<td.*?</td>", section)]
    assert cells == [
        "north", "30", "4", "2", "0.57",
        "south", "10", "16", "4", "2.29",
        "all sites", "40", "7", "2.646", "1.00",
    ]  # fmt: skip


def test_the_comparison_says_what_its_rows_have_seen(plain: ModelDocument) -> None:
    pooled = ComparedModel("pooled Lasso on the training rows", 3, 2.0, 0.1, 0.0, 100)
    compared = replace(plain, comparison=(pooled,))
    card = draw_card(compared)
    assert "at the penalty that all rows chose, the held-out rows included" in card
    assert plain.error is not None
    assert f"The expected error of this model itself is {number(plain.error.mse, 4)}" in card
    held_out = replace(plain.error, rows=CHOSE)
    assert "may have helped to choose" in draw_card(replace(compared, error=held_out))
    given_one = draw_card(replace(compared, curve=None))
    assert "at the given penalty." in given_one
    mine = draw_card(replace(compared, comparison=(replace(pooled, name="this model"),)))
    assert "This model was fitted to the training rows only" in mine


def cells_of(card: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading, head included."""
    section = card.split(f"<h2>{title}</h2>")[1].split("<h2>")[0]
    lines = [re.findall("<t[hd].*?</t[hd]>", line) for line in re.findall("<tr.*?</tr>", section)]
    return [[re.sub("<[^>]*>", "", cell) for cell in line] for line in lines]


@pytest.mark.parametrize("standardise", [True, False])
def test_bars_are_as_long_as_the_numbers_under_their_own_head(standardise: bool) -> None:
    document = make_model(
        draw_sites("plain"), Settings(penalty=0.01, standardise=standardise), SCHEMA
    )
    assert len(document.coefficients) > 2
    card = draw_card(document)
    head, *lines = cells_of(card, "Coefficients")
    scales = ["per SD", "per unit"] if standardise else ["per unit"]
    # The second column holds the bars.
    assert head == ["", scales[0], *scales]
    shown = [float(line[2]) for line in lines]
    widths = [float(width) for width in re.findall(r'<rect class="c[01]".*?width="(.*?)"', card)]
    longest = max(map(abs, shown))
    expected = [abs(value) / longest * max(widths[: len(shown)]) for value in shown]
    np.testing.assert_allclose(widths[: len(shown)], expected, atol=0.05)
    assert shown == sorted(shown, key=abs, reverse=True)
    values = [float(line[-1]) for line in lines]
    np.testing.assert_allclose(values, [row.value for row in document.coefficients], rtol=1e-3)


@pytest.mark.parametrize("family", ["linear", "binomial"])
def test_terminal_and_card_tell_the_same_coefficients(family: str) -> None:
    settings = Settings(penalty=0.01, family=family)
    document = make_model(draw_sites("0/1", settings.loss), settings, SCHEMA)
    head, *lines = cells_of(draw_card(document), "Coefficients")
    reported = describe_model(document).splitlines()[-len(lines) - 1 :]
    assert re.split(" {2,}", reported[0].strip()) == head[2:]
    assert [line.split() for line in reported[1:]] == [[line[0], *line[2:]] for line in lines]


def test_terminal_and_card_tell_the_same_error_and_traffic(plain: ModelDocument) -> None:
    card = draw_card(plain)
    lines = describe_model(plain).splitlines()
    (error,) = (line for line in lines if line.startswith("mean squared error: "))
    reported = error.removeprefix("mean squared error: ").partition(",")[0]
    assert f"<div>Mean squared error<b>{reported}</b></div>" in card
    (sent,) = (line for line in lines if line.startswith("most sent by a site: "))
    reported = sent.removeprefix("most sent by a site: ")
    assert f"<div>Most sent by a site<b>{reported}</b></div>" in card


def test_the_certificate_says_whose_objective_it_bounds(plain: ModelDocument) -> None:
    relaxed = draw_card(replace(plain, procedure="relaxed Lasso"))
    section = relaxed.split("<h2>Certificate")[1].split("<h2>")[0]
    assert "The objective is that of the relaxed Lasso" in section


def test_shares_that_come_from_rounding_are_told_as_such(plain: ModelDocument) -> None:
    pooled = ComparedModel("pooled Lasso on the training rows", 3, 2.0, 0.1, 1e-10, 100)
    averaging = replace(pooled, name="averaging", above=0.00209)
    exact = replace(plain.certificate, gap=1e-16 * plain.certificate.objective)
    card = draw_card(replace(plain, comparison=(pooled, averaging), certificate=exact))
    assert "less than 0.000001% above the best possible objective" in card
    title = "Compared with averaging and with each site alone"
    assert [line[3] for line in cells_of(card, title)[1:]] == ["less than 0.001%", "0.209%"]
    assert "its column is the exact distance to the minimum, not a bound" in card


@pytest.mark.parametrize(
    ("share", "reported"),
    [
        (0.0, "less than 0.000001%"),
        (6.9e-9, "less than 0.000001%"),
        (1.2e-7, "at most 0.000012%"),
        (0.0068, "at most 0.68%"),
        (18.0, "at most 1800%"),
    ],
)
def test_terminal_card_and_file_tell_one_certificate_without_powers_of_ten(
    plain: ModelDocument, share: float, reported: str
) -> None:
    certificate = Certificate(objective=1 + share, gap=share)
    document = replace(plain, certificate=certificate)
    words = f"{reported} above the best possible objective"
    assert f"This model is <b>{words}</b>." in draw_card(document)
    assert f"certificate: {words}" in describe_model(document).splitlines()
    assert json.loads(document.to_json())["certificate"]["words"] == words


def test_ratios_beyond_a_thousandfold_are_bounds(plain: ModelDocument) -> None:
    pairs = [(90.0, 0.4), (-2000.0, -0.2), (800.0, 0.1), (np.log(20), 0.05)]
    rows = (
        Coefficient(name, float(value), standardised, mean=0.0, scale=standardised / value)
        for name, (value, standardised) in zip(COLUMNS, pairs, strict=True)
    )
    settings = replace(plain.settings, family="binomial")
    document = replace(plain, settings=settings, coefficients=tuple(rows))
    heads, lines = document.coefficient_table(10)
    assert heads[2:] == ["odds ratio per SD", "odds ratio per unit"]
    assert [line[2] for line in lines] == ["1.492", "0.8187", "1.105", "1.051"]
    assert [line[3] for line in lines] == [">1000", "<0.001", ">1000", "20"]
    assert "&lt;0.001" in draw_card(document)


def test_settings_are_told_in_words(plain: ModelDocument) -> None:
    settings = dict(cells_of(draw_card(plain), "Settings")[1:])
    assert settings["intercept"] == "yes"
    assert settings["l1 ratio"] == "1.0"
    assert settings["seed"] == "0"
    # What has no effect on this model is not told.
    assert not {"keep", "ties", "epochs"} & set(settings)


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
    cut = page.evaluate(
        """() => [...document.querySelectorAll('svg text')].filter(text => {
            const own = text.getBoundingClientRect();
            const whole = text.closest('svg').getBoundingClientRect();
            return own.left < whole.left || own.right > whole.right
                || own.top < whole.top || own.bottom > whole.bottom;
        }).map(text => text.textContent)"""
    )
    assert cut == []
    scrolled = page.evaluate(
        """() => [...document.querySelectorAll('.scroll')].filter(
            box => box.scrollWidth > box.clientWidth).length"""
    )
    assert scrolled == 0
    page.close()


@needs("browser")
def test_ratios_have_room_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    settings = Settings(penalty=0.01, family="binomial")
    document = make_model(draw_sites("0/1", settings.loss), settings, SCHEMA)
    write_model(tmp_path, document)
    page = browser.new_page(viewport={"width": 320, "height": 900})
    page.goto((tmp_path / "card.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator(".bars [data-head='odds ratio per SD']").first.is_visible()
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
    page.emulate_media(media="print", color_scheme="dark")
    on_paper = page.evaluate(ask)
    page.emulate_media(media="screen", color_scheme="light")
    assert on_screen != on_paper == page.evaluate(ask)
    page.close()


UNSURE = ColumnEstimate(
    name=COLUMNS[0],
    scale=50.0,
    value=-0.00338,
    error=0.5,
    low=-1.00338,
    high=1.00338,
    p_value=1e-39,
    adjusted=3e-39,
    heterogeneity=1e-20,
    i_squared=0.33,
    sites=(SiteEstimate("north", 0.1, -0.9, 1.1), SiteEstimate("<south>", -0.1, -1.1, 0.9)),
)


def test_a_group_is_named_on_the_card_and_on_screen(plain: ModelDocument) -> None:
    group = GroupEstimate(("<a>", "b", "c"), 0.9999, "b")
    trust = TrustDocument(level=0.95, rate=0.1, tests=9, groups=(group,))
    document = replace(plain, trust=trust)
    card = draw_card(document)
    text = describe_model(document)
    for shown in (card, text):
        assert "1 group of nearly collinear columns discovered" in shown
        assert "over 99.9%" in shown
    assert "&lt;a&gt;, b, c" in card
    assert "one or more of 3 nearly collinear columns: <a>, b, c" in text
    assert "in the model b represents them" in text


@pytest.mark.standard
@needs("browser")
def test_intervals_name_their_sites_and_are_whole_on_paper(
    browser: Browser, plain: ModelDocument, tmp_path: Path
) -> None:
    trust = TrustDocument(level=0.95, named=(UNSURE,))
    settings = replace(plain.settings, family="cox")
    write_model(tmp_path, replace(plain, settings=settings, trust=trust))
    # A4 without its margins.
    page = browser.new_page(viewport={"width": 688, "height": 1000})
    page.goto((tmp_path / "card.html").as_uri())
    page.emulate_media(media="print")
    assert "from top to bottom north, <south>." in page.inner_text("main")
    cells = [text.replace("\xa0", " ") for text in page.locator(".forest td").all_inner_texts()]
    assert cells[3:] == ["-1 to 1", "<0.0001", "0.845 (<0.001 to >1000)", "<0.0001, 33%"]
    ask = "box => box.scrollWidth - box.clientWidth"
    assert page.locator(".scroll:has(.forest)").evaluate(ask) <= 0
    page.close()
