"""Which of two labels a classifier models, as the command line, and scikit-learn's contract."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

from fedlasso import FederatedLogisticLasso, FedLassoError, FedLassoWarning
from fedlasso.cli import main
from fedlasso.federation import InProcess
from fedlasso.sites import Site

SITES = np.repeat(["east", "north", "west"], 60)
PENALTY = 0.03


def draw() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((180, 4)), columns=["age", "bmi", "dose", "smoker"])
    relapses = frame["age"] - frame["dose"] + rng.logistic(size=180) > 0
    return frame, pd.Series(np.where(relapses, "Yes", "no"), name="relapse")


def fitted(labels: Any, **how: Any) -> FederatedLogisticLasso:
    X, _ = draw()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FedLassoWarning)
        return FederatedLogisticLasso(penalty=PENALTY, **how).fit(X, labels, sites=SITES)


def fit_files(folder: Path, *options: str) -> Path:
    X, y = draw()
    files = []
    for site in sorted(set(SITES)):
        files.append(str(folder / f"{site}.csv"))
        X.assign(relapse=y)[site == SITES].to_csv(files[-1], index=False)
    how = ["--target", "relapse", "--family", "binomial", "--penalty", str(PENALTY)]
    out = folder / "model"
    assert main(["fit", *files, *how, *options, "--no-compare", "--out", str(out)]) == 0
    return out


@pytest.mark.parametrize("positive", [None, "no", "Yes"])
def test_the_model_is_that_of_the_command_line_bit_for_bit(
    positive: str | None, tmp_path: Path
) -> None:
    folder = fit_files(tmp_path, *([] if positive is None else ["--positive", positive]))
    stored = FederatedLogisticLasso.from_folder(folder)
    X, y = draw()
    model = fitted(y, positive=positive)
    frame = FederatedLogisticLasso(penalty=PENALTY, positive=positive)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FedLassoWarning)
        frame.fit(X.assign(relapse=y), formula="relapse ~ age + bmi + dose + smoker", sites=SITES)
    for own in (model, frame):
        assert own.positive_ == stored.positive_ == (positive or "Yes")
        assert own.classes_.tolist() == stored.classes_.tolist() == ["Yes", "no"]
        np.testing.assert_array_equal(own.coef_, stored.coef_)
        np.testing.assert_array_equal(own.intercept_, stored.intercept_)
        np.testing.assert_array_equal(own.predict_proba(X), stored.predict_proba(X))
        np.testing.assert_array_equal(own.predict(X), stored.predict(X))


def test_summary_table_folder_and_card_name_the_classes(tmp_path: Path) -> None:
    _, y = draw()
    model = fitted(y, intervals=["age"])
    assert "odds ratios of relapse = Yes, against no" in model.summary()
    assert "classes: 'Yes' is 1, 'no' is 0" in model.summary()
    table = model.coefficient_table().set_index("term")
    assert table.loc["age", "ratio"] > 1 > table.loc["dose", "ratio"]
    model.to_folder(tmp_path / "model")
    schema = json.loads((tmp_path / "model" / "model.json").read_text())["schema"]
    assert (schema["target"], schema["classes"]) == ("relapse", ["no", "Yes"])
    card = (tmp_path / "model" / "card.html").read_text()
    assert "for relapse = Yes" in card
    assert "odds ratio of Yes per SD" in card


def test_scikit_learns_contract_holds_whichever_class_is_modelled() -> None:
    X, y = draw()
    for positive in ("Yes", "no"):
        model = fitted(y, positive=positive)
        second = model.classes_[1]
        probability = model.predict_proba(X)
        np.testing.assert_allclose(probability.sum(axis=1), 1)
        np.testing.assert_array_equal(model.decision_function(X) > 0, probability[:, 1] > 0.5)
        np.testing.assert_array_equal(model.predict(X) == second, probability[:, 1] > 0.5)
        assert roc_auc_score(y, probability[:, 1]) > 0.75
        scores = cross_val_score(model, X, y, scoring="roc_auc", cv=3)
        assert scores.min() > 0.6
        odds = np.ravel(X.to_numpy() @ model.coef_.T + model.intercept_)
        sign = 1 if positive == second else -1
        np.testing.assert_allclose(model.decision_function(X), sign * odds)


@pytest.mark.parametrize("labels", [[1, 2], [False, True], [0, 1], [-1, 1], ["control", "case"]])
def test_labels_survive_a_folder(labels: list[Any], tmp_path: Path) -> None:
    X, y = draw()
    own = np.where(y == "Yes", labels[1], labels[0])
    for positive in (None, *labels):
        model = fitted(own, positive=positive)
        assert model.positive_ == (labels[1] if positive is None else positive)
        folder = tmp_path / str(positive)
        model.to_folder(folder)
        back = FederatedLogisticLasso.from_folder(folder)
        assert back.classes_.tolist() == model.classes_.tolist()
        assert back.positive_ == model.positive_
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


def test_weights_of_classes_follow_their_labels() -> None:
    _, y = draw()
    weighted = fitted(y, class_weight={"Yes": 2.0, "no": 1.0})
    X, _ = draw()
    by_row = FederatedLogisticLasso(penalty=PENALTY, positive="Yes")
    by_row.fit(X, y, sites=SITES, sample_weight=np.where(y == "Yes", 2.0, 1.0))
    np.testing.assert_array_equal(weighted.coef_, by_row.coef_)


def test_a_default_other_than_the_last_label_is_announced() -> None:
    X, y = draw()
    with pytest.warns(FedLassoWarning, match="the model is of 'Yes', against 'no'; positive"):
        FederatedLogisticLasso(penalty=PENALTY).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FedLassoWarning)
        FederatedLogisticLasso(penalty=PENALTY, positive="Yes").fit(X, y)
        FederatedLogisticLasso(penalty=PENALTY).fit(X, np.where(y == "Yes", "sick", "healthy"))


def test_an_unknown_class_and_a_federation_are_refused() -> None:
    X, y = draw()
    with pytest.raises(FedLassoError, match="never is 'maybe'; use positive with one of its texts"):
        fitted(y, positive="maybe")
    coded = (y == "Yes").to_numpy(float)
    sites = InProcess([Site("all", X.to_numpy(), coded, loss="binomial")])
    with pytest.raises(FedLassoError, match="positive requires rows in this process"):
        FederatedLogisticLasso(positive=1).fit(sites)
