"""A model is made and told in one place: what it says of itself is what was done."""

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.models.files import with_settings, write_sites

from fedlasso import FederatedLasso, InProcess, Site
from fedlasso.fitting import Settings
from fedlasso.models import (
    FileSource,
    ModelDocument,
    describe_model,
    draw_card,
    make_model,
    open_sites,
    read_document,
    write_model,
)
from fedlasso.tables import Schema

pytestmark = pytest.mark.usefixtures("no_charts")


@pytest.mark.usefixtures("charts")
def test_what_is_written_is_read_back_and_written_again(
    document: ModelDocument, tmp_path: Path
) -> None:
    write_model(tmp_path / "one", document)
    again = read_document(tmp_path / "one" / "model.json")
    assert again == document
    write_model(tmp_path / "two", again)
    for name in ("coefficients.csv", "card.html", "model.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.standard
@pytest.mark.parametrize("goal", ["prediction", "selection"])
def test_a_goal_names_one_penalty_and_one_family(
    opened: tuple[InProcess, Schema], goal: str
) -> None:
    document = make_model(*with_settings(opened, Settings(goal=goal)))
    assert document.curve is not None
    assert document.path_penalty == document.curve.penalties[document.curve.chosen]
    assert FederatedLasso(goal).fit(opened[0]).penalty_ == document.penalty
    assert f"penalty (lambda) {document.penalty:.4g}" in describe_model(document)
    card = draw_card(document)
    assert f"Penalty λ = {document.penalty:.4g}" in card
    assert f"goal '{goal}': {document.procedure} with" in document.why
    assert document.settings.goal == goal
    assert f"{document.procedure} with" in card.split("<h2>")[0]


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        (Settings(goal="prediction", cv=3), "the smallest error on 3 folds"),
        (
            Settings(goal="selection", cv=3),
            "the columns that 25% of the fits to half of the rows use, cross-validated on 3 folds",
        ),
        (Settings(goal="objective", cv=3), "the smallest error on 3 folds"),
        (Settings(goal="selection", rule="min", cv=4), "the smallest error on 4 folds"),
        (Settings(cv=3), "the smallest error on 3 folds"),
    ],
    ids=str,
)
def test_folds_keep_the_goal_whose_families_they_judge(
    opened: tuple[InProcess, Schema], settings: Settings, reported: str
) -> None:
    document = make_model(*with_settings(opened, settings))
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
    why = f"goal '{goal}': {document.procedure} with {active} active coefficients, {reported}"
    assert document.why == f"{why}, fitted to all rows"
    assert document.why in describe_model(document)
    assert f"second moments of {settings.cv} folds" in document.plan
    assert f"<td>{goal}</td>" in draw_card(document)


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        (
            Settings(goal="prediction", procedure="CD"),
            "(not 'prediction': a procedure fits a Lasso)",
        ),
        (
            Settings(goal="selection", procedure="CD"),
            "the sparsest model within one standard error on 20 folds",
        ),
        (Settings(procedure="CD", epochs=2), "with the smallest error on 20 folds, by CD in"),
        (Settings(goal="objective", validation=0.2), "on held-out rows, from second moments in"),
        (Settings(procedure="Secant", cv=3), "the smallest error on 3 folds, by Secant in"),
        (Settings(procedure="CD", validation=0.25), "the smallest error on held-out rows, by CD"),
        (Settings(penalty=0.1), "goal 'objective': the Lasso at the given penalty, from second"),
    ],
    ids=str,
)
def test_a_penalty_or_a_procedure_is_told_as_the_lasso_it_fits(
    opened: tuple[InProcess, Schema], settings: Settings, reported: str
) -> None:
    document = make_model(*with_settings(opened, settings))
    assert document.settings == replace(settings, goal="objective")
    assert document.procedure == (settings.procedure or "Moments")
    assert reported in document.why
    assert reported in describe_model(document)
    assert "<td>objective</td>" in draw_card(document)


@pytest.mark.parametrize("goal", [None, "prediction", "selection"])
def test_a_goal_that_the_lasso_serves_alone_says_why(
    opened: tuple[InProcess, Schema], goal: str | None
) -> None:
    settings = Settings(goal=goal, keep=("age",))
    document = make_model(*with_settings(opened, settings))
    name = goal or "prediction"
    assert document.settings.goal == name
    alone = "the Lasso alone: adaptive and relaxed models need a linear model without"
    assert document.why.startswith(f"goal {name!r} ({alone}")


def test_a_goal_that_named_intervals_replace_is_notified(opened: tuple[InProcess, Schema]) -> None:
    said: list[str] = []
    make_model(*with_settings(opened, Settings(intervals=("age",))), notify=said.append)
    why = "intervals of named columns start from the Lasso"
    assert said[0] == f"goal 'objective' instead of 'prediction': {why}"


def test_more_uploads_are_not_advised_where_they_do_not_help(
    opened: tuple[InProcess, Schema],
) -> None:
    settings = Settings(procedure="CD", epochs=5, penalty=0.05, uploads=40)
    warnings = make_model(*with_settings(opened, settings)).warnings or ()
    (short,) = (text for text in warnings if text.startswith("not the pooled Lasso"))
    assert short.endswith("more uploads may not help CD; without --procedure the fit reaches it")


def test_splits_depend_on_the_records_and_the_seed_not_on_file_names(tmp_path: Path) -> None:
    files = write_sites(tmp_path)
    # The order of the sites changes with the names.
    renamed = [path.rename(tmp_path / f"{8 - k}{path.suffix}") for k, path in enumerate(files)]
    assert len(renamed) == 3
    again = write_sites(tmp_path)
    splits = []
    for paths in (again, renamed, renamed[::-1]):
        federation, _ = open_sites(FileSource(tuple(map(str, paths)), "y"))
        sites = [site for site in federation._members.values() if isinstance(site, Site)]
        own = {site.rows: site.draw.fold_rows("folds 5 0", site.rows) for site in sites}
        splits.append([fold.tolist() for rows in sorted(own) for fold in own[rows]])
    assert splits[0] == splits[1] == splits[2]
