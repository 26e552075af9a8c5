"""Estimators write the folder that `fedlasso fit` writes."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedlasso import (
    FederatedCoxLasso,
    FederatedLasso,
    FederatedLogisticLasso,
    FederatedPoissonLasso,
    FedLassoError,
)
from fedlasso.cli import main
from fedlasso.models import predict_file, read_document

X = np.random.default_rng(0).standard_normal((60, 3))
FRAME = pd.DataFrame(X, columns=["age", "dose", "stage"])
ETA = X[:, 0] - 0.5 * X[:, 1]
SITES = np.repeat(["north", "south"], 30)


@pytest.mark.parametrize(
    ("model", "y", "target"),
    [
        (FederatedLasso(penalty=0.05), ETA, "y"),
        (FederatedLogisticLasso(penalty=0.02), np.where(ETA > 0, "yes", "no"), "y"),
        (FederatedPoissonLasso(penalty=0.05), np.round(np.exp(ETA)), "y"),
        (FederatedCoxLasso(penalty=0.05), np.column_stack([ETA > -9, np.exp(-ETA)]), "time"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_folder_predicts_as_the_estimator(
    tmp_path: Path, model: Any, y: Any, target: str
) -> None:
    model.fit(FRAME, y, sites=SITES)
    model.to_folder(tmp_path / "model")
    document = read_document(tmp_path / "model" / "model.json")
    assert document.schema.target == target
    card = (tmp_path / "model" / "card.html").read_text()
    assert "across 2 sites" in card
    assert "<svg" in card
    FRAME.to_csv(tmp_path / "new.csv", index=False)
    predicted = predict_file(document, tmp_path / "new.csv", None).values
    scores = {
        "FederatedLogisticLasso": lambda: model.predict_proba(FRAME)[:, 1],
        "FederatedCoxLasso": lambda: np.exp(model.predict(FRAME)),
    }
    expected = scores.get(type(model).__name__, lambda: model.predict(FRAME))()
    np.testing.assert_allclose(predicted, expected, rtol=1e-9)
    with pytest.raises(FedLassoError, match="already contains a model"):
        model.to_folder(tmp_path / "model")


def test_python_prints_the_error_of_the_command_line(tmp_path: Path) -> None:
    y = ETA + np.random.default_rng(1).standard_normal(60)
    files = []
    for site in ("north", "south"):
        files.append(str(tmp_path / f"{site}.csv"))
        FRAME.assign(y=y)[site == SITES].to_csv(files[-1], index=False)
    folder = tmp_path / "cli"
    assert main(["fit", *files, "--target", "y", "--no-compare", "--out", str(folder)]) == 0
    expected = read_document(folder / "model.json").error
    assert expected is not None
    assert "nested" in expected.rows
    model = FederatedLasso().fit(FRAME, y, sites=SITES)
    assert f"R^2 {expected.r2:.3f}, on {expected.rows}" in model.summary()
    again = pickle.loads(pickle.dumps(model))
    assert again.summary() == model.summary()
    model.to_folder(tmp_path / "python")
    own = read_document(tmp_path / "python" / "model.json").error
    assert own is not None
    assert own.mse == pytest.approx(expected.mse, rel=1e-12)
