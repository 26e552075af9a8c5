"""What a card assesses is the model that it shows, with every option that a fit has."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from fedlasso import InProcess, Ledger, Site
from fedlasso.families import find_family
from fedlasso.fitting import Settings
from fedlasso.fitting.examination.examine import Examining
from fedlasso.fitting.model import fit_model
from fedlasso.models import ModelDocument, describe_model, draw_card, make_model
from fedlasso.numerics import Array
from fedlasso.tables import Schema
from fedlasso.tables.columns import Column

pytestmark = pytest.mark.usefixtures("no_charts")

SHIFTS = np.array([0.0, 2.0, -3.0])


def open_records(X: Array, y: Array, settings: Settings) -> tuple[InProcess, Schema]:
    """Return three sites with every third row, and the columns' names."""
    names = tuple(f"x{k}" for k in range(X.shape[1]))
    intercept = find_family(settings.family).loss.intercept
    options = {"raw": True, "loss": settings.loss, "intercept": intercept, "columns": names}
    sites = [Site(f"s{j}", X[j::3], y[j::3], **options) for j in range(3)]  # type: ignore[arg-type]
    columns = tuple(Column(name, "number") for name in names)
    return InProcess(sites), Schema("y", columns, family=settings.family)


def make(X: Array, y: Array, settings: Settings, compare: bool = True) -> ModelDocument:
    federation, schema = open_records(X, y, settings)
    return make_model(federation, settings, schema, compare=compare)


