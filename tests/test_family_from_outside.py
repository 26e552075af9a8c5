"""A family from outside the package, from CSV files to a card: one file, one call of `register`."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.gamma_outside import Gamma, GammaLoss, registered
from scipy.optimize import minimize
from sklearn.metrics import mean_gamma_deviance

from fedlasso.cli import main
from fedlasso.estimators.shared import WithIntercept
from fedlasso.numerics import Array

PENALTY = 0.05


@pytest.fixture(autouse=True)
def gamma() -> Iterator[None]:
    with registered():
        yield


def draw(rows: int = 240, seed: int = 5) -> pd.DataFrame:
    """Costs of stays, in natural units; two of five columns matter."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 91, rows).astype(float),
            "days": rng.integers(1, 60, rows).astype(float),
            "smoker": rng.integers(0, 2, rows).astype(float),
            "noise": rng.standard_normal(rows),
            "pressure": rng.integers(90, 201, rows).astype(float),
        }
    )
    mean = np.exp(1.0 + 0.02 * frame["age"] + 0.5 * frame["smoker"])
    return frame.assign(cost=rng.gamma(4.0, mean / 4.0))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    frame = draw()
    for name, part in (("north", frame[:80]), ("south", frame[80:150]), ("west", frame[150:])):
        part.to_csv(f"{name}.csv", index=False)
    return frame


def fit(*options: str) -> int:
    what = ["--target", "cost", "--family", "gamma", "--out", "model"]
    return main(["fit", "north.csv", "south.csv", "west.csv", *what, *options])


def solve(frame: pd.DataFrame, penalty: float) -> tuple[Array, float]:
    """Return the pooled gamma Lasso and its intercept, per unit of the columns, by scipy.

    Every coefficient is a difference of two that are not negative.
    """
    y = frame["cost"].to_numpy()
    X = frame.drop(columns="cost").to_numpy()
    centre = X.mean(axis=0)
    scale = X.std(axis=0)
    Z = (X - centre) / scale
    p = Z.shape[1]

    def objective(w: Array) -> tuple[float, Array]:
        eta = w[-1] + Z @ (w[:p] - w[p : 2 * p])
        ratio = y * np.exp(-eta)
        slopes = Z.T @ (1 - ratio) / len(y)
        value = float((eta + ratio).mean()) + penalty * w[: 2 * p].sum()
        return value, np.r_[slopes + penalty, penalty - slopes, (1 - ratio).mean()]

    bounds = [(0, None)] * (2 * p) + [(None, None)]
    start = np.r_[np.zeros(2 * p), np.log(y.mean())]
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    b = (found.x[:p] - found.x[p : 2 * p]) / scale
    return b, float(found.x[-1] - centre @ b)


@pytest.mark.standard
def test_a_family_from_outside_is_fitted_from_files_to_a_card(
    files: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit("--penalty", str(PENALTY)) == 0
    reported = capsys.readouterr().out
    assert "ratio of means per SD" in reported
    b, intercept = solve(files, PENALTY)
    table = pd.read_csv("model/coefficients.csv", index_col="name")["coefficient"]
    names = files.columns.drop("cost")
    np.testing.assert_allclose(table[names], b, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(table["(intercept)"], intercept, rtol=1e-6)
    assert set(names[table[names] != 0]) == {"age", "smoker"}
    document = json.loads(Path("model/model.json").read_text())
    # An intercept pays no penalty, so rounding of its slope limits how close a bound can come.
    assert document["certificate"]["relative_gap"] <= 1e-6
    assert document["settings"]["family"] == "gamma"
    assert document["assessment"]["explained"]["value"] > 0.2
    assert document["assessment"]["calibration"]["slope"]["value"] > 0
    card = Path("model/card.html").read_text()
    assert "A gamma Lasso" in card
    assert "How much the logarithm of the mean of cost changes with a column." in card
    assert "ratio of means per SD" in card
    assert "Calibration slope" in card
    # Stationarity, by sums over the files themselves.
    X = files[names].to_numpy()
    y = files["cost"].to_numpy()
    eta = table["(intercept)"] + X @ table[names].to_numpy()
    slopes = ((X - X.mean(axis=0)) / X.std(axis=0)).T @ (1 - y / np.exp(eta)) / len(y)
    on = (table[names] != 0).to_numpy()
    np.testing.assert_allclose(slopes[on], -PENALTY * np.sign(table[names][on]), atol=1e-6)
    assert (np.abs(slopes[~on]) <= PENALTY + 1e-6).all()
    assert main(["predict", "model", "north.csv", "--out", "out.csv"]) == 0
    reported = capsys.readouterr().out
    np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], np.exp(eta[:80]), rtol=1e-9)
    deviance = mean_gamma_deviance(y[:80], np.exp(eta[:80]))
    assert f"deviance {deviance:.4g} per row" in reported


@pytest.mark.standard
def test_its_penalty_is_chosen_and_its_columns_get_intervals(files: pd.DataFrame) -> None:
    assert fit("--cv", "3", "--interval", "age,noise", "--goal", "objective", "--no-compare") == 0
    document = json.loads(Path("model/model.json").read_text())
    assert {"age", "smoker"} <= {row["name"] for row in document["coefficients"]}
    intervals = {row["name"]: row for row in document["trust"]["named"]}
    # Responses vary by half of their mean, so the standard error of a slope per SD from 240 rows is
    # 0.5 / sqrt(240). Batches of rows estimate that to about 15%.
    for name, truth in (("age", 0.02), ("noise", 0.0)):
        low = intervals[name]["low"]
        high = intervals[name]["high"]
        assert low <= truth <= high
        width = 2 * 1.96 * 0.5 / np.sqrt(240) / files[name].std(ddof=0)
        assert 0.7 <= (high - low) / width <= 1.4


def test_it_refuses_what_it_cannot_take(
    files: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    files.assign(cost=0.0).to_csv("west.csv", index=False)
    assert fit() != 0
    reported = capsys.readouterr().err
    assert "site 'west': the target 'cost' is not above zero in 240 rows; correct or" in reported


def test_an_estimator_of_it_is_one_class(files: pd.DataFrame) -> None:
    class FederatedGammaLasso(WithIntercept):
        family = Gamma()

    X = files.drop(columns="cost")
    model = FederatedGammaLasso(penalty=PENALTY).fit(X, files["cost"], sites=np.arange(240) % 3)
    b, intercept = solve(files, PENALTY)
    np.testing.assert_allclose(model.coef_, b, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), np.exp(intercept + X @ b), rtol=1e-5)


def test_the_loss_is_half_of_the_deviance_and_its_slope_is_its_derivative() -> None:
    loss = GammaLoss()
    rng = np.random.default_rng(0)
    eta = rng.standard_normal(50)
    y = rng.gamma(2.0, 1.0, 50)
    assert 2 * loss.value(eta, y).mean() == pytest.approx(mean_gamma_deviance(y, np.exp(eta)))
    step = 1e-6
    slopes = (loss.value(eta + step, y) - loss.value(eta - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.derivative(eta, y), slopes, rtol=1e-6, atol=1e-7)
    u = loss.derivative(eta, y)
    np.testing.assert_allclose(loss.conjugate(u, y), u * eta - loss.value(eta, y), atol=1e-10)
