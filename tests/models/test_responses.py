"""Fits of classes, counts and survival times from files, and back to predictions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import Lasso
from sklearn.metrics import log_loss, mean_poisson_deviance, roc_auc_score
from tables.test_outcomes import draw_outcomes, options_of

from fedlasso import FederatedCoxLasso, FederatedLogisticLasso, FederatedPoissonLasso
from fedlasso.cli import main
from fedlasso.fitting.examination.measures import find_concordance
from fedlasso.models import read_document

pytestmark = pytest.mark.usefixtures("no_charts")

FAMILIES = ("binomial", "poisson", "cox")
SHARED = ("--weights", "weight", "--offset", "offset", "--penalty", 0.05, "--keep", "ward")
RATIOS = {"binomial": "odds ratio", "poisson": "rate ratio", "cox": "hazard ratio"}
NAMES = {"binomial": "binomial", "poisson": "Poisson", "cox": "Cox"}
ESTIMATORS: dict[str, Any] = {
    "binomial": FederatedLogisticLasso,
    "poisson": FederatedPoissonLasso,
    "cox": FederatedCoxLasso,
}


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def frames() -> list[pd.DataFrame]:
    return [draw_outcomes(rows, seed) for seed, rows in enumerate((80, 60, 50))]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of every family, with weights, an offset and columns that are kept."""
    folder = tmp_path_factory.mktemp("families")
    files = []
    for j, frame in enumerate(frames()):
        files.append(folder / f"s{j}.csv")
        frame.to_csv(files[-1], index=False)
    draw_outcomes(70, 9).to_csv(folder / "new.csv", index=False)
    for family in FAMILIES:
        what = options_of(family, weights="weight", offset="offset")
        out = folder / family
        assert run("fit", *files, *what, *SHARED[4:], "--no-compare", "--out", out) == 0
    return folder


def encode(frame: pd.DataFrame) -> pd.DataFrame:
    X = frame[["age", "dose", "noise"]].copy()
    for level in ("main", "west"):
        X[f"ward={level}"] = (frame["ward"] == level).astype(float)
    return X


@pytest.mark.parametrize("family", FAMILIES)
def test_files_give_the_model_and_the_predictions_of_arrays(base: Path, family: str) -> None:
    whole = pd.concat(frames(), ignore_index=True)
    y: Any = {"binomial": whole["yes"], "poisson": whole["count"], "cox": whole[["dead", "time"]]}
    model = ESTIMATORS[family](penalty=0.05, keep=["ward=main", "ward=west"])
    model.fit(
        encode(whole),
        y[family],
        sites=np.repeat(["s0", "s1", "s2"], (80, 60, 50)),
        sample_weight=whole["weight"],
        offset=whole["offset"],
    )
    table = pd.read_csv(base / family / "coefficients.csv").set_index("name")
    columns = encode(whole).columns
    np.testing.assert_allclose(table.loc[columns, "coefficient"], np.ravel(model.coef_), atol=1e-12)
    name = RATIOS[family].replace(" ", "_")
    np.testing.assert_allclose(table.loc[columns, name], np.exp(np.ravel(model.coef_)))
    scaled = np.exp(table.loc[columns, "standardised"])
    np.testing.assert_allclose(table.loc[columns, f"{name}_per_sd"], scaled)
    assert ("(intercept)" in table.index) == (family != "cox")
    assert (table.loc[["ward=main", "ward=west"], "coefficient"] != 0).all()
    reported = base / f"{family}.csv"
    assert run("predict", base / family, base / "new.csv", "--out", reported) == 0
    new = draw_outcomes(70, 9)
    offset = new["offset"]
    if family == "binomial":
        expected = model.predict_proba(encode(new), offset=offset)[:, 1]
    elif family == "poisson":
        expected = model.predict(encode(new), offset=offset)
    else:
        expected = np.exp(model.predict(encode(new), offset=offset))
    np.testing.assert_allclose(pd.read_csv(reported)["prediction"], expected, rtol=1e-9)


