"""The study of real data: its data, its splits, its judges and its verdict."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.study.tiny_data import COLUMNS, ROWS, write_data, write_stand_in
from sklearn.linear_model import LassoCV, LinearRegression
from sklearn.preprocessing import StandardScaler

from fedlasso import FederatedLasso
from fedlasso.cli import main
from fedlasso.errors import FedLassoError
from fedlasso.study import Store
from fedlasso.study.datasets import BUNDLED, ORIGINS, TUNED, find_sets, read_set
from fedlasso.study.judges import GLMNET, JUDGES, fit_glmnet, fit_lasso_cv
from fedlasso.study.real import SIZES, RealStudy, available_methods, draw_rows
from fedlasso.study.real_summary import (
    compare_with_judges,
    jaccard,
    missing_sets,
    real_conclusions,
)
from fedlasso.study.runner import run_replicate

COMPARED = ("prediction", "selection", "objective")
WITHOUT_R = (*COMPARED, "LassoCV")


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(write_data(tmp_path / "data"))


@pytest.fixture
def no_r(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(write_stand_in(tmp_path / "bin")))


def test_every_bundled_set_is_read_and_known() -> None:
    assert set(BUNDLED) <= set(ORIGINS)
    assert set(TUNED) <= set(ORIGINS)
    for name in find_sets(""):
        X, y = read_set("", name)
        assert X.shape[0] == y.size
        assert np.isfinite(X).all()
        assert np.isfinite(y).all()


def test_the_script_exports_what_the_study_knows() -> None:
    script = Path(__file__).parents[2] / "tools" / "export_data.R"
    text = script.read_text()
    for name in set(ORIGINS) - set(BUNDLED):
        assert f"  {name} = list(" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "has no response column 'y'"),
        ("a,b,y\n" + "1,x,3\n" * 30, "column 'b' is not numeric"),
        ("a,b,y\n" + "1,,3\n" * 30, "column 'b' has missing values"),
        ("a,y\n" + "1,3\n" * 30, "has 1 predictors"),
        ("a,b,y\n" + "1,2,3\n" * 5, "has 5 rows"),
        ("", "cannot read"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(FedLassoError, match=message) as caught:
        _ = RealStudy(methods=WITHOUT_R, data=str(tmp_path)).scenarios
    assert "bad" in str(caught.value)


def test_no_folder_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FedLassoError, match="there is no folder"):
        find_sets(str(tmp_path / "absent"))


def test_rows_are_dealt_out_whole_in_three_ways() -> None:
    X = np.arange(200.0).reshape(100, 2)
    y = np.random.default_rng(1).standard_normal(100)
    rows = draw_rows(X, y, np.random.default_rng(5))
    assert len(rows.y) == 70
    assert sorted([*rows.y, *rows.test_y]) == sorted(y)
    assert np.array_equal(X[np.searchsorted(X[:, 0], rows.X[:, 0])], rows.X)
    sizes = {way: np.bincount(labels).tolist() for way, labels in rows.sites.items()}
    assert sizes["random"] == [24, 23, 23]
    assert sizes["unequal"] == [42, 21, 7]
    blocks = [rows.y[rows.sites["sorted"] == j] for j in range(3)]
    assert blocks[0].max() <= blocks[1].min()
    assert blocks[1].max() <= blocks[2].min()
    at_random = [rows.y[rows.sites["random"] == j] for j in range(3)]
    assert at_random[0].max() > at_random[1].min()
    assert np.bincount(rows.folds).tolist() == [7] * 10


@pytest.mark.standard
def test_a_replicate_is_what_the_estimator_gives_on_the_test_rows(data: str) -> None:
    study = RealStudy(methods=WITHOUT_R, data=data)
    scenario = study.scenarios["plain"]
    assert (sum(scenario.sizes) + scenario.test, scenario.p) == (ROWS, COLUMNS)
    records = pd.DataFrame(study.replicate(scenario, 1))
    assert len(records) == len(SIZES) * len(COMPARED) + 1
    assert not records.duplicated(["method", "split"]).any()
    X, y = read_set(data, "plain")
    rows = draw_rows(X, y, scenario.generator(study.seed, 1))
    ours = records.set_index(["method", "split"])
    for way, labels in rows.sites.items():
        names = [f"site{j + 1}" for j in labels]
        model = FederatedLasso("selection").fit(rows.X, rows.y, sites=names)
        error = np.mean((rows.test_y - model.predict(rows.test_X)) ** 2)
        row = ours.loc["selection", way]
        assert row["test_mse"] == pytest.approx(error)
        assert row["active"] == (model.coef_ != 0).sum()
        assert row["support"] == ",".join(map(str, np.flatnonzero(model.coef_)))
        assert row["upload_bytes"] == model.ledger_.total().upload
    judge = ours.loc["LassoCV", "pooled"]
    scaler = StandardScaler().fit(rows.X)
    pooled = LassoCV(cv=10).fit(scaler.transform(rows.X), rows.y)
    error = np.mean((rows.test_y - pooled.predict(scaler.transform(rows.test_X))) ** 2)
    assert judge["test_mse"] == pytest.approx(error)
    assert np.isnan(judge["upload_bytes"])


def test_a_column_that_is_constant_in_training_does_no_harm(data: str) -> None:
    study = RealStudy(methods=WITHOUT_R, data=data)
    scenario = study.scenarios["nearly"]
    X, y = read_set(data, "nearly")
    constant = [
        number
        for number in range(10)
        if np.ptp(draw_rows(X, y, scenario.generator(study.seed, number)).X[:, 1]) == 0
    ]
    assert constant
    records = pd.DataFrame(study.replicate(scenario, constant[0]))
    assert np.isfinite(records["test_mse"]).all()
    assert not records["support"].str.split(",").map(lambda used: "1" in used).any()


@pytest.mark.usefixtures("no_r")
def test_without_r_the_judge_is_left_out_with_a_word(data: str) -> None:
    assert available_methods() == WITHOUT_R
    study = RealStudy(data=data)
    assert study.methods == WITHOUT_R
    assert any("cv.glmnet is left out" in notice for notice in study.notices)
    with pytest.raises(FedLassoError, match="requires Rscript with its package glmnet"):
        RealStudy(methods=("prediction", "glmnet min"))


def test_r_without_glmnet_is_no_judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(write_stand_in(tmp_path / "bin", missing=1)))
    assert available_methods() == WITHOUT_R


@pytest.mark.usefixtures("stand_in")
def test_rows_reach_r_as_they_are_and_its_fits_come_back() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 4))
    y = rng.standard_normal(30)
    fits = fit_glmnet(X, y, np.arange(30) % 10)
    assert [fit.judge for fit in fits] == list(GLMNET)
    plain = LinearRegression().fit(X, y)
    for fit in fits:
        assert fit.coefficients == pytest.approx(plain.coef_)
        assert fit.intercept == pytest.approx(plain.intercept_)
        assert (fit.lam, fit.seconds) == (0.25, 1.5)
    assert available_methods() == (*COMPARED, *JUDGES)
    with pytest.raises(FedLassoError, match=r"cv\.glmnet failed: folds are not numbered"):
        fit_glmnet(X, y, np.zeros(30, dtype=int))


def test_lasso_cv_tells_its_model_on_the_original_scale() -> None:
    rng = np.random.default_rng(4)
    X = 5 + rng.standard_normal((60, 3)) * [1, 10, 100]
    y = X @ [1.0, 0.2, 0.0] + 7 + 0.1 * rng.standard_normal(60)
    fit = fit_lasso_cv(X, y)
    assert X @ fit.coefficients + fit.intercept == pytest.approx(y, abs=0.6)


def test_stability_is_the_mean_jaccard_index_over_pairs() -> None:
    assert jaccard(["0,1", "1,2", "1"]) == pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)
    assert jaccard(["", ""]) == 1.0
    assert jaccard(["", "3"]) == 0.0
    assert np.isnan(jaccard(["1"]))


def outcome(
    scenario: str, number: int, method: str, way: str, mse: float, used: str
) -> dict[str, object]:
    return {
        "scenario": scenario, "replicate": number, "method": method, "split": way,
        "test_mse": mse, "active": len(used.split(",")), "support": used,
    }  # fmt: skip


def records() -> pd.DataFrame:
    """Two data sets, two replicates; prediction 10% worse on one and 20% better on the other."""
    rows = []
    for number in range(2):
        level = 1.0 + number
        for scenario, factor in (("boston", 1.1), ("prostate", 0.8)):
            rows += [
                outcome(scenario, number, "glmnet min", "pooled", level, "0,1,2"),
                outcome(scenario, number, "glmnet 1se", "pooled", 2 * level, f"0,{1 + number}"),
                outcome(scenario, number, "prediction", "sorted", factor * level, "0,1"),
                outcome(scenario, number, "selection", "sorted", 2 * factor * level, "0"),
            ]
    return pd.DataFrame(rows)


def test_fits_are_compared_with_their_judge_within_replicates() -> None:
    table = compare_with_judges(records()).set_index(["scenario", "method"])
    row = table.loc["boston", "prediction"]
    assert row["judge"] == "glmnet min"
    assert row["percent"] == pytest.approx(10)
    # Differences of 0.1 and 0.2, over a mean error of 1.5.
    assert row["percent_se"] == pytest.approx(100 * 0.05 / 1.5)
    assert table.loc["prostate", "prediction"]["percent"] == pytest.approx(-20)
    selection = table.loc["boston", "selection"]
    assert selection["judge"] == "glmnet 1se"
    assert (selection["active"], selection["judge_active"]) == (1, 2)
    assert selection["jaccard"] == 1.0
    assert selection["judge_jaccard"] == pytest.approx(1 / 3)


def test_the_verdict_counts_and_names() -> None:
    lines = real_conclusions(records())
    reported = "\n".join(lines)
    assert lines == [
        "The fit for prediction, with rows assigned to sites in order of the response, has a test "
        "error 5.00% lower than pooled cv.glmnet at lambda.min on average over 2 data sets. It is "
        "lower on 1 of 2, and at worst 10.00% higher (boston, SE 3.33). On the 1 not used to "
        "develop defaults it is 20.00% lower on average.",
        "The fit for selection, with rows assigned to sites in order of the response, has a test "
        "error 5.00% lower than pooled cv.glmnet at lambda.1se on average over 2 data sets. It is "
        "no worse, within 2 standard errors, on 1 of 2 (worse on boston). On the 1 not used to "
        "develop defaults it is 20.00% lower on average, and no worse on 1.",
        "The fit for selection, with rows assigned to sites in order of the response, uses 1.0 "
        "columns on average, pooled cv.glmnet at lambda.1se 2.0; it uses no more on 2 of 2. Its "
        "columns are more stable across replicates on 2 of 2 (mean Jaccard index 1.00 against "
        "0.33).",
    ]
    absent = "\n".join(missing_sets(records()))
    assert "Not in these records: diabetes" in absent
    assert "tools/export_data.R" in absent
    assert "Not in these records" not in reported


def test_one_replicate_is_told_without_what_it_cannot_tell() -> None:
    rows = records()
    reported = "\n".join(real_conclusions(rows[rows["replicate"] == 0]))
    assert "nan" not in reported
    assert "(boston)" in reported
    assert "Jaccard" not in reported


def test_without_glmnet_lasso_cv_judges() -> None:
    rows = records()
    rows = rows[rows["method"] != "glmnet 1se"].replace("glmnet min", "LassoCV")
    table = compare_with_judges(rows)
    assert set(table["judge"]) == {"LassoCV"}
    assert set(table["method"]) == {"prediction", "selection"}


@pytest.mark.standard
def test_the_command_runs_extends_and_concludes(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    run = ["study", "run", "--study", "real", "--data", data, "--out", out, "--workers", "1"]
    run += ["--scenarios", "plain,nearly", "--methods", ",".join(WITHOUT_R), "--replicates"]
    assert main([*run, "1"]) == 0
    reported = capsys.readouterr().err
    assert "data sets not found: boston," in reported
    assert "Rscript tools/export_data.R FOLDER" in reported
    assert main([*run, "2"]) == 0
    rows = Store(Path(out)).table()
    assert set(rows["scenario"]) == {"plain", "nearly"}
    assert len(rows) == 2 * 2 * (len(COMPARED) * len(SIZES) + 1)
    capsys.readouterr()
    assert main(["study", "summary", out]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last.startswith("Not in these records")
    for goal in COMPARED:
        start = f"The fit for {goal}, with rows assigned to sites".replace(
            "objective", "the objective"
        )
        assert sum(line.startswith(start) and "test error" in line for line in lines) == 3


@pytest.mark.usefixtures("stand_in")
def test_all_judges_stand_beside_the_goals(data: str) -> None:
    study = RealStudy(data=data)
    records = pd.DataFrame(study.replicate(study.scenarios["plain"], 0))
    assert list(records["method"][-len(JUDGES) :]) == list(JUDGES)
    glmnet = records[records["method"].isin(GLMNET)]
    assert glmnet["test_mse"].nunique() == 1
    assert set(glmnet["lam"]) == {0.25}


def test_other_studies_take_no_data_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "run", "--data", "x", "--out", str(tmp_path / "out")]) == 2
    assert "takes no --data" in capsys.readouterr().err


@pytest.mark.standard
def test_a_fit_that_raises_is_a_failed_replicate(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write_stand_in(tmp_path / "bin") / "Rscript"
    monkeypatch.setenv("PATH", str(program.parent))
    study = RealStudy(data=data)
    # It has said that glmnet is there, and then breaks.
    program.write_text(f"#!{sys.executable}\nraise SystemExit('broken')\n")
    reported = run_replicate((), study, study.scenarios["plain"], 0, {})
    assert isinstance(reported, str)
    assert "pooled cv.glmnet failed: broken" in reported
