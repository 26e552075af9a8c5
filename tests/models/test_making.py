"""A model is made and told in one place: what it says of itself is what was done."""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from models.files import write_sites

from fedlasso import FederatedLasso, FedLassoError, InProcess, Ledger
from fedlasso.federation import Around, Reply, Request
from fedlasso.models import (
    FileSource,
    ModelDocument,
    Settings,
    describe_model,
    draw_card,
    make_model,
    open_sites,
    read_document,
    write_model,
)
from fedlasso.models.page import number
from fedlasso.sites import ErrorAt
from fedlasso.tables import Schema

R = TypeVar("R", bound=Reply)
OWN_MODEL = "a site's own model after local steps, weighted by its rows"
OWN_LASSO = "a site's own Lasso, weighted by its rows"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[InProcess, Schema]:
    files = write_sites(tmp_path_factory.mktemp("sites"))
    return open_sites(FileSource(tuple(map(str, files)), "y"))


@pytest.fixture(scope="module")
def document(opened: tuple[InProcess, Schema]) -> ModelDocument:
    return make_model(*_with(opened, Settings()), compare=True)


def _with(
    opened: tuple[InProcess, Schema], settings: Settings
) -> tuple[InProcess, Settings, Schema]:
    return opened[0], settings, opened[1]


def test_what_is_written_is_read_back_and_written_again(
    document: ModelDocument, tmp_path: Path
) -> None:
    write_model(tmp_path / "one", document)
    again = read_document(tmp_path / "one" / "model.json")
    assert again == document
    write_model(tmp_path / "two", again)
    for name in ("coefficients.csv", "card.html", "model.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("goal", ["prediction", "selection"])
def test_a_goal_names_one_penalty_and_one_family(
    opened: tuple[InProcess, Schema], goal: str
) -> None:
    document = make_model(*_with(opened, Settings(goal=goal)))  # type: ignore[arg-type]
    assert document.curve is not None
    assert document.penalty == document.curve.penalties[document.curve.chosen]
    assert FederatedLasso(goal).fit(opened[0]).penalty_ == document.penalty
    assert f"penalty {document.penalty:.4g}" in describe_model(document)
    card = draw_card(document)
    assert f"<b>{number(document.penalty)}</b>" in card
    assert f"goal '{goal}': {document.procedure} with" in document.why
    assert document.settings.goal == goal
    assert f"{document.procedure} with" in card.split("<h2>")[0]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (Settings(goal="prediction", cv=3), "the smallest error on 3 folds"),
        (
            Settings(goal="selection", cv=3),
            "the sparsest Lasso within one standard error on 3 folds",
        ),
        (Settings(goal="objective", cv=3), "the smallest error on 3 folds"),
        (Settings(goal="selection", rule="min", cv=4), "the smallest error on 4 folds"),
        (Settings(cv=3), "the smallest error on 3 folds"),
    ],
    ids=str,
)
def test_folds_keep_the_goal_whose_families_they_judge(
    opened: tuple[InProcess, Schema], settings: Settings, told: str
) -> None:
    document = make_model(*_with(opened, settings))
    goal = settings.goal or "prediction"
    assert document.settings == replace(settings, goal=goal)
    families = {
        "prediction": ("Lasso", "adaptive Lasso", "elastic net"),
        "selection": ("Lasso",),
        "objective": ("Lasso",),
    }[goal]
    family = document.procedure.removeprefix("relaxed ")
    assert family in families
    assert document.procedure == family or goal != "objective"
    active = sum(row.value != 0 for row in document.coefficients)
    why = f"goal '{goal}': {document.procedure} with {active} active coefficients, {told}"
    assert document.why == f"{why}, fitted to all rows"
    assert document.why in describe_model(document)
    assert f"second moments of {settings.cv} folds" in document.plan
    assert f"<td>{goal}</td>" in draw_card(document)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (Settings(procedure="CD", epochs=2), "the smallest error on 20 folds, by CD in"),
        (Settings(procedure="Secant", cv=3), "the smallest error on 3 folds, by Secant in"),
        (
            Settings(goal="selection", procedure="CD"),
            "goal 'objective' (not 'selection': a procedure fits a Lasso): the Lasso at the "
            "penalty with one standard error's sparsest model on 20 folds, by CD in",
        ),
        (Settings(procedure="CD", validation=0.25), "the smallest error on held-out rows, by CD"),
        (Settings(penalty=0.1), "goal 'objective': the Lasso at the given penalty, by Moments in"),
    ],
    ids=str,
)
def test_procedures_are_told_as_the_lasso_they_fit(
    opened: tuple[InProcess, Schema], settings: Settings, told: str
) -> None:
    document = make_model(*_with(opened, settings))
    assert document.settings == replace(settings, goal="objective")
    assert document.procedure == (settings.procedure or "Moments")
    assert told in document.why
    assert told in describe_model(document)
    assert "<td>objective</td>" in draw_card(document)


