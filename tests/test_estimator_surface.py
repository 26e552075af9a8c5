"""Paths, models at other penalties, tables and plots of fitted estimators, against oracles."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fedlasso import (
    FederatedCoxLasso,
    FederatedLasso,
    FederatedLogisticLasso,
    FederatedPoissonLasso,
    FedLassoError,
    InProcess,
    Site,
)
from fedlasso.fitting.examination.measures import find_concordance
from fedlasso.models import predict_file, read_document
from fedlasso.numerics import Array

ROWS = 240
SITES = np.arange(ROWS) % 3


def draw(seed: int = 0) -> tuple[Array, Array]:
    """Columns on different scales, and linear predictors."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 6)) * [1, 10, 0.1, 1, 5, 2] + [0, 50, 3, -2, 0, 100]
    return X, 0.8 * (X[:, 0] - (X[:, 1] - 50) / 10 + X[:, 3] + 2)


def responses(family: str) -> Any:
    _, eta = draw()
    rng = np.random.default_rng(1)
    if family == "linear":
        return eta + rng.standard_normal(ROWS)
    if family == "binomial":
        return (rng.uniform(size=ROWS) < expit(eta)).astype(int)
    if family == "poisson":
        return rng.poisson(np.exp(0.5 * eta)).astype(float)
    lasted = rng.exponential(np.exp(-eta))
    end = rng.exponential(2.0, ROWS)
    return np.array(list(zip(lasted <= end, np.minimum(lasted, end), strict=True)), dtype="?,f8")


ESTIMATORS: dict[str, Any] = {
    "linear": FederatedLasso,
    "binomial": FederatedLogisticLasso,
    "poisson": FederatedPoissonLasso,
    "cox": FederatedCoxLasso,
}


def fitted(family: str, **settings: Any) -> Any:
    X, _ = draw()
    return ESTIMATORS[family](**settings).fit(X, responses(family), sites=SITES)


def unit_deviances(family: str, eta: Array, y: Array) -> Array:
    """The deviance of every row, from textbooks."""
    if family == "linear":
        return np.asarray((y - eta) ** 2)
    if family == "binomial":
        return np.asarray(2 * np.log1p(np.exp(np.where(y == 1, -eta, eta))))
    mu = np.exp(eta)
    log = np.log(np.where(y > 0, y, 1.0) / mu)
    return np.asarray(2 * (np.where(y > 0, y * log, 0.0) - (y - mu)))


MEANS: dict[str, Any] = {"linear": lambda eta: eta, "binomial": expit, "poisson": np.exp}
LINKS: dict[str, Any] = {"linear": lambda mean: mean, "poisson": np.log}


@pytest.mark.parametrize("family", MEANS)
def test_every_penalty_of_the_path_has_the_pooled_optimum_on_glmnets_scale(family: str) -> None:
    X, _ = draw()
    y = responses(family)
    model = fitted(family)
    path = model.path_
    Z = StandardScaler().fit_transform(X)
    scale = X.std(axis=0)
    empty = y.mean()
    # glmnet's largest lambda: columns with standard deviation one, by 1/n, and a loss per row.
    largest = np.abs(Z.T @ (y - empty) / ROWS).max()
    np.testing.assert_array_equal(path.nzero == 0, path.penalties > largest * (1 - 1e-6))
    assert not path.nzero[0]
    least = unit_deviances(family, np.full(ROWS, model.intercept_at(path.penalties[0])), y).sum()
    for k, penalty in enumerate(path.penalties):
        eta = X @ path.coefficients[:, k] + path.intercepts[k]
        slopes = Z.T @ (y - MEANS[family](eta)) / ROWS
        b = path.coefficients[:, k] * scale
        # The conditions of the optimum of loss / n + penalty * ||b||_1.
        assert np.abs(slopes).max() <= penalty + 2e-4 * path.penalties[0]
        np.testing.assert_allclose(slopes[b != 0], penalty * np.sign(b[b != 0]), atol=2e-4)
        explained = 1 - unit_deviances(family, eta, y).sum() / least
        assert path.dev_ratio[k] == pytest.approx(explained, abs=1e-6)
        assert path.gaps[k] < 1e-7
        np.testing.assert_allclose(model.coef_at(penalty).ravel(), path.coefficients[:, k])
    np.testing.assert_array_equal(path.nzero, (path.coefficients != 0).sum(axis=0))
    assert (np.diff(path.dev_ratio) > -1e-9).all()


