"""What a model is compared with, what that costs and reveals, and where sites refuse it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from helpers.models.files import draw_frame, with_settings

from fedlasso import FedLassoError, InProcess, Ledger, Site
from fedlasso.errors import Refused
from fedlasso.federation import Around, Reply, Request
from fedlasso.fitting import Settings
from fedlasso.fitting.examination.comparison import AVERAGE, OWN_COLUMNS, POOLED, THIS_MODEL
from fedlasso.models import (
    ModelDocument,
    describe_model,
    draw_card,
    make_model,
    read_document,
    write_model,
)
from fedlasso.models.document import NESTED
from fedlasso.models.numbers import bytes_of, capital
from fedlasso.sites import ErrorAt
from fedlasso.tables import Schema
from fedlasso.tables.columns import Column

pytestmark = pytest.mark.usefixtures("no_charts")

R = TypeVar("R", bound=Reply)
OWN_MODEL = "a site's own model after local steps, weighted by its rows"
OWN_LASSO = "a site's own Lasso, weighted by its rows"


@pytest.mark.standard
def test_costs_are_labelled_alike_on_screen_card_and_in_the_record(
    document: ModelDocument, opened: tuple[InProcess, Schema]
) -> None:
    ledger = Ledger(opened[0])
    again = make_model(*with_settings((ledger, opened[1]), Settings()), compare=True)
    whole = max(ledger.costs.total(None, site.name).upload for site in again.sites)
    assert again.most_sent["in all"] == whole
    assert list(again.most_sent) == ["for the fit", "for this card", "in all"]
    record = json.loads(again.to_json())
    trips = record["round_trips"], record["examination_trips"]
    assert sum(trips) == ledger.costs.trips
    entries = sum(site.rows for site in again.sites) * again.columns
    card = draw_card(again)
    pairs = zip(again.most_sent.items(), (*trips, sum(trips)), strict=True)
    for (what, sent), count in pairs:
        shown = (
            f"{what}: {count} round trips; each site sent at most {sent // 8:,} numbers "
            f"({bytes_of(sent)}) about {entries:,} entries ({sent / 8 / entries:.0%})"
        )
        assert f"cost {shown}" in describe_model(again)
        assert f"{capital(shown)}." in card
    for what in (*again.most_sent, "second moments"):
        assert f"<th>{what}</th>" in card
    assert json.loads(again.to_json())["most_sent"] == again.most_sent


def test_everything_that_is_sent_for_the_card_is_counted(
    opened: tuple[InProcess, Schema],
) -> None:
    # At a given penalty the card asks for a path and for errors at every site as well.
    ledger = Ledger(opened[0])
    document = make_model(*with_settings((ledger, opened[1]), Settings(penalty=0.05)), compare=True)
    assert document.examination_sent is not None
    for site in document.sites:
        whole = ledger.costs.total(None, site.name).upload
        assert site.sent_in_all + document.examination_sent[site.name] == whole


def test_each_compared_model_is_judged_by_folds_and_billed(document: ModelDocument) -> None:
    assert document.comparison is not None
    mine, pooled, averaged, *alone = document.comparison
    assert [row.name for row in (mine, pooled, averaged)] == [THIS_MODEL, POOLED, AVERAGE]
    assert [row.name for row in alone] == ["site0 alone", "site1 alone", "site2 alone"]
    assert mine.sent == document.most_sent["for the fit"]
    assert averaged.sent == 8 * document.columns
    assert all(row.sent == 0 for row in alone)
    assert document.error is not None
    assert document.error.rows == NESTED
    assert mine.mse == pytest.approx(document.error.mse, rel=1e-6)
    assert all(row.mse is not None and row.se is not None for row in document.comparison)
    assert pooled.above == 0
    assert all(row.above is not None and row.above > 0 for row in (averaged, *alone))


def test_a_model_of_the_training_rows_alone_is_compared_without_an_error(
    opened: tuple[InProcess, Schema],
) -> None:
    document = make_model(*with_settings(opened, Settings(procedure="ST")), compare=True)
    assert document.comparison is not None
    mine, pooled, *_ = document.comparison
    assert (mine.name, pooled.name) == (THIS_MODEL, POOLED)
    assert mine.mse is None
    assert mine.sent == document.most_sent["for the fit"]
    assert "This model was not fitted without each fold" in draw_card(document)


def two_of_twelve() -> tuple[InProcess, Schema]:
    """Three sites at which two of twelve columns have an effect."""
    rng = np.random.default_rng(0)
    parts = []
    for name in ("north", "south", "west"):
        X = rng.standard_normal((150, 12))
        y = X[:, 2] - 0.8 * X[:, 7] + rng.standard_normal(150)
        parts.append(Site(name, X, y, columns=tuple("abcdefghijkl"), raw=True))
    schema = Schema("y", tuple(Column(name, "number") for name in "abcdefghijkl"))
    return InProcess(parts), schema


@pytest.mark.standard
def test_the_columns_of_a_model_have_intervals_in_every_telling(tmp_path: Path) -> None:
    sites, schema = two_of_twelve()
    document = make_model(sites, Settings(goal="selection", intervals=("selected",)), schema)
    assert document.trust is not None
    reported = document.trust.selected
    assert sorted(row.name for row in reported) == ["c", "h"]
    assert all(row.low < row.value < row.high for row in reported)
    assert "selected: c " in describe_model(document)
    assert "P(effect)" in draw_card(document)
    write_model(tmp_path / "model", document)
    assert read_document(tmp_path / "model" / "model.json").trust == document.trust


@pytest.mark.standard
def test_a_model_that_is_no_lasso_is_compared_by_its_columns() -> None:
    """A relaxed Lasso has a large penalty, at which the Lasso itself predicts badly."""
    sites, schema = two_of_twelve()
    for goal in ("selection", "discoveries"):
        settings = Settings(goal=goal, site_effects=False)
        document = make_model(sites, settings, schema, compare=True)
        assert document.comparison is not None
        mine, pooled, *_ = document.comparison
        assert mine.name == (THIS_MODEL if goal == "selection" else OWN_COLUMNS)
        assert mine.active == len(document.coefficients) == 2
        assert pooled.name == POOLED
        assert mine.mse is not None
        assert pooled.mse is not None
        if goal == "selection":
            assert mine.mse < pooled.mse
        # A site of a third of the rows does not do better than all together.
        assert not [text for text in document.warnings or () if "alone predicts" in text]
        refitted = "columns are refitted without each fold, with almost no" in draw_card(document)
        assert refitted is (goal == "discoveries")


@pytest.mark.standard
def test_without_a_comparison_there_are_warnings_and_a_nested_error(
    opened: tuple[InProcess, Schema], document: ModelDocument
) -> None:
    plain = make_model(*with_settings(opened, Settings()))
    assert plain.error is not None
    assert document.error is not None
    # Moments of folds and rows give the same error; the card's fraction is of all rows' variance.
    assert plain.error.mse == pytest.approx(document.error.mse, rel=1e-6)
    assert plain.error.rows == document.error.rows
    assert plain.warnings == ()
    nothing = make_model(*with_settings(opened, Settings(penalty=100.0)))
    assert nothing.warnings == ("no column is selected: every row gets the same prediction",)
    # What is found without a question comes first.
    examined = make_model(*with_settings(opened, Settings(penalty=100.0)), compare=True)
    assert examined.warnings is not None
    assert examined.warnings[0] == nothing.warnings[0]


def test_errors_per_site_are_those_of_its_rows(document: ModelDocument) -> None:
    assert document.site_errors is not None
    b = dict.fromkeys(document.schema.encoded, 0.0)
    b |= {row.name: row.value for row in document.coefficients}
    for j, (error, rows) in enumerate(zip(document.site_errors, (60, 40, 30), strict=True)):
        frame = draw_frame(rows, seed=j)
        for level in ("main", "west"):
            frame[f"ward={level}"] = (frame["ward"] == level).astype(float)
        residual = frame["y"] - frame[list(b)] @ list(b.values()) - document.intercept
        assert (error.name, error.rows) == (f"site{j}", rows)
        assert error.mse == pytest.approx(float((residual**2).mean()))


def test_a_site_that_does_better_alone_is_named() -> None:
    # Each site alone chooses its own penalty, and the one that is given is far too large.
    rng = np.random.default_rng(0)
    parts = []
    for name, slope in (("north", 3.0), ("south", 3.0), ("west", -9.0)):
        X = rng.standard_normal((200, 3))
        y = slope * X[:, 0] + 0.1 * rng.standard_normal(200)
        parts.append(Site(name, X, y, columns=("a", "b", "c"), raw=True))
    schema = Schema("y", tuple(Column(name, "number") for name in "abc"))
    north_and_south = make_model(InProcess(parts[:2]), Settings(penalty=2.0), schema, compare=True)
    reported = [text for text in north_and_south.warnings or () if "alone predicts better" in text]
    assert [text.split(" predicts")[0] for text in reported] == [
        "site north alone", "site south alone"
    ]  # fmt: skip
    assert "of the pooled Lasso" in reported[0]
    # A site with another rule does worse on the rows of all sites.
    everybody = make_model(InProcess(parts), Settings(), schema, compare=True)
    assert not any("west alone predicts better" in text for text in everybody.warnings or ())


@pytest.mark.parametrize(
    ("settings", "sends_models"),
    [(Settings(penalty=0.1), False), (Settings(penalty=0.1, procedure="CD"), True)],
    ids=str,
)
def test_a_card_lists_what_the_questions_asked_reveal(
    opened: tuple[InProcess, Schema], settings: Settings, sends_models: bool
) -> None:
    document = make_model(*with_settings(opened, settings))
    assert document.revealed is not None
    assert document.revealed.card == ()
    assert (OWN_MODEL in document.revealed.fit) is sends_models
    card = draw_card(document)
    assert ("own model" in card) is sends_models
    assert "sums, never" not in card
    assert all(text in card.replace("&#x27;", "'") for text in document.revealed.fit)


def test_a_compared_model_says_that_sites_sent_models_of_their_own(
    document: ModelDocument,
) -> None:
    assert document.revealed is not None
    assert OWN_LASSO not in document.revealed.fit
    assert OWN_LASSO in document.revealed.card


class Reluctant(Around):
    """A federation whose sites refuse one question."""

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if isinstance(request, ErrorAt):
            raise Refused("site 'site1': that is not told here")
        return self.inner.replies(request)


class Reserved(Around):
    """A federation whose sites refuse to send their own Lasso."""

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if request.discloses.reveals == OWN_LASSO:
            raise Refused("site 'site1': no model leaves")
        return self.inner.replies(request)


@pytest.mark.full
def test_a_refused_comparison_leaves_the_model_standing(
    opened: tuple[InProcess, Schema],
) -> None:
    reluctant = Reluctant(opened[0])
    with pytest.raises(FedLassoError, match="not told here"):
        make_model(reluctant, Settings(), opened[1], compare=True)
    document = make_model(reluctant, Settings(), opened[1], compare=True, tolerant=True)
    assert document.no_site_errors == "site 'site1': that is not told here"
    assert document.site_errors is None
    assert document.comparison is not None
    plain = make_model(opened[0], Settings(), opened[1])
    assert document.coefficients == plain.coefficients
    reported = '<h2>Error per site</h2><p class="soft">Left out: site &#x27;site1&#x27;: that is'
    assert '<h2>Error per site</h2><p class="soft">On held-out rows' in draw_card(document)
    assert reported in draw_card(replace(document, assessment=None))


@pytest.mark.standard
def test_a_refused_fit_of_a_sites_own_leaves_its_errors_standing(
    opened: tuple[InProcess, Schema],
) -> None:
    document = make_model(Reserved(opened[0]), Settings(), opened[1], compare=True, tolerant=True)
    assert document.not_compared == "site 'site1': no model leaves"
    assert document.comparison is None
    assert document.site_errors is not None
    assert "Left out: site &#x27;site1&#x27;: no model leaves." in draw_card(document)
