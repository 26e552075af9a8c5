"""Data frames with text, categories, booleans and missing values in Python, as the command line."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fedlasso import (
    FederatedCoxLasso,
    FederatedLasso,
    FederatedLogisticLasso,
    FedLassoError,
    FedLassoWarning,
)
from fedlasso.cli import main

SITES = np.repeat(["east", "north", "west"], 40)


def draw(rows: int = 120) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, rows).round(1),
            "ward": rng.choice(["burns", "heart", "x-ray"], rows, p=[0.5, 0.45, 0.05]),
            "smoker": rng.random(rows) < 0.4,
            "stage": pd.Categorical(rng.choice(["I", "II", "III"], rows)),
            "bmi": rng.normal(25, 4, rows).round(2),
        }
    )
    y = (
        0.1 * frame["age"]
        + 2 * (frame["ward"] == "heart")
        + frame["smoker"]
        + rng.normal(size=rows)
    )
    frame.loc[::17, "bmi"] = np.nan
    frame.loc[5::23, "ward"] = None
    return frame, y


def fit_files(frame: pd.DataFrame, folder: Path, *options: str) -> dict[str, Any]:
    """The model of the command line, on one file per site."""
    files = []
    for site in sorted(set(SITES)):
        files.append(str(folder / f"{site}.csv"))
        frame[site == SITES].to_csv(files[-1], index=False)
    out = folder / "model"
    assert main(["fit", *files, *options, "--no-compare", "--out", str(out)]) == 0
    document: dict[str, Any] = json.loads((out / "model.json").read_text())
    return document


def same_numbers(document: dict[str, Any], model: Any) -> bool:
    coefficients = np.ravel(model.coef_)
    here = {name: value for name, value in zip(model.columns_, coefficients, strict=True) if value}
    there = {row["name"]: row["value"] for row in document["coefficients"]}
    intercept = float(np.ravel(getattr(model, "intercept_", 0.0))[0])
    return here == there and intercept == document["intercept"]


@pytest.mark.standard
def test_a_frame_gives_the_bits_of_the_command_line(tmp_path: Path) -> None:
    frame, y = draw()
    options = ("--target", "y", "--missing", "mean", "--min-level", "6")
    document = fit_files(frame.assign(y=y), tmp_path, *options)
    model = FederatedLasso(missing="mean", min_level=6).fit(frame, y, sites=SITES)
    assert same_numbers(document, model)
    assert "ward=(other)" in model.columns_
    assert model.n_features_in_ == 5
    other = FederatedLasso(missing="mean", min_level=6)
    polars = pl.from_pandas(frame)
    other.fit(polars, pl.Series(y.to_numpy()), sites=SITES)
    assert same_numbers(document, other)
    assert np.array_equal(other.predict(polars), model.predict(frame))


def test_classes_and_survival_times_of_frames_are_those_of_the_command_line(tmp_path: Path) -> None:
    frame, y = draw()
    sick = np.where(y > y.median(), "sick", "healthy")
    options = ["--missing", "mean", "--penalty", "0.05", "--keep", "stage", "--min-level", "5"]
    (tmp_path / "classes").mkdir()
    document = fit_files(
        frame.assign(y=sick),
        tmp_path / "classes",
        "--target",
        "y",
        "--family",
        "binomial",
        *options,
    )
    how: dict[str, Any] = {"missing": "mean", "penalty": 0.05, "keep": [3], "min_level": 5}
    model = FederatedLogisticLasso(**how).fit(frame, sick, sites=SITES)
    assert same_numbers(document, model)
    assert model.score(frame, sick) > 0.7
    days = np.exp(10 - y).to_numpy()
    died = np.arange(len(y)) % 3 > 0
    named = ["--family", "cox", "--time", "days", "--event", "died", "--cluster", "patient"]
    patients = np.arange(len(y)) // 2
    table = frame.assign(days=days, died=died, patient=patients)
    document = fit_files(table, tmp_path, *named, *options)
    survival = FederatedCoxLasso(**how)
    survival.fit(frame, np.column_stack([died, days]), sites=SITES, clusters=patients)
    assert same_numbers(document, survival)


def test_missing_numbers_of_arrays_and_frames_are_replaced_or_refused_by_name() -> None:
    frame, y = draw()
    numbers = frame[["age", "bmi"]]
    by_frame = FederatedLasso(penalty=0.1, missing="mean").fit(numbers, y, sites=SITES)
    by_array = FederatedLasso(penalty=0.1, missing="mean").fit(numbers.to_numpy(), y, sites=SITES)
    assert np.array_equal(by_frame.coef_, by_array.coef_)
    assert np.isfinite(by_frame.predict(numbers)).all()
    filled = numbers.fillna(numbers.mean())
    np.testing.assert_allclose(by_frame.predict(numbers), by_frame.predict(filled), rtol=1e-12)
    message = r"X contains NaN \(site 'east': bmi 3; .*\); fill them, or use missing='mean'"
    for table in (numbers, frame.drop(columns="ward")):
        with pytest.raises(FedLassoError, match=message):
            FederatedLasso(penalty=0.1).fit(table, y, sites=SITES)
    complete = FederatedLasso(penalty=0.1).fit(filled, y)
    with pytest.raises(FedLassoError, match="'bmi' is missing in 8 rows; fill them, or fit with"):
        complete.predict(numbers)


def test_predict_names_the_column_that_does_not_fit() -> None:
    frame, y = draw()
    model = FederatedLasso(penalty=0.1, missing="mean", min_level=1).fit(frame, y, sites=SITES)
    for bad, message in (
        (frame.assign(stage="IV"), "column 'stage' holds 'IV' in row 1, a level that the model"),
        (frame[["ward", "age", "smoker", "stage", "bmi"]], "Column 0 is 'ward', and was 'age'"),
        (frame.drop(columns="bmi"), "now missing:\n- bmi"),
        (frame.assign(age="old"), "column 'age' is not numeric, but it was in the fit"),
        (frame.to_numpy(), "give a data frame with the columns 'age', 'ward', 'smoker'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(bad)


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        ({"day": pd.Timestamp("2026-01-01")}, {}, "column 'day' holds timestamp.*, or drop it"),
        ({"dose": [1, "a"] * 60}, {}, "column dose with type object; give each column one name"),
        ({"dose": ["?", *map(str, range(119))]}, {}, r"holds '\?' in row 1 .* use na=\['\?'\] if"),
        ({}, {"missing": "median"}, "missing is 'median'; use 'refuse' or 'mean'"),
        ({}, {"na": "-999"}, "na is '-999'; give a list of codes"),
        ({}, {"keep": ["wart"]}, "no predictor is called 'wart'; did you mean 'ward'"),
    ],
)
def test_what_cannot_be_fitted_is_one_clear_sentence(
    change: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    frame, y = draw()
    with pytest.raises(FedLassoError, match=message):
        FederatedLasso(**{"missing": "mean"} | settings).fit(frame.assign(**change), y, sites=SITES)


def test_codes_of_missing_values_are_missing() -> None:
    frame, y = draw()
    coded = frame.assign(bmi=frame["bmi"].fillna(-999))
    how: dict[str, Any] = {"penalty": 0.1, "missing": "mean"}
    one = FederatedLasso(**how).fit(frame, y, sites=SITES)
    other = FederatedLasso(**how, na=[-999]).fit(coded, y, sites=SITES)
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.predict(frame), other.predict(coded))
    numbers = coded[["age", "bmi"]]
    assert FederatedLasso(**how, na=[-999]).fit(numbers, y).columns_ == ("age", "bmi")
    with pytest.raises(FedLassoError, match="na and categorical are for data frames"):
        FederatedLasso(**how, na=[-999]).fit(numbers.to_numpy(), y)


def test_a_fit_warns_once_in_the_words_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame, y = draw()
    frame = frame.drop(columns=["ward", "bmi"]).assign(same=1.0)
    fit_files(frame.assign(y=y > y.median()), tmp_path, "--target", "y", "--penalty", "0.01")
    printed = capsys.readouterr().err.splitlines()
    said = [line.split(": ", 2)[2] for line in printed if line.startswith("fedlasso: warning: ")]
    assert len(said) >= 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FederatedLasso(penalty=0.01).fit(frame, y > y.median(), sites=SITES)
    assert {own.category for own in caught} == {FedLassoWarning}
    assert {own.filename for own in caught} == {__file__}
    texts = [str(own.message) for own in caught]
    assert [text.replace("FederatedLogisticLasso", "--family binomial") for text in texts] == said


def test_an_array_is_warned_about_too() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 3))
    with pytest.warns(FedLassoWarning, match="small sites: a, b with fewer than 20 training rows"):
        FederatedLasso(penalty=0.01).fit(X, X[:, 0], sites=["a", "b"] * 12)


def test_numbers_that_are_codes_become_levels(tmp_path: Path) -> None:
    frame, y = draw()
    coded = frame[["age"]].assign(grade=np.arange(120) * 7 % 3 + 1)
    options = ("--target", "y", "--penalty", "0.02", "--categorical", "grade")
    document = fit_files(coded.assign(y=y), tmp_path, *options)
    model = FederatedLasso(penalty=0.02, categorical=["grade"]).fit(coded, y, sites=SITES)
    assert model.columns_ == ("age", "grade=2", "grade=3")
    assert same_numbers(document, model)
    # A categorical column of pandas needs no option.
    category = coded.assign(grade=pd.Categorical(coded["grade"]))
    other = FederatedLasso(penalty=0.02).fit(category, y, sites=SITES)
    assert same_numbers(document, other)
    assert np.array_equal(other.predict(category), model.predict(coded))


def test_columns_that_identify_rows_are_left_out_with_a_warning() -> None:
    frame, y = draw()
    for table in (frame, frame[["age", "smoker"]]):
        known = table.assign(patient=np.arange(120) + 4711)
        with pytest.warns(FedLassoWarning, match="column 'patient' identifies the rows"):
            model = FederatedLasso(penalty=0.1, missing="mean").fit(known, y, sites=SITES)
        assert "patient" not in model.columns_
        assert len(model.coef_) == len(model.columns_)
        assert model.predict(known).shape == (120,)


def test_a_column_that_contains_the_outcome_gives_a_warning() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = 3 * X[:, 0] + 1e-3 * rng.standard_normal(200)
    with pytest.warns(FedLassoWarning, match="'x0' may contain 'y'; drop it unless"):
        FederatedLasso().fit(X, y, sites=np.arange(200) % 3)


def test_levels_have_a_given_order_and_the_first_is_the_reference() -> None:
    frame, y = draw()
    frame = frame[["age", "stage"]].assign(stage=frame["stage"].astype(str))
    order = {"stage": ["II", "III", "I", "never"]}
    model = FederatedLasso(penalty=0.02, categorical=order).fit(frame, y, sites=SITES)
    assert model.columns_ == ("age", "stage=III", "stage=I")
    coded = frame[["age"]].assign(three=frame["stage"] == "III", one=frame["stage"] == "I")
    other = FederatedLasso(penalty=0.02).fit(coded, y, sites=SITES)
    np.testing.assert_allclose(model.predict(frame), other.predict(coded), atol=1e-9)
    # A level that is not in the order comes last.
    order = {"stage": ["II"]}
    model = FederatedLasso(penalty=0.02, categorical=order).fit(frame, y, sites=SITES)
    assert model.columns_ == ("age", "stage=I", "stage=III")
    with pytest.raises(FedLassoError, match="give each column a list of its levels"):
        FederatedLasso(categorical={"stage": "II"}).fit(frame, y, sites=SITES)