def test_a_penalty_off_the_grid_is_solved_by_asking_again_and_charged() -> None:
    X, _ = draw()
    y = responses("binomial")
    model = fitted("binomial")
    trips = model.ledger_.trips
    penalty = 0.0371
    scaler = StandardScaler().fit(X)
    pooled = LogisticRegression(
        l1_ratio=1.0, C=1 / (penalty * ROWS), solver="saga", tol=1e-12, max_iter=100_000
    ).fit(scaler.transform(X), y)
    np.testing.assert_allclose(model.coef_at(penalty), pooled.coef_ / scaler.scale_, atol=1e-5)
    assert model.model_at(penalty).gap < 1e-7
    spent = model.ledger_.trips
    assert spent > trips
    chance = model.predict_proba(X, s=penalty)
    np.testing.assert_allclose(chance, pooled.predict_proba(scaler.transform(X)), atol=1e-5)
    assert model.ledger_.trips == spent
    again = ESTIMATORS["binomial"](penalty=penalty).fit(X, y, sites=SITES)
    np.testing.assert_allclose(model.coef_at(penalty), again.coef_, atol=1e-5)


@pytest.mark.parametrize("family", ESTIMATORS)
def test_s_names_glmnets_two_penalties(family: str) -> None:
    model = fitted(family, cv=4)
    cv = model.cv_
    assert cv.lambda_min == cv.penalties[np.argmin(cv.mean)]
    limit = cv.mean.min() + cv.se[np.argmin(cv.mean)]
    assert cv.lambda_1se == cv.penalties[cv.mean <= limit].max()
    assert list(cv.to_frame()) == ["lambda", "cvm", "cvsd", "nzero"]
    for s, penalty in (("min", cv.lambda_min), ("lambda.1se", cv.lambda_1se)):
        assert model.model_at(s).penalty == penalty
        np.testing.assert_array_equal(model.coef_at(s), model.coef_at(penalty))
    assert model.coef_at("1se").shape == model.coef_.shape
    X, _ = draw()
    assert not np.array_equal(model._score(X, s="1se"), model._score(X))
    np.testing.assert_array_equal(model.coef_at(), model.coef_)


def test_the_path_by_moments_is_the_path_by_asking_again() -> None:
    model = fitted("linear", cv=5)
    trips = model.ledger_.trips
    path = model.path_
    assert model.ledger_.trips == trips
    some = path.penalties[[3, 40, 80]] * (1 + 1e-9)
    for k, penalty in zip((3, 40, 80), some, strict=True):
        np.testing.assert_allclose(model.coef_at(penalty), path.coefficients[:, k], atol=1e-6)
    assert model.ledger_.trips > trips


@pytest.mark.parametrize("settings", [{"keep": [2]}, {"l1_ratio": 0.5}, {"bounds": {0: (0, 0.3)}}])
def test_special_penalties_have_paths_of_their_own_form(settings: dict[str, Any]) -> None:
    model = fitted("linear", penalty=0.05, **settings)
    path = model.path_
    assert path.penalties[-1] == 0.05
    np.testing.assert_allclose(path.coefficients[:, -1], model.coef_, atol=1e-6)
    middle = float(path.penalties[7])
    again = fitted("linear", penalty=middle, **settings)
    np.testing.assert_allclose(path.coefficients[:, 7], again.coef_, atol=1e-5)
    assert path.intercepts[7] == pytest.approx(again.intercept_, abs=1e-4)