def test_everything_that_is_sent_for_the_card_is_counted(
    opened: tuple[InProcess, Schema],
) -> None:
    # At a given penalty the card asks for a path and for errors at every site as well.
    ledger = Ledger(opened[0])
    document = make_model(*_with((ledger, opened[1]), Settings(penalty=0.05)), compare=True)  # type: ignore[arg-type]
    assert document.examination_sent is not None
    for site in document.sites:
        whole = ledger.costs.total(None, site.name).upload
        assert site.sent_in_all + document.examination_sent[site.name] == whole


def test_each_compared_model_is_billed_with_what_it_cost(
    opened: tuple[InProcess, Schema],
) -> None:
    # Held-out rows judge its candidates, so it is trained on the rows that the others are.
    document = make_model(*_with(opened, Settings(procedure="DA")), compare=True)
    assert document.comparison is not None
    mine, pooled, *_ = document.comparison
    assert (mine.name, pooled.name) == ("this model", "pooled Lasso on the training rows")
    assert mine.sent == document.most_sent
    # A few gradients at one penalty cost less than folds and 300 rounds.
    assert 0 < pooled.sent < mine.sent
    assert all(row.sent == 0 for row in document.comparison if row.name.endswith(" alone"))


def test_a_model_that_has_seen_every_row_is_not_judged_on_some(document: ModelDocument) -> None:
    assert document.rows.held_out == (0, 0)
    assert document.comparison is not None
    pooled, *others = document.comparison
    assert pooled.name == "pooled Lasso on the training rows"
    assert all(row.name != "this model" for row in others)
    assert all(row.sent == 0 for row in others if row.name.endswith(" alone"))
    # Its own error is that of models chosen and fitted without the rows that they predict.
    assert document.error is not None
    assert document.error.mse > 0


@pytest.mark.parametrize(
    ("settings", "sends_models"),
    [(Settings(penalty=0.1), False), (Settings(penalty=0.1, procedure="CD"), True)],
    ids=str,
)
def test_a_card_lists_what_the_questions_asked_reveal(
    opened: tuple[InProcess, Schema], settings: Settings, sends_models: bool
) -> None:
    document = make_model(*_with(opened, settings))
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
    assert not {OWN_MODEL, OWN_LASSO} & set(document.revealed.fit)
    assert {OWN_MODEL, OWN_LASSO} <= set(document.revealed.card)


class Reluctant(Around):
    """A federation whose sites refuse one question."""

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if isinstance(request, ErrorAt):
            raise FedLassoError("site 'site1': that is not told here")
        return self.inner.replies(request)


def test_a_refused_comparison_leaves_the_model_standing(
    opened: tuple[InProcess, Schema],
) -> None:
    reluctant = Reluctant(opened[0])
    with pytest.raises(FedLassoError, match="not told here"):
        make_model(reluctant, Settings(), opened[1], compare=True)
    document = make_model(reluctant, Settings(), opened[1], compare=True, tolerant=True)
    assert document.not_compared == "site 'site1': that is not told here"
    assert document.comparison is None
    plain = make_model(opened[0], Settings(), opened[1])
    assert document.coefficients == plain.coefficients
    assert "Left out: site &#x27;site1&#x27;: that is not told here." in draw_card(document)
