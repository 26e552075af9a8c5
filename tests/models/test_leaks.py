"""Columns that contain a curved outcome are named by every fit, as by a check."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedlasso import (
    FederatedCoxLasso,
    FederatedLogisticLasso,
    FederatedPoissonLasso,
    FedLassoWarning,
)
from fedlasso.cli import main
from fedlasso.tables import Encoded, Outcome, Responses
from fedlasso.tables.leaks import leaks_in

pytestmark = pytest.mark.usefixtures("no_charts")

SITES = np.repeat(["north", "south", "west"], 80)
OUTCOMES = {
    "poisson": (["visits"], "bill", FederatedPoissonLasso),
    "cox": (["event", "months"], "years", FederatedCoxLasso),
    "binomial": (["died"], "autopsy", FederatedLogisticLasso),
}


def draw() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((240, 2)), columns=["age", "bmi"]).round(3)
    frame["visits"] = rng.poisson(np.exp(0.5 + 0.4 * frame["age"]))
    frame["bill"] = 90 * frame["visits"]
    frame["months"] = rng.exponential(20 * np.exp(-0.4 * frame["age"])).round(2) + 0.01
    frame["event"] = (rng.random(240) < 0.7).astype(int)
    frame["years"] = (frame["months"] / 12).round(3)
    frame["died"] = (frame["bmi"] + rng.logistic(size=240) > 0.5).astype(int)
    frame["autopsy"] = (frame["died"] + 0.1 * rng.standard_normal(240)).round(3)
    return frame


def part_of(family: str) -> tuple[pd.DataFrame, list[str], str, Any]:
    names, leak, estimator = OUTCOMES[family]
    return draw()[["age", "bmi", leak, *names]], names, leak, estimator


@pytest.mark.parametrize("family", OUTCOMES)
def test_files_and_python_name_the_leak_that_a_check_names(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame, names, leak, estimator = part_of(family)
    files = []
    for site in sorted(set(SITES)):
        files.append(str(tmp_path / f"{site}.csv"))
        frame[site == SITES].to_csv(files[-1], index=False)
    roles = ["--target", names[0]]
    if family == "cox":
        roles = ["--event", names[0], "--time", names[1]]
    options = [*files, "--family", family, *roles]
    assert main(["check", *options]) == 1
    expected = f"{leak!r}: alone predicts {names[-1]!r} almost perfectly ("
    assert expected in capsys.readouterr().out
    for penalty in ([], ["--penalty", "0.1"]):
        out = tmp_path / f"model{len(penalty)}"
        how = ["--no-compare", "--out", str(out)]
        assert main(["fit", *options, *penalty, *how]) == 0
        stored = json.loads((out / "model.json").read_text())["warnings"]
        named = [text for text in stored if repr(leak) in text]
        assert len(named) == 1
        assert f"{leak!r} alone predicts {names[-1]!r} almost perfectly (" in named[0]
        assert f"fedlasso: warning: {named[0]}" in capsys.readouterr().err.splitlines()
        assert "almost perfectly" in (out / "card.html").read_text()
    X = frame.drop(columns=names)
    y = frame[names] if family == "cox" else frame[names[0]]
    texts = X.assign(ward=np.resize(["a", "b"], 240))
    for table, name in ((X, leak), (X.to_numpy(), "x2"), (texts, leak)):
        with pytest.warns(FedLassoWarning, match=f"'{name}' alone predicts .* almost perfectly"):
            model = estimator(penalty=0.1).fit(table, y.to_numpy(), sites=SITES)
        folder = tmp_path / f"{family}{name}{table.shape[1]}{type(table).__name__}"
        model.to_folder(folder)
        stored = json.loads((folder / "model.json").read_text())["warnings"]
        assert any(f"'{name}' alone predicts" in text for text in stored)


@pytest.mark.parametrize("family", OUTCOMES)
def test_columns_that_only_predict_well_are_not_named(family: str) -> None:
    frame, names, leak, estimator = part_of(family)
    frame[leak] += 2 * frame[leak].std() * np.random.default_rng(1).standard_normal(240)
    y = frame[names] if family == "cox" else frame[names[0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error", FedLassoWarning)
        estimator(penalty=0.1).fit(frame.drop(columns=names), y.to_numpy(), sites=SITES)


def test_a_leak_of_rare_events_among_many_rows_is_found() -> None:
    rng = np.random.default_rng(0)
    parts = []
    for site in "ab":
        y = np.zeros(20_000)
        y[rng.choice(20_000, 30, replace=False)] = 1
        X = np.asfortranarray(
            np.column_stack([rng.standard_normal(20_000), 5 * y + y * rng.random()])
        )
        X[::7, 1] = np.nan
        parts.append(Encoded(site, X, Responses(y)))
    found = dict(leaks_in(parts, ["age", "note"], Outcome("died", family="binomial")))
    assert list(found) == ["note"]
    assert "(AUROC 1.000)" in found["note"]