def test_site_effects_and_site_weights_stay_in_force_at_other_penalties() -> None:
    X, _ = draw()
    y = responses("linear") * (1 + SITES) + 3.0 * SITES
    model = FederatedLasso("objective", site_effects=True).fit(X, y, sites=SITES)
    again = FederatedLasso(penalty=0.2, site_effects=True).fit(X, y, sites=SITES)
    np.testing.assert_allclose(model.coef_at(0.2), again.coef_, atol=1e-6)
    assert model.intercept_at(0.2) == pytest.approx(again.intercept_, abs=1e-5)
    model = FederatedLasso("objective", site_weights="variance").fit(X, y, sites=SITES)
    assert model.trust_ is not None
    assert model.trust_.site_weights is not None
    weights = np.array([model.trust_.site_weights[str(site)] for site in SITES])
    assert weights.min() < 0.5
    again = FederatedLasso(penalty=0.2).fit(X, y, sites=SITES, sample_weight=weights)
    np.testing.assert_allclose(model.coef_at(0.2), again.coef_, atol=1e-6)


def test_a_stored_model_says_what_it_lacks(tmp_path: Path) -> None:
    model = fitted("linear", penalty=0.1)
    stored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(stored.coef_at(0.1), model.coef_)
    with pytest.raises(FedLassoError, match=r"no coefficients at the penalty 0\.2; fit again with"):
        stored.coef_at(0.2)
    with pytest.raises(FedLassoError, match="the path of a stored model needs its sites"):
        _ = stored.path_
    for s, message in (
        ("min", "the penalty was given, so nothing was cross-validated"),
        ("max", "s is 'max'; use 'min', '1se' or a number"),
        (-1.0, "zero or more"),
    ):
        with pytest.raises(FedLassoError, match=message):
            model.coef_at(s)
    with pytest.raises(FedLassoError, match="there is no cross-validation to plot"):
        model.plot_cv()


@pytest.mark.parametrize("family", ESTIMATORS)
def test_a_folder_gives_the_estimator_back(family: str, tmp_path: Path) -> None:
    X, _ = draw()
    model = fitted(family, penalty=0.05)
    model.to_folder(tmp_path / "model")
    back = type(model).from_folder(tmp_path / "model")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    np.testing.assert_array_equal(back.coef_, model.coef_)
    assert back.get_params()["penalty"] == 0.05
    assert back.summary() == model.summary()
    assert back.coefficient_table().equals(model.coefficient_table())
    back.to_folder(tmp_path / "again")
    both = [(tmp_path / name / "model.json").read_bytes() for name in ("model", "again")]
    assert both[0].partition(b'"warnings"')[0] == both[1].partition(b'"warnings"')[0]
    other = FederatedPoissonLasso if family == "linear" else FederatedLasso
    with pytest.raises(FedLassoError, match=f"holds a {family} model, and"):
        other.from_folder(tmp_path / "model")


def test_the_table_has_brooms_columns_and_true_ratios() -> None:
    model = fitted("binomial", intervals=[0, 4])
    table = model.coefficient_table()
    assert list(table) == [
        "term", "estimate", "standardised", "debiased", "std.error", "statistic", "conf.low",
        "conf.high", "p.value", "adj.p.value", "ratio",
    ]  # fmt: skip
    assert list(table["term"]) == ["(Intercept)", *(f"x{k}" for k in range(6))]
    np.testing.assert_array_equal(table["estimate"], [*model.intercept_, *model.coef_[0]])
    np.testing.assert_allclose(table["ratio"], np.exp(table["estimate"]))
    X, _ = draw()
    np.testing.assert_allclose(table["standardised"][1:], model.coef_[0] * X.std(axis=0))
    known = table["std.error"].notna()
    assert list(table["term"][known]) == ["x0", "x4"]
    of = table[known]
    np.testing.assert_allclose(of["statistic"], of["debiased"] / of["std.error"])
    np.testing.assert_allclose(of["p.value"], 2 * norm.sf(np.abs(of["statistic"])), rtol=1e-6)
    row = {own.name: own for own in model.trust_.named}["x0"]
    assert float(table["conf.low"][1]) == row.low
    ratios = model.coefficient_table(exponentiate=True)
    assert float(ratios["conf.low"][1]) == pytest.approx(np.exp(row.low))
    assert "debiased" not in model.coefficient_table("1se")


