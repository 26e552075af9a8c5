"""Inference about responses that a few columns predict nearly or quite without error."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from fedlasso import FederatedLogisticLasso, InProcess, Site
from fedlasso.errors import CannotFit
from fedlasso.families import find_family
from fedlasso.fitting import Model, Settings, fit_model
from fedlasso.fitting.inference.debiased import Start
from fedlasso.fitting.inference.infer import UNBOUNDED
from fedlasso.models import to_trust_document
from fedlasso.numerics import L1, Array


def three_sites(X: Array, y: Array, loss: str = "binomial") -> InProcess:
    return InProcess(
        [Site(str(k), X[k::3], y[k::3], loss=loss, intercept=True, raw=True) for k in range(3)]
    )


@pytest.fixture(scope="module")
def nearly() -> Model:
    X, y = load_breast_cancer(return_X_y=True)
    settings = Settings(family="binomial", penalty=0.0054, intervals=("selected",))
    return fit_model(three_sites(X, y), settings)


@pytest.mark.standard
def test_intervals_of_nearly_separated_classes_do_not_contradict_the_lasso(nearly: Model) -> None:
    trust = nearly.trust
    assert trust is not None
    assert trust.selected is not None
    lasso = nearly.fit.coefficients[trust.selected.columns]
    low, high = trust.selected.intervals(0.95).T
    assert (low <= lasso).all()
    assert (lasso <= high).all()
    # Unshrunk effects are larger than those of the Lasso.
    assert np.abs(trust.selected.values).sum() > np.abs(lasso).sum()


@pytest.mark.standard
def test_columns_that_predict_nearly_every_class_are_discovered(nearly: Model) -> None:
    assert nearly.trust is not None
    assert nearly.trust.effects is not None
    columns, groups = nearly.trust.effects.discover(0.1)
    assert columns.sum() + len(groups) >= 2


@pytest.mark.standard
def test_the_unknown_part_of_a_predictor_allows_for_correlated_columns(nearly: Model) -> None:
    # Of collinear columns only the sum of the effects is known.
    assert nearly.trust is not None
    assert nearly.trust.effects is not None
    effects = nearly.trust.effects
    assert 0 < effects.variance < effects.variances.sum() / 4


def separated() -> InProcess:
    X = np.random.default_rng(1).standard_normal((150, 6))
    y = (X[:, 0] + X[:, 1] > 0).astype(float)
    X[:, 0] += np.where(y > 0, 0.5, -0.5)
    return three_sites(X, y)


def test_separated_classes_have_no_intervals_and_one_sentence_says_why() -> None:
    settings = Settings(family="binomial", penalty=1e-3, intervals=("selected", "x0"))
    trust = fit_model(separated(), settings).trust
    assert trust is not None
    assert trust.selected is None
    assert trust.named is None
    (note,) = trust.notes
    assert note.startswith("no intervals: a few columns predict nearly every response (separation)")


def test_separated_classes_have_no_discoveries() -> None:
    settings = Settings(family="binomial", penalty=1e-3, goal="discoveries")
    with pytest.raises(
        CannotFit, match=r"no discoveries: .* \(separation\).*; use --goal objectiv"
    ):
        fit_model(separated(), settings)


def draw_rare_columns(family: str, outcomes: tuple[int, int]) -> tuple[Array, Array]:
    """Return rows with two columns that 30 of 450 rows have, so many of them with an outcome.

    An outcome is a positive response, a count above zero or an event.
    """
    rng = np.random.default_rng(3)
    X = np.zeros((450, 4))
    X[:30, 0] = X[30:60, 1] = 1.0
    X[:, 2:] = rng.standard_normal((450, 2))
    y = find_family(family).draw(0.7 * X[:, 2], rng)
    size = np.abs(y) + (y == 0)
    none = -size if family == "cox" else np.zeros(450)
    for start, count in zip((0, 30), outcomes, strict=True):
        rows = np.arange(start, start + 30)
        y[rows] = np.where(rows < start + count, size[rows], none[rows])
    order = rng.permutation(450)
    return X[order], y[order]


def rare_columns(family: str, outcomes: tuple[int, int]) -> InProcess:
    return three_sites(*draw_rare_columns(family, outcomes), find_family(family).loss.name)


@pytest.mark.parametrize("family", ["binomial", "poisson", "cox"])
def test_a_named_column_whose_effect_few_rows_bound_has_no_interval(family: str) -> None:
    settings = Settings(family=family, penalty=0.02, intervals=("x0", "x1", "x2"))
    model = fit_model(rare_columns(family, (0, 2)), settings)
    assert model.trust is not None
    assert model.trust.named is not None
    np.testing.assert_array_equal(model.trust.named.identified, [False, False, True])
    assert np.isnan(model.trust.named.intervals()[:2]).all()
    document = to_trust_document(model)
    assert document is not None
    assert {row.name for row in document.named} == {"x2"}
    assert document.not_identified == {"x0": (), "x1": ()}
    assert document.without_interval == [f"{x} has no interval: {UNBOUNDED}" for x in ("x0", "x1")]


def test_withheld_intervals_are_empty_in_tables_and_explained_once(tmp_path: Path) -> None:
    X, y = draw_rare_columns("binomial", (0, 2))
    model = FederatedLogisticLasso(penalty=0.02, intervals=["x0", "x1", "x2"])
    model.fit(X, y, np.resize(["a", "b", "c"], 450))
    table = model.coefficient_table().set_index("term")
    inferred = table[["debiased", "std.error", "conf.low", "conf.high", "adj.p.value"]]
    assert inferred.loc[["x0", "x1"]].isna().all(axis=None)
    assert inferred.loc["x2"].notna().all()
    # The coefficient of the model is not withheld.
    assert table.loc["x1", "estimate"] != 0
    model.to_folder(tmp_path / "model")
    written = pd.read_csv(tmp_path / "model" / "coefficients.csv").set_index("name")
    fields = written[["estimate", "std_error", "low", "high", "p_value", "adjusted_p"]]
    assert fields.loc[["x0", "x1"]].isna().all(axis=None)
    assert fields.loc["x2"].notna().all()
    card = (tmp_path / "model" / "card.html").read_text()
    for shown in (card, model.summary()):
        for name in ("x0", "x1"):
            assert shown.count(f"{name} has no interval: {UNBOUNDED}") == 1


def test_a_column_that_separates_alone_leaves_other_columns_their_intervals() -> None:
    settings = Settings(family="binomial", penalty=1e-5, intervals=("x2",))
    trust = fit_model(rare_columns("binomial", (0, 10)), settings).trust
    assert trust is not None
    assert trust.named is not None
    assert trust.named.intervals()[0, 0] > 0.2
    assert trust.notes == (f"no interval of x0: {UNBOUNDED}",)


@pytest.mark.parametrize("family", ["binomial", "poisson", "cox"])
def test_batches_with_hardly_any_outcome_do_not_narrow_an_interval(family: str) -> None:
    sites = rare_columns(family, (0, 1))
    b = np.zeros(len(sites.columns))
    b[:3] = -0.5, -0.5, 0.7
    start = Start.at(sites, L1(0.1), b)
    columns = np.arange(3)
    of_model = start.look(columns)
    of_batches = start.with_batches().look(columns)
    least = of_model.errors / np.sqrt(start.dispersion)
    assert (of_batches.errors >= least).all()