def draw_shifted() -> tuple[Array, Array]:
    """Return rows of three sites whose mean responses differ."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((180, 4))
    noise = rng.standard_normal(180)
    return X, X[:, 0] - 0.5 * X[:, 1] + SHIFTS[np.arange(180) % 3] + noise


@pytest.mark.parametrize(
    "changes",
    [
        {"goal": "discoveries", "fdr": 0.2},
        {"goal": "discoveries", "level": 0.9},
        {"intervals": ("x0",), "level": 0.9},
        {"goal": "selection", "intervals": ("selected",), "level": 0.9},
        {"goal": "objective", "rule": "1se", "keep": ("x0",)},
        {"rule": "1se"},
        {"procedure": "CD", "epochs": 5},
        {"family": "binomial", "rule": "1se"},
    ],
    ids=str,
)
def test_a_card_is_drawn_with_every_option(changes: dict[str, Any]) -> None:
    X, y = draw_shifted()
    settings = Settings(**changes)
    if settings.family == "binomial":
        y = (y > y.mean()).astype(float)
    document = make(X, y, settings)
    assert document.assessment is not None
    assert [site.name for site in document.assessment.left_out] == ["s0", "s1", "s2"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"intervals": ("x0",)}, "the Lasso at the penalty with the smallest error on"),
        ({"goal": "objective", "rule": "1se", "intervals": ("x0",)}, "the sparsest model within"),
        ({"goal": "discoveries"}, "2 of 4 columns, discovered"),
        ({"goal": "selection", "intervals": ("selected",)}, "the Lasso at the given penalty"),
    ],
    ids=str,
)
def test_shifted_sites_have_a_second_fit_within_the_uploads(
    changes: dict[str, Any], why: str
) -> None:
    X, y = draw_shifted()
    document = make(X, y, Settings(**changes, uploads=400), compare=False)
    assert document.site_effects
    assert why in document.why
    assert document.certificate.relative_gap < 1e-6


def test_held_out_rows_never_were_said_to_judge_a_given_penalty() -> None:
    X, y = draw_shifted()
    chosen = make(X, y, Settings(intervals=("x0",), uploads=400))
    given = make(X, y, Settings(intervals=("x0",), penalty=0.1))
    assert chosen.error is not None
    assert given.error is not None
    assert "also chose the model" in chosen.error.rows
    assert "also chose" not in given.error.rows


@pytest.mark.parametrize("rule", ["min", "1se"])
def test_the_model_of_a_holdout_is_assessed_with_its_own_penalty(rule: Any) -> None:
    data = load_diabetes(scaled=False)
    X, y = data.data, data.target
    settings = Settings(validation=0.3, rule=rule)
    federation, _ = open_records(X, y, settings)
    model = fit_model(federation, settings)
    assert model.method != "Lasso"
    examining = Examining.of(Ledger(federation), model)
    models = examining.find_models()
    used = model.coefficients != 0
    assert not used.all()
    # Columns that the model leaves out are in none of the models of folds.
    assert not models.coefficients[~used].any() or rule == "min"
    document = make(X, y, settings)
    lasso = make(X, y, Settings(penalty=document.path_penalty))
    assert document.assessment is not None
    assert lasso.assessment is not None
    assert document.assessment.error != lasso.assessment.error
    assert "the penalty of each column that all rows have chosen" in document.assessment.how
    # Without a card it is the error of the model on held-out rows, and not of the Lasso.
    alone = make(X, y, settings, compare=False)
    assert alone.error is not None
    validation = model.fit.validation
    assert validation is not None
    assert alone.error.mse == validation.error[model.fit.chosen]


@pytest.mark.parametrize("family", ["linear", "binomial"])
def test_discoveries_are_not_given_the_performance_of_their_lasso(family: str) -> None:
    X, y = draw_shifted()
    if family == "binomial":
        y = (X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(180) > 0).astype(float)
    settings = Settings(goal="discoveries", family=family, site_effects=False)
    document = make(X, y, settings)
    assert document.trust is not None
    assert document.trust.rate is not None
    assert document.error is None
    assert document.assessment is not None
    assert "by the Lasso at the chosen penalty" in document.assessment.how
    assert "itself was not assessed" in document.assessment.how
    text = describe_model(document)
    name = "deviance per row" if family == "binomial" else "mean squared error"
    assert f"{name} of the Lasso that the discoveries come from: " in text
    card = draw_card(document)
    facts = card[: card.index("<h2")]
    assert "explained of the Lasso" in facts or "R² of the Lasso" in facts
    assert "penalised odds ratio" not in facts
    plain = draw_card(make(X, y, replace(settings, goal="objective")))
    assert "of the Lasso" not in plain[: plain.index("<h2")]


def test_a_column_that_is_the_outcome_is_named_and_not_divided_by() -> None:
    X, y = draw_shifted()
    y = y.round(3)
    document = make(np.column_stack([X, 3 * y + 1]), y, Settings())
    assert document.assessment is not None
    assert document.warnings is not None
    assert any("may contain" in text or "R^2 is 1.000" in text for text in document.warnings)


def test_without_a_penalty_no_ratio_is_called_penalised() -> None:
    X, y = draw_shifted()
    y = (y > y.mean()).astype(float)
    for penalty, penalised in ((0.0, False), (0.01, True)):
        document = make(X, y, Settings(family="binomial", penalty=penalty), compare=False)
        assert ("penalised odds ratio" in draw_card(document)) is penalised


def test_a_lasso_is_not_said_to_be_below_the_lasso() -> None:
    rng = np.random.default_rng(10)
    X = rng.standard_normal((240, 4))
    y = X[:, 0] + 0.4 * X[:, 1] + rng.standard_normal(240)
    document = make(X, y, Settings(), compare=False)
    assert document.procedure == "Lasso"
    assert "Lasso with 4 active coefficients, the smallest error before" in document.why
    assert "below the Lasso" not in document.why


def test_a_model_refitted_to_all_rows_states_its_own_columns() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((450, 6))
    parts = [X[150 * k : 150 * (k + 1)] for k in range(3)]
    noise = 1.3 * rng.standard_normal(450)
    y = X[:, 0] - 0.7 * X[:, 1] + SHIFTS[np.arange(450) // 150] + noise
    names = tuple(f"x{k}" for k in range(6))
    for seed in range(4):
        settings = Settings(validation=0.3, seed=seed)
        sites = [
            Site(f"s{k}", part, y[150 * k : 150 * (k + 1)], columns=names, raw=True)
            for k, part in enumerate(parts)
        ]
        schema = Schema("y", tuple(Column(name, "number") for name in names))
        document = make_model(InProcess(sites), settings, schema, compare=True)
        assert f"with {len(document.coefficients)} active coefficients" in document.why
        # Card and terminal have one error: that of the assessment.
        assert document.error is not None
        assert document.assessment is not None
        assert document.assessment.error is not None
        assert document.error.mse == document.assessment.error.value


def test_a_procedure_far_from_the_optimum_has_not_its_performance() -> None:
    X, y = draw_shifted()
    document = make(X, y, Settings(procedure="CD", penalty=0.02))
    assert document.certificate.relative_gap > 1e-3
    assert document.error is None
    assert document.assessment is not None
    assert "farther from that optimum, was not assessed" in document.assessment.how
    assert "mean squared error of the Lasso at this penalty: " in describe_model(document)
    card = draw_card(document)
    assert "R² of the Lasso" in card[: card.index("<h2")]