def test_plots_draw_on_given_axes_and_on_new_ones() -> None:
    model = fitted("binomial", cv=4)
    for plot in (model.plot_cv, model.plot_path, model.plot_forest, model.plot_calibration):
        ax = Figure().subplots()
        assert plot(ax=ax) is ax
        assert ax.has_data()
    assert model.plot_roc(ax=Figure().subplots()).get_xlabel().startswith("false positive")
    with pytest.raises(FedLassoError, match="responses have no survival curves"):
        model.plot_survival()
    survival = fitted("cox", penalty=0.05).plot_survival(ax=Figure().subplots())
    assert survival.get_ylabel() == "proportion event-free"


def test_classes_may_have_weights() -> None:
    X, _ = draw()
    y = np.where(responses("binomial") == 1, "sick", "well")
    count = {label: (y == label).sum() for label in ("sick", "well")}
    weight = np.array([ROWS / (2 * count[label]) for label in y])
    own = np.random.default_rng(0).uniform(0.5, 2, ROWS)
    named = {"sick": ROWS / (2 * count["sick"]), "well": ROWS / (2 * count["well"])}
    by_hand = FederatedLogisticLasso(penalty=0.03).fit(X, y, SITES, sample_weight=weight * own)
    for how in ("balanced", named):
        model = FederatedLogisticLasso(penalty=0.03, class_weight=how)
        model.fit(X, y, SITES, sample_weight=own)
        np.testing.assert_allclose(model.coef_, by_hand.coef_, atol=1e-8)
    sites = InProcess([Site("a", X, responses("binomial"), loss="binomial")])
    with pytest.raises(FedLassoError, match="class_weight requires rows in this process"):
        FederatedLogisticLasso(class_weight="balanced").fit(sites)


def test_notebooks_show_the_model() -> None:
    model = FederatedLogisticLasso(penalty=0.05)
    assert "FederatedLogisticLasso" in model._repr_html_()
    X, _ = draw()
    model.fit(X, responses("binomial"), sites=SITES)
    shown = model._repr_mimebundle_()
    assert "odds ratio per SD" in shown["text/html"]
    assert "certificate: less than" in shown["text/html"]
    assert shown["text/plain"] == "FederatedLogisticLasso(penalty=0.05)"


@pytest.mark.parametrize("family", ESTIMATORS)
def test_showing_a_model_asks_no_site(family: str, tmp_path: Path) -> None:
    model = fitted(family, penalty=0.05)
    model.to_folder(tmp_path / "model")
    before = model.ledger_
    for own in (
        model,
        type(model).from_folder(tmp_path / "model"),
        pickle.loads(pickle.dumps(model)),
        make_pipeline(model),
    ):
        assert type(model).__name__ in own._repr_html_()
        assert type(model).__name__ in own._repr_mimebundle_()["text/html"]
        assert "_repr_html_" in dir(own)
    assert model.ledger_ == before


@pytest.mark.parametrize("family", ESTIMATORS)
def test_scores_are_of_predictions_with_the_offset(family: str) -> None:
    X, _ = draw()
    y = responses(family)
    model = fitted(family, penalty=0.05)
    offset = -1.5 * (X @ model.coef_.ravel())
    part = model.predict(X, offset)
    if family == "cox":
        expected = find_concordance(y["f1"], y["f0"], part)
    elif family == "binomial":
        expected = (part == y).mean()
    else:
        empty = unit_deviances(family, np.full(ROWS, LINKS[family](y.mean())), y).sum()
        expected = 1 - unit_deviances(family, LINKS[family](part), y).sum() / empty
    assert model.score(X, y, offset=offset) == pytest.approx(expected)
    assert model.score(X, y, offset=offset) < model.score(X, y)


