"""Penalty factors: the same as other scales of the columns, in Python and from files."""

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
from fedlasso.models import read_document
from fedlasso.numerics import Array

FACTORS = {0: 0.3, 2: 2.0}
ROWS = 240
SITES = np.arange(ROWS) % 3


def draw(seed: int) -> tuple[Array, dict[Any, Any]]:
    """Columns, and a response for each estimator."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 5))
    X[:, 1] += 0.6 * X[:, 0]
    eta = 0.8 * X[:, 0] - 0.5 * X[:, 2] + 0.3 * X[:, 4]
    times = rng.exponential(np.exp(-eta))
    ends = rng.exponential(2.0, ROWS)
    return X, {
        FederatedLasso: eta + rng.standard_normal(ROWS),
        FederatedLogisticLasso: (rng.random(ROWS) < 1 / (1 + np.exp(-eta))).astype(int),
        FederatedPoissonLasso: rng.poisson(np.exp(0.5 * eta)),
        FederatedCoxLasso: np.column_stack([times <= ends, np.minimum(times, ends)]),
    }


def test_a_factor_is_another_scale_of_its_column() -> None:
    factors = np.ones(5)
    factors[list(FACTORS)] = list(FACTORS.values())
    X, responses = draw(0)
    for kind, y in responses.items():
        how = {"penalty": 0.12, "standardize": False}
        model = kind(penalty_factors=FACTORS, **how).fit(X, y, sites=SITES)
        scaled = kind(**how).fit(X / factors, y, sites=SITES)
        own = np.ravel(model.coef_)
        np.testing.assert_allclose(own, np.ravel(scaled.coef_) / factors, atol=1e-6)
        assert 0 < np.count_nonzero(own) < 5
        assert model.model_.penalty_factors == dict(
            zip(model.columns_, factors.tolist(), strict=True)
        )
        # The model at its own penalty needs no further question.
        before = model.ledger_.trips
        assert np.array_equal(model.coef_at(0.12), model.coef_)
        assert model.ledger_.trips == before


@pytest.mark.standard
def test_files_have_them_too_and_a_text_column_has_one_for_all_levels(tmp_path: Path) -> None:
    X, responses = draw(1)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["ward"] = np.array(["burns", "heart", "main"])[np.arange(ROWS) * 7 // 5 % 3]
    y = responses[FederatedLasso] + (frame["ward"] == "main")
    files = []
    for site in range(3):
        files.append(str(tmp_path / f"{site}.csv"))
        frame.assign(y=y)[site == SITES].to_csv(files[-1], index=False)
    out = tmp_path / "model"
    options = ["--target", "y", "--cv", "5", "--penalty-factors", "a=0.5,ward=3", "--out", str(out)]
    assert main(["fit", *files, *options, "--no-compare"]) == 0
    document = read_document(out / "model.json")
    factors = {"a": 0.5, "ward=heart": 3.0, "ward=main": 3.0}
    assert document.settings.penalty_factors == factors
    assert document.penalty_factors == {
        name: factors.get(name, 1.0) for name in document.schema.encoded
    }
    assert "a, ward=heart, ward=main" in (out / "card.html").read_text()
    own = {"a": 0.5, "ward": 3.0}
    model = FederatedLasso(penalty_factors=own, cv=5).fit(frame, y, sites=SITES)
    found = dict(zip(model.columns_, model.coef_, strict=True))
    assert document.penalty == model.penalty_
    for row in document.coefficients:
        np.testing.assert_allclose(row.value, found[row.name], rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("a=0", "the penalty factor of 'a' is 0.0; give a number above 0, or keep the column"),
        ("a=x", "'a=x' is not a factor; write COLUMN=NUMBER, e.g. age=0.5"),
        ("a=1,a=2", "'a' has two factors; give one"),
        ("age=2", "no predictor is called 'age'"),
        ("b=2 --keep b", "column 'b' is kept without a penalty and has a penalty factor"),
    ],
)
def test_wrong_factors_are_refused_in_one_line(
    tmp_path: Path, options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    X, responses = draw(2)
    file = tmp_path / "all.csv"
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.assign(y=responses[FederatedLasso]).to_csv(file, index=False)
    given = ["--penalty-factors", *options.split(), "--out", str(tmp_path / "model")]
    assert main(["fit", str(file), "--target", "y", "--penalty", "0.1", *given]) == 2
    assert message in capsys.readouterr().err


def test_factors_are_a_dict() -> None:
    X, responses = draw(2)
    with pytest.raises(FedLassoError, match=r"penalty_factors is .*; give a dict, as {'age': 0.5}"):
        FederatedLasso(penalty_factors=[1, 2]).fit(X, responses[FederatedLasso])
