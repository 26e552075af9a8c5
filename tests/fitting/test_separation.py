"""Inference about responses that a few columns predict nearly or quite without error."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from fedlasso import InProcess, Site
from fedlasso.errors import CannotFit
from fedlasso.fitting import Model, Settings, fit_model
from fedlasso.numerics import Array


def three_sites(X: Array, y: Array) -> InProcess:
    return InProcess(
        [
            Site(str(k), X[k::3], y[k::3], loss="binomial", intercept=True, raw=True)
            for k in range(3)
        ]
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
