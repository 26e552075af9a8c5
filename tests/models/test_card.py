"""What the card states: warnings, errors, penalties, certificates, comparisons and settings."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers.cards import COLUMNS, SCHEMA, cells_of, draw_sites

from fedlasso import InProcess, Site
from fedlasso.fitting import Settings
from fedlasso.fitting.examination.comparison import ComparedModel, SiteError
from fedlasso.models import ModelDocument, describe_model, draw_card, make_model
from fedlasso.models.document import CHOSE
from fedlasso.models.numbers import number
from fedlasso.numerics import Certificate
from fedlasso.tables import Schema
from fedlasso.tables.columns import Column


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
    assert document.warnings[0].startswith("the search ended too early")
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
    curve = replace(plain.curve, nzero=(16,) * len(plain.curve.active))
    count = len(plain.coefficients)
    card = draw_card(replace(plain, curve=curve))
    assert f"the Lasso has 16 columns, and this model has {count}." in card


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
    pooled = ComparedModel("pooled Lasso", 3, 2.0, 0.1, 0.0, 100)
    compared = replace(plain, comparison=(pooled,))
    card = draw_card(compared)
    assert "represents this model, at its penalty, which all rows chose." in card
    assert plain.error is not None
    assert f"The expected error of this model itself is {number(plain.error.mse, 4)}" in card
    given_one = draw_card(replace(compared, curve=None))
    assert "at the given penalty." in given_one
    mine = draw_card(replace(compared, comparison=(replace(pooled, name="this model"),)))
    assert "This model was chosen and fitted without each fold." in mine


def test_terminal_and_card_tell_the_same_error_and_traffic(plain: ModelDocument) -> None:
    card = draw_card(plain)
    lines = describe_model(plain).splitlines()
    (error,) = (line for line in lines if line.startswith("mean squared error: "))
    reported = error.removeprefix("mean squared error: ").partition(",")[0]
    assert f"<div>Mean squared error<b>{reported}</b></div>" in card
    (sent,) = (line for line in lines if line.startswith("cost for the fit: "))
    assert f"For the fit: {sent.removeprefix('cost for the fit: ')}." in card


def test_the_certificate_says_whose_objective_it_bounds(plain: ModelDocument) -> None:
    relaxed = draw_card(replace(plain, procedure="relaxed Lasso"))
    section = relaxed.split("<h2>Certificate")[1].split("<h2>")[0]
    assert "The objective is that of the relaxed Lasso" in section


def test_shares_that_come_from_rounding_are_told_as_such(plain: ModelDocument) -> None:
    pooled = ComparedModel("pooled Lasso", 3, 2.0, 0.1, 1e-10, 100)
    averaging = replace(pooled, name="average of the sites' own fits", above=0.00209)
    exact = replace(plain.certificate, gap=1e-16 * plain.certificate.objective)
    card = draw_card(replace(plain, comparison=(pooled, averaging), certificate=exact))
    assert "less than 0.000001% above the best possible objective" in card
    title = "Compared with each site alone"
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


def test_settings_are_told_in_words(plain: ModelDocument) -> None:
    settings = dict(cells_of(draw_card(plain), "Settings")[1:])
    assert settings["intercept"] == "yes"
    assert settings["l1 ratio"] == "1.0"
    assert settings["seed"] == "0"
    # What has no effect on this model is not told.
    assert not {"keep", "ties", "epochs"} & set(settings)