@pytest.mark.parametrize("family", ESTIMATORS)
def test_tables_of_a_path_have_an_intercept_if_the_model_has_one(family: str) -> None:
    path = fitted(family, penalty=0.05).path_
    table = path.to_frame()
    names = ["(Intercept)"] if family != "cox" else []
    names += [f"x{k}" for k in range(6)]
    assert list(table) == ["lambda", "nzero", "dev.ratio", "gap", *names]
    for k in range(6):
        np.testing.assert_array_equal(table[f"x{k}"], path.coefficients[k])


@pytest.mark.parametrize("family", ESTIMATORS)
def test_a_model_with_an_offset_demands_it_before_and_after_storing(
    family: str, tmp_path: Path
) -> None:
    X, eta = draw()
    y = responses(family)
    offset = eta / 4
    model = ESTIMATORS[family](penalty=0.05).fit(X, y, sites=SITES, offset=offset)
    model.to_folder(tmp_path / "model")
    for own in (model, type(model).from_folder(tmp_path / "model")):
        np.testing.assert_array_equal(own.predict(X, offset), model.predict(X, offset))
        for ask in (own.predict, lambda X, own=own: own.score(X, y)):
            with pytest.raises(FedLassoError, match="was fitted with an offset; give offset, or"):
                ask(X)


def test_a_folder_names_response_and_offset_of_a_formula(tmp_path: Path) -> None:
    X, eta = draw()
    y = responses("cox")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame = frame.assign(years=y["f1"], died=y["f0"], visits=responses("poisson"), off=eta / 4)
    survival = FederatedCoxLasso(penalty=0.05)
    survival.fit(frame, formula="Surv(years, died) ~ a + b", sites=SITES)
    survival.to_folder(tmp_path / "cox")
    card = (tmp_path / "cox" / "card.html").read_text()
    assert "<title>Model of time to died</title>" in card
    schema = read_document(tmp_path / "cox" / "model.json").schema
    assert (schema.target, schema.event) == ("years", "died")
    rates = FederatedPoissonLasso(penalty=0.05)
    rates.fit(frame, formula="visits ~ a + b", sites=SITES, offset="off")
    rates.to_folder(tmp_path / "poisson")
    document = read_document(tmp_path / "poisson" / "model.json")
    assert document.title == "Model of visits"
    assert document.schema.offset == "off"
    frame.to_csv(tmp_path / "new.csv", index=False)
    predicted = predict_file(document, tmp_path / "new.csv")
    np.testing.assert_allclose(predicted.values, rates.predict(frame, offset="off"), rtol=1e-12)


@pytest.mark.parametrize("family", ESTIMATORS)
def test_nzero_counts_the_fit_to_all_rows_everywhere(family: str, tmp_path: Path) -> None:
    model = fitted(family, cv=4)
    model.to_folder(tmp_path / "model")
    curve = pd.read_csv(tmp_path / "model" / "curve.csv", dtype={"nzero": str})
    assert list(curve) == ["lambda", "cvm", "cvsd", "nzero", "mark"]
    known = curve["nzero"].dropna()
    assert known.str.fullmatch(r"\d+").all()
    chosen = curve["mark"].str.contains("chosen").fillna(False).astype(bool)
    count = np.count_nonzero(model.coef_at(model.cv_.chosen))
    assert list(curve["nzero"][chosen]) == [str(count)]
    np.testing.assert_array_equal(model.cv_.nzero, curve["nzero"].astype(float))
    path = model.path_
    np.testing.assert_array_equal(model.cv_.nzero, path.nzero)
    model.to_folder(tmp_path / "again")
    for name in ("curve", "path"):
        table = pd.read_csv(tmp_path / "again" / f"{name}.csv")
        assert table["nzero"].dtype == int
        np.testing.assert_array_equal(table["nzero"], path.nzero)
    head = ["lambda", "nzero", "dev.ratio"]
    assert list(table)[:3] == head
    assert set(table) - set(head) <= set(model.columns_)