def test_predictions_are_judged_where_the_outcome_is_known(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = draw_outcomes(70, 9)
    said = {}
    values = {}
    for family in FAMILIES:
        out = ("--out", base / "predictions.csv", "--overwrite")
        assert run("predict", base / family, base / "new.csv", *out) == 0
        said[family] = capsys.readouterr().out.splitlines()[-1].rpartition(": ")[2]
        values[family] = pd.read_csv(base / "predictions.csv")["prediction"].to_numpy()
    chance = values["binomial"]
    deviance = 2 * log_loss(new["yes"], chance)

    # The empty model has the offset too.
    def excess(c: float) -> float:
        return float((expit(c + new["offset"]) - new["yes"]).sum())

    empty = 2 * log_loss(new["yes"], expit(brentq(excess, -9.0, 9.0) + new["offset"]))
    assert said["binomial"] == (
        f"70 rows, deviance {deviance:.4g} per row, deviance explained {1 - deviance / empty:.4g}, "
        f"AUROC {roc_auc_score(new['yes'], chance):.4g}"
    )
    rates = mean_poisson_deviance(new["count"], values["poisson"])
    assert said["poisson"].startswith(f"70 rows, deviance {rates:.4g} per row, deviance explained ")
    times, dead = new["time"].to_numpy(), new["dead"].to_numpy()
    concordance = find_concordance(times, dead, values["cox"])
    assert said["cox"] == f"70 rows, concordance {concordance:.4g}"


def test_concordance_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    times = rng.integers(1, 30, 80).astype(float)
    dead = rng.uniform(size=80) < 0.6
    risk = rng.integers(0, 9, 80).astype(float)
    won = pairs = 0.0
    for i in np.flatnonzero(dead):
        for j in range(80):
            if times[j] > times[i] or (times[j] == times[i] and not dead[j]):
                pairs += 1
                won += (risk[i] > risk[j]) + (risk[i] == risk[j]) / 2
    assert find_concordance(times, dead, risk) == pytest.approx(won / pairs)


@pytest.mark.usefixtures("charts")
@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_tells_its_family_and_its_ratios(
    base: Path, family: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", base / family) == 0
    reported = capsys.readouterr().out
    assert f"{RATIOS[family]} per SD" in reported
    assert "never penalised: ward=main, ward=west" in reported
    document = read_document(base / family / "model.json")
    assert document.settings.keep == ("ward=main", "ward=west")
    written = json.loads((base / family / "model.json").read_text())["schema"]
    assert (written["family"], written["offset"], written["weights"]) == (
        family, "offset", "weight",
    )  # fmt: skip
    assert written["event"] == ("dead" if family == "cox" else None)
    card = (base / family / "card.html").read_text()
    assert f"{RATIOS[family]} per SD" in card
    assert f"A {NAMES[family]} Lasso with" in card
    assert "ean squared error" not in card


def test_the_offset_of_a_model_must_be_there_to_predict(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw_outcomes(20).drop(columns="offset").to_csv(base / "without.csv", index=False)
    assert run("predict", base / "poisson", base / "without.csv") == 2
    error = capsys.readouterr().err
    assert error.endswith("without.csv lacks the column 'offset', the model's offset\n")
    draw_outcomes(20).assign(offset=np.nan).to_csv(base / "without.csv", index=False)
    assert run("predict", base / "poisson", base / "without.csv") == 2
    assert "the offset column 'offset' is missing or infinite in 20 rows" in capsys.readouterr().err


def test_an_interrupted_fit_recalls_its_outcome(base: Path) -> None:
    plan = json.loads((base / "cox" / "plan.json").read_text())
    source = plan["source"]
    assert (source["time"], source["event"], source["weights"]) == ("time", "dead", "weight")
    assert plan["settings"]["family"] == "cox"
    (base / "cox" / "model.json").rename(base / "kept.json")
    assert run("fit", "--resume", base / "cox") == 0
    assert (base / "cox" / "model.json").read_bytes() == (base / "kept.json").read_bytes()


@pytest.mark.standard
def test_a_penalty_is_chosen_and_site_effects_are_told(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(base.glob("s?.csv"))
    what = [*options_of("binomial"), "--site-effects", "--l1-ratio", 0.8]
    assert run("fit", *files, *what, "--out", tmp_path / "model") == 0
    said = capsys.readouterr().out
    assert "site effects: predictions use the mean of the sites' intercepts" in said
    assert "deviance per row: " in said
    document = read_document(tmp_path / "model" / "model.json")
    assert document.family == "elastic net"
    assert document.curve is not None


def draw_costs(rows: int, seed: int) -> pd.DataFrame:
    """A cost whose fee, the offset, has a mean far from zero."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.integers(20, 91, rows), "systolic": rng.normal(135, 20, rows).round()}
    )
    frame["weight"] = rng.uniform(0.5, 2.0, rows)
    frame["fee"] = rng.normal(300.0, 50.0, rows)
    frame["cost"] = frame["fee"] + 5 * frame["age"] + rng.normal(0.0, 30.0, rows)
    return frame


@pytest.mark.parametrize("more", [(), ("--site-effects",), ("--weights", "weight")])
def test_an_offset_of_a_linear_model_is_what_its_intercept_leaves(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in glmnet, the fit is that of the response less the offset."""
    files = []
    parts = [draw_costs(rows, seed) for seed, rows in enumerate((80, 60, 50))]
    for j, frame in enumerate(parts):
        files.append(tmp_path / f"s{j}.csv")
        frame.to_csv(files[-1], index=False)
    whole = pd.concat(parts, ignore_index=True)
    whole.to_csv(tmp_path / "whole.csv", index=False)
    drop = ("--drop", "weight") if "weight" not in more else ()
    options = ("--target", "cost", "--offset", "fee", *drop, *more, "--no-compare")
    assert run("fit", *files, *options, "--penalty", 0.5, "--out", tmp_path / "model") == 0
    table = pd.read_csv(tmp_path / "model" / "coefficients.csv").set_index("name")["coefficient"]
    X = whole[["age", "systolic"]].to_numpy(dtype=float)
    y = (whole["cost"] - whole["fee"]).to_numpy()
    w = whole["weight"].to_numpy() if "weight" in more else np.ones(len(y))
    residual = y - X @ table[["age", "systolic"]] - table["(intercept)"]
    # Of sites with intercepts of their own the model has the mean.
    assert float(w @ residual) / w.sum() == pytest.approx(0.0, abs=1e-9)
    if "--site-effects" not in more:
        mean, spread = _weighted_scale(X, w)
        alone = Lasso(alpha=0.5, tol=1e-12).fit((X - mean) / spread, y, sample_weight=w)
        np.testing.assert_allclose(table[["age", "systolic"]], alone.coef_ / spread, rtol=1e-7)
        intercept = alone.intercept_ - mean @ (alone.coef_ / spread)
        assert table["(intercept)"] == pytest.approx(intercept, rel=1e-7)
    capsys.readouterr()
    reported = tmp_path / "predictions.csv"
    assert run("predict", tmp_path / "model", tmp_path / "whole.csv", "--out", reported) == 0
    share = float(capsys.readouterr().out.rpartition("R^2 ")[2])
    empty = y - float(w @ y) / w.sum()
    assert share == pytest.approx(1 - (residual @ residual) / (empty @ empty), abs=1e-3)


def _weighted_scale(X: Any, w: Any) -> tuple[Any, Any]:
    mean = w @ X / w.sum()
    return mean, np.sqrt(w @ (X - mean) ** 2 / w.sum())


def test_predictions_with_an_offset_are_as_good_as_the_card_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for seed in range(3):
        files.append(tmp_path / f"s{seed}.csv")
        draw_costs(150, seed).to_csv(files[-1], index=False)
    options = ("--target", "cost", "--offset", "fee", "--drop", "weight", "--no-compare")
    assert run("fit", *files, *options, "--out", tmp_path / "model") == 0
    error = read_document(tmp_path / "model" / "model.json").error
    assert error is not None
    assert error.r2 is not None
    assert error.r2 > 0.8
    capsys.readouterr()
    for file in files:
        assert (
            run("predict", tmp_path / "model", file, "--out", tmp_path / f"{file.stem}.told.csv")
            == 0
        )
        share = float(capsys.readouterr().out.rpartition("R^2 ")[2])
        assert share == pytest.approx(error.r2, abs=0.05)
