"""Fits of files: models in folders, cards, predictions, and fits that are interrupted."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.models.files import draw_frame, write_sites
from helpers.models.held import ANSWERS
from helpers.swept import swept_lasso
from helpers.waiting import wait_until
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from fedlasso import Certificate, models
from fedlasso.cli import main
from fedlasso.models import read_document

pytestmark = pytest.mark.usefixtures("no_charts")


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def coefficients(folder: Path) -> pd.Series:
    return pd.read_csv(folder / "coefficients.csv").set_index("name")["coefficient"]


def design(frames: list[pd.DataFrame]) -> tuple[pd.DataFrame, pd.Series]:
    frame = pd.concat(frames)
    X = frame.drop(columns=["y", "ward"])
    for level in ("main", "west"):
        X[f"ward={level}"] = (frame["ward"] == level).astype(float)
    return X, frame["y"]


def test_files_in_any_order_give_the_pooled_lasso(tmp_path: Path) -> None:
    files = write_sites(tmp_path)
    out = tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--penalty", 0.05, "--no-compare", "--out", out) == 0
    X, y = design([draw_frame(n, j) for j, n in enumerate((60, 40, 30))])
    scaler = StandardScaler().fit(X)
    reference = swept_lasso(scaler.transform(X), y, 0.05, intercept=True)
    found = coefficients(out)
    expected = pd.Series(reference.coef_ / scaler.scale_, index=X.columns)
    np.testing.assert_allclose(found[X.columns], expected, atol=1e-7)


def test_one_table_with_a_site_column_is_the_same_as_files(tmp_path: Path) -> None:
    files = write_sites(tmp_path)
    parts = [draw_frame(n, j).assign(hospital=f"site{j}") for j, n in enumerate((60, 40, 30))]
    table = tmp_path / "all.parquet"
    pd.concat(parts).sample(frac=1, random_state=0).to_parquet(table)
    options = ("--target", "y", "--penalty", 0.05, "--no-compare", "--out")
    assert run("fit", *files, *options, tmp_path / "one") == 0
    assert run("fit", table, "--site-column", "hospital", *options, tmp_path / "two") == 0
    one, two = coefficients(tmp_path / "one"), coefficients(tmp_path / "two")
    np.testing.assert_allclose(one, two[one.index], atol=1e-9)


@pytest.mark.usefixtures("charts")
@pytest.mark.full
@pytest.mark.parametrize(
    "options", [(), ("--cv", 3), ("--goal", "selection"), ("--procedure", "ST")]
)
def test_a_model_folder_tells_everything(
    tmp_path: Path, options: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    files, out = write_sites(tmp_path), tmp_path / "model"
    assert run("fit", *files, "--target", "y", *options, "--out", out) == 0
    names = {"card.html", "coefficients.csv", "model.json", "path.csv", "plan.json", "table1.csv"}
    assert names <= {p.name for p in out.iterdir()}
    shown = json.loads((out / "model.json").read_text())
    assert shown["format"] == "fedlasso-model"
    assert shown["version"] == 1
    assert {site["name"] for site in shown["sites"]} == {"site0", "site1", "site2"}
    card = (out / "card.html").read_text()
    for text in (
        "above the best possible objective", "Cross-validation", "Coefficient path",
        "Compared with each site alone", "site0 alone", "What each site sent",
        "selection frequency", "ward=west",
    ):  # fmt: skip
        assert text in card, text
    assert "http" not in card.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in card
    capsys.readouterr()
    assert run("inspect", out) == 0
    shown = r"^certificate: (at most|less than) [\d.]+% above the best possible objective$"
    assert re.search(shown, capsys.readouterr().out, re.MULTILINE)
    assert run("fit", *files, "--target", "y", "--out", out) == 2
    assert "already contains a model" in capsys.readouterr().err


@pytest.mark.usefixtures("charts")
def test_a_card_at_a_given_penalty_shows_the_path_to_it(tmp_path: Path) -> None:
    files, out = write_sites(tmp_path), tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--penalty", 0.05, "--out", out) == 0
    shown = json.loads((out / "model.json").read_text())
    assert shown["curve"] is None
    assert shown["path"]["penalties"][-1] == pytest.approx(0.05)
    last = dict(
        zip(
            shown["path"]["names"],
            np.array(shown["path"]["coefficients"])[:, -1],
            strict=True,
        )
    )
    for row in shown["coefficients"]:
        assert last[row["name"]] == pytest.approx(row["standardised"], abs=0.1)
    card = (out / "card.html").read_text()
    assert "<h2>Coefficient path</h2>" in card
    assert "<h2>Cross-validation</h2>" not in card


def test_predictions_are_those_of_the_coefficients(tmp_path: Path) -> None:
    files, out = write_sites(tmp_path), tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--penalty", 0.05, "--no-compare", "--out", out) == 0
    new = draw_frame(20, 9).drop(columns="y")
    new[new.columns[::-1]].to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", out, tmp_path / "new.csv", "--out", tmp_path / "predictions.csv") == 0
    X, _ = design([new.assign(y=0.0)])
    b = coefficients(out)
    expected = X @ b[X.columns] + b["(intercept)"]
    np.testing.assert_allclose(pd.read_csv(tmp_path / "predictions.csv")["prediction"], expected)


def test_missing_values_take_the_mean_over_all_sites(tmp_path: Path) -> None:
    frames = [draw_frame(50, 0), draw_frame(40, 1)]
    frames[0].loc[[3, 7], "age"] = np.nan
    frames[1].loc[[5], "noise2"] = np.nan
    for j, frame in enumerate(frames):
        frame.to_csv(tmp_path / f"s{j}.csv", index=False)
    files, out = [tmp_path / "s0.csv", tmp_path / "s1.csv"], tmp_path / "model"
    options = ("--penalty", 0.05, "--missing", "mean", "--no-compare")
    assert run("fit", *files, "--target", "y", *options, "--out", out) == 0
    X, y = design(frames)
    X = X.fillna(X.mean())
    scaler = StandardScaler().fit(X)
    reference = swept_lasso(scaler.transform(X), y, 0.05, intercept=True)
    expected = pd.Series(reference.coef_ / scaler.scale_, index=X.columns)
    np.testing.assert_allclose(coefficients(out)[X.columns], expected, atol=1e-7)
    assert run("predict", out, files[0], "--out", tmp_path / "predictions.csv") == 0


def test_a_constant_column_is_dropped_with_a_notice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for j in range(2):
        draw_frame(40, j).assign(country=1, noise1=float(j)).to_csv(tmp_path / f"s{j}.csv")
    files, out = [tmp_path / "s0.csv", tmp_path / "s1.csv"], tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--penalty", 0.05, "--no-compare", "--out", out) == 0
    notice = "fedlasso: notice: column 'country' is constant; its coefficient is 0"
    assert notice in capsys.readouterr().err.splitlines()
    assert coefficients(out)["country"] == 0
    assert json.loads((out / "model.json").read_text())["constant"] == ["country"]


@pytest.mark.full
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("options", [("--cv", "3"), ("--procedure", "ADMM", "--penalty", "0.1")])
def test_an_interrupted_fit_goes_on_to_the_same_bits(
    tmp_path: Path, blow: signal.Signals, options: tuple[str, ...]
) -> None:
    files, whole, broken = write_sites(tmp_path), tmp_path / "whole", tmp_path / "broken"
    command = ["fit", *map(str, files), "--target", "y", *options]
    assert run(*command, "--out", whole) == 0
    environment = {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.models.held", *command, "--out", broken],
        stderr=subprocess.PIPE, env=os.environ | environment, text=True,
    )  # fmt: skip

    def entries() -> dict[str, int]:
        return {p.name: p.stat().st_mtime_ns for p in (broken / "journal").glob("*.entry")}

    wait_until(lambda: process.poll() is not None or len(entries()) == ANSWERS, "answers")
    process.send_signal(blow)
    _, errors = process.communicate()
    assert not (broken / "model.json").exists()
    if blow == signal.SIGINT:
        assert process.returncode == 130
        assert f"continue with: fedlasso fit --resume {broken}" in errors
    assert len(entries()) == ANSWERS
    assert run("fit", "--resume", broken) == 0
    for name in ("coefficients.csv", "model.json", "card.html"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name


def test_resuming_refuses_files_that_have_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, out = write_sites(tmp_path), tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--penalty", 0.05, "--no-compare", "--out", out) == 0
    (out / "model.json").unlink()
    draw_frame(61, 0).to_csv(files[0], index=False)
    assert run("fit", "--resume", out) == 2
    assert "the files have changed since" in capsys.readouterr().err
    assert run("fit", *files, "--target", "y", "--out", out) == 2
    assert "use --resume" in capsys.readouterr().err


def test_without_a_penalty_the_fit_is_least_squares(tmp_path: Path) -> None:
    files, out = write_sites(tmp_path), tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--penalty", 0, "--no-compare", "--out", out) == 0
    X, y = design([draw_frame(n, j) for j, n in enumerate((60, 40, 30))])
    reference = LinearRegression().fit(X, y)
    np.testing.assert_allclose(coefficients(out)[X.columns], reference.coef_, atol=1e-6)


def test_an_unknown_bound_is_stated_and_null_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, out = write_sites(tmp_path), tmp_path / "model"
    # Averaging ends away from the optimum, and without a penalty any slope leaves no bound.
    given = ("--target", "y", "--penalty", 0, "--procedure", "CD", "--no-compare")
    assert run("fit", *files, *given, "--out", out) == 0

    assert "no bound is known without a penalty" in capsys.readouterr().out
    card = (out / "card.html").read_text()
    assert "no bound is known without a penalty" in card
    assert "inf%" not in card

    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    shown = json.loads((out / "model.json").read_text(), parse_constant=refuse)
    assert shown["certificate"]["relative_gap"] is None
    assert read_document(out / "model.json").certificate.relative_gap == np.inf


def test_a_bound_that_is_not_known_is_null_and_read_as_infinite(tmp_path: Path) -> None:
    files, out = write_sites(tmp_path), tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--penalty", 0.1, "--no-compare", "--out", out) == 0
    document = read_document(out / "model.json")
    unknown = replace(document, certificate=Certificate(1.0, np.inf))
    (out / "model.json").write_bytes(unknown.to_json())
    assert json.loads((out / "model.json").read_text())["certificate"]["gap"] is None
    assert read_document(out / "model.json").certificate == Certificate(1.0, np.inf)
    stationary = Certificate(1.0, np.inf, stationary=0.003)
    (out / "model.json").write_bytes(replace(document, certificate=stationary).to_json())
    assert read_document(out / "model.json").certificate == stationary
    assert "at most 0.3% of the penalty's strength away from a stationary point" in str(stationary)


@pytest.mark.standard
def test_a_full_disk_is_told_with_the_command_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files, out = write_sites(tmp_path), tmp_path / "model"
    command = ("fit", *files, "--target", "y", "--no-compare", "--out")
    assert run(*command, tmp_path / "whole") == 0
    room = 5
    written = Path.replace

    def fill(path: Path, target: Path) -> Path:
        nonlocal room
        room -= 1
        if room < 0:
            raise OSError(28, "No space left on device")
        return written(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fill)
        assert run(*command, out) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "No space left on device; finished work is kept: free disk space, then continue" in line
    assert line.endswith(f"fedlasso fit --resume {out}")
    assert run("fit", "--resume", out) == 0
    for name in ("coefficients.csv", "model.json", "card.html"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_a_fit_says_its_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = models.make_model

    def warned(*arguments: Any, **more: Any) -> models.ModelDocument:
        return replace(made(*arguments, **more), warnings=("the sky falls", "mind the gap"))

    monkeypatch.setattr(models, "make_model", warned)
    files, out = write_sites(tmp_path), tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--penalty", 0.1, "--no-compare", "--out", out) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert lines == ["fedlasso: warning: the sky falls", "fedlasso: warning: mind the gap"]


@pytest.mark.standard
def test_a_target_of_zeros_and_ones_is_warned_of_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for j in range(2):
        frame = draw_frame(40, j)
        frame.assign(y=(frame["y"] > 5).astype(int)).to_csv(tmp_path / f"s{j}.csv", index=False)
    files, out = [tmp_path / "s0.csv", tmp_path / "s1.csv"], tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--no-compare", "--out", out) == 0
    assert capsys.readouterr().err.count("the target 'y' is 0 or 1") == 1
    assert "the target &#x27;y&#x27; is 0 or 1" in (out / "card.html").read_text()


@pytest.mark.usefixtures("charts")
def test_a_diagnosis_measures_averaging(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files, page = write_sites(tmp_path), tmp_path / "diagnosis.html"
    assert run("diagnose", *files, "--target", "y", "--penalty", 0.1, "--out", page) == 0
    text = capsys.readouterr().out
    assert "averaging converges to" in text
    assert "active at each site alone: site0" in text
    html = page.read_text()
    assert html.count("<svg") >= 2
    assert "Columns that one site alone selects" in html


def test_too_few_round_trips_are_refused_by_the_name_of_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, out = write_sites(tmp_path), tmp_path / "model"
    assert run("fit", *files, "--target", "y", "--round-trips", "2", "--out", out) != 0
    error = capsys.readouterr().err
    assert "--round-trips leaves 2, and any fit takes 3 or more; give more" in error
    assert not out.exists()
