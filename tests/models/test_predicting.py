"""Predictions for new files: which columns they take, where they go, how good they are."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.models.files import draw_frame, write_sites

from fedlasso.cli import main

pytestmark = pytest.mark.usefixtures("no_charts")


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that leaves some columns out."""
    base = tmp_path_factory.mktemp("predicting")
    files = write_sites(base)
    options = ("--target", "y", "--penalty", 0.3, "--no-compare", "--out")
    assert run("fit", *files, *options, base / "model") == 0
    return base / "model"


def used_in(model: Path) -> set[str]:
    reported = json.loads((model / "model.json").read_text())
    return {row["name"].partition("=")[0] for row in reported["coefficients"]}


def test_only_the_columns_that_the_model_uses_are_needed(model: Path, tmp_path: Path) -> None:
    frame = draw_frame(20, 9)
    used = used_in(model)
    assert "noise1" not in used
    assert "ward" in used
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame[sorted(used)].to_csv(tmp_path / "used.csv", index=False)
    for name in ("all", "used"):
        assert (
            run("predict", model, tmp_path / f"{name}.csv", "--out", tmp_path / f"{name}.p.csv")
            == 0
        )
    assert (tmp_path / "all.p.csv").read_bytes() == (tmp_path / "used.p.csv").read_bytes()


def test_a_model_without_columns_predicts_its_intercept(tmp_path: Path) -> None:
    files = write_sites(tmp_path)
    options = ("--target", "y", "--penalty", 1e6, "--no-compare", "--out")
    assert run("fit", *files, *options, tmp_path / "model") == 0
    pd.DataFrame({"anything": range(3)}).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "predictions.csv"
    assert run("predict", tmp_path / "model", tmp_path / "new.csv", "--out", out) == 0
    intercept = json.loads((tmp_path / "model" / "model.json").read_text())["intercept"]
    assert pd.read_csv(out)["prediction"].tolist() == [intercept] * 3


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_identity_is_copied_beside_the_prediction(
    model: Path, tmp_path: Path, ending: str
) -> None:
    frame = draw_frame(20, 9).assign(patient=[f"p, {i}" for i in range(20)])
    frame.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / f"predictions.{ending}"
    assert run("predict", model, tmp_path / "new.csv", "--id", "patient", "--out", out) == 0
    reported = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert reported.columns.tolist() == ["patient", "prediction"]
    assert reported["patient"].tolist() == frame["patient"].tolist()


def test_errors_are_told_where_the_target_is_known(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = draw_frame(50, 9)
    frame.loc[[3, 8], "y"] = np.nan
    frame.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "predictions.csv"
    capsys.readouterr()
    assert run("predict", model, tmp_path / "new.csv", "--out", out) == 0
    known = frame["y"].notna()
    y = frame["y"][known]
    squares = (y - pd.read_csv(out)["prediction"][known]) ** 2
    mse = squares.mean()
    r2 = 1 - mse / y.var(ddof=0)
    words = f"has the target 'y': 48 rows, MSE {mse:.4g}, RMSE {mse**0.5:.4g}, R^2 {r2:.4g}"
    assert words in capsys.readouterr().out
    assert run("predict", model, tmp_path / "new.csv") == 0
    reported = capsys.readouterr()
    assert words in reported.err
    assert reported.out == out.read_text()


def test_nothing_is_measured_without_the_target(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw_frame(20, 9).drop(columns="y").to_csv(tmp_path / "none.csv", index=False)
    draw_frame(20, 9).assign(y=np.nan).to_csv(tmp_path / "empty.csv", index=False)
    capsys.readouterr()
    for name in ("none", "empty"):
        assert run("predict", model, tmp_path / f"{name}.csv") == 0
        assert capsys.readouterr().err == ""


def test_codes_of_missing_values_are_those_of_the_fit(tmp_path: Path) -> None:
    frame = draw_frame(60)
    frame["age"] = frame["age"].astype(object)
    frame.loc[[3, 7], "age"] = [".", "-999"]
    frame.to_csv(tmp_path / "a.csv", index=False)
    options = ("--target", "y", "--na=.,-999", "--missing", "mean", "--penalty", 0.05)
    out = tmp_path / "model"
    assert run("fit", tmp_path / "a.csv", *options, "--no-compare", "--out", out) == 0
    assert json.loads((tmp_path / "model/plan.json").read_text())["source"]["na"] == [".", "-999"]
    frame.loc[[3, 7], "age"] = None
    frame.to_csv(tmp_path / "b.csv", index=False)
    for name in ("a", "b"):
        out = tmp_path / f"{name}.p.csv"
        assert run("predict", tmp_path / "model", tmp_path / f"{name}.csv", "--out", out) == 0
    assert (tmp_path / "a.p.csv").read_bytes() == (tmp_path / "b.p.csv").read_bytes()


@pytest.mark.parametrize(
    ("name", "message"),
    [("nobody", "has no column 'nobody'; its columns are"), ("prediction", "rename it")],
)
def test_an_identity_that_cannot_be_copied_is_one_clear_error(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    draw_frame(20, 9).assign(prediction=1).to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", model, tmp_path / "new.csv", "--id", name) == 2
    assert message in capsys.readouterr().err


def test_an_existing_file_is_replaced_only_on_request_and_the_rows_never(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.csv"
    draw_frame(20, 9).to_csv(new, index=False)
    rows = new.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(new)
    for out in (new, link):
        for more in ((), ("--overwrite",)):
            assert run("predict", model, new, "--out", out, *more) == 2
            words = f"fedlasso: {out} is the input; name another file with --out\n"
            assert capsys.readouterr().err.endswith(words)
            assert new.read_bytes() == rows
    reported = tmp_path / "predictions.csv"
    reported.write_text("mine\n")
    assert run("predict", model, new, "--out", reported) == 2
    words = f"fedlasso: {reported} exists; name another file, or use --overwrite\n"
    assert capsys.readouterr().err == words
    assert reported.read_text() == "mine\n"
    assert run("predict", model, new, "--out", reported, "--overwrite") == 0
    assert reported.read_text().startswith("prediction\n")
