"""Estimators of classes, counts and survival times, against independent solvers."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, PoissonRegressor
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
from fedlasso.numerics import Array

SITES = np.arange(150) % 3


def draw(seed: int = 0, rows: int = 150) -> tuple[Array, Array]:
    """Columns on different scales, and linear predictors."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 6)) * [1, 10, 0.1, 1, 5, 2] + [0, 50, 3, -2, 0, 100]
    eta = (X[:, 0] - (X[:, 1] - 50) / 10 + X[:, 3] + 2) * 0.8
    return X, eta


def labels(seed: int = 0) -> tuple[Array, Any]:
    X, eta = draw(seed)
    yes = np.random.default_rng(seed + 9).uniform(size=len(eta)) < expit(eta)
    return X, np.where(yes, "sick", "healthy")


def counts(seed: int = 0) -> tuple[Array, Array]:
    X, eta = draw(seed)
    return X, np.random.default_rng(seed + 9).poisson(np.exp(0.5 * eta)).astype(float)


def times(seed: int = 0) -> tuple[Array, Any]:
    X, eta = draw(seed)
    rng = np.random.default_rng(seed + 9)
    lasted = rng.exponential(np.exp(-eta))
    end = rng.exponential(2.0, len(eta))
    return X, np.array(list(zip(lasted <= end, np.minimum(lasted, end), strict=True)), dtype="?,f8")


def test_a_classifier_is_the_pooled_logistic_lasso_with_any_two_labels() -> None:
    X, y = labels()
    model = FederatedLogisticLasso(penalty=0.02).fit(X, y, sites=SITES)
    assert model.classes_.tolist() == ["healthy", "sick"]
    scaler = StandardScaler().fit(X)
    pooled = LogisticRegression(
        l1_ratio=1.0, C=1 / (0.02 * len(y)), solver="saga", tol=1e-12, max_iter=100_000
    ).fit(scaler.transform(X), y)
    np.testing.assert_allclose(model.coef_, pooled.coef_ / scaler.scale_, rtol=0, atol=1e-5)
    chance = model.predict_proba(X)
    np.testing.assert_allclose(chance, pooled.predict_proba(scaler.transform(X)), atol=1e-5)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    np.testing.assert_allclose(expit(model.decision_function(X)), chance[:, 1])
    assert (model.predict(X) == np.where(chance[:, 1] > 0.5, "sick", "healthy")).all()
    other = FederatedLogisticLasso(penalty=0.02).fit(X, y == "sick", sites=SITES)
    assert np.array_equal(other.coef_, model.coef_)
    assert other.predict(X).dtype == bool


def test_more_than_two_classes_or_one_are_refused_in_one_sentence() -> None:
    X, _ = labels()
    with pytest.raises(FedLassoError, match=r"Only binary classification .* with 3 classes; fit"):
        FederatedLogisticLasso().fit(X, SITES)
    with pytest.raises(FedLassoError, match="y holds one class, 'a', in every row"):
        FederatedLogisticLasso().fit(X, np.full(150, "a"))


def test_rates_are_those_of_an_independent_solver_with_an_offset() -> None:
    X, y = counts()
    exposure = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    keep = list(range(6))
    model = FederatedPoissonLasso(penalty=0.1, keep=keep)
    model.fit(X, y * 1.0, sites=SITES, offset=np.log(exposure))
    # With nothing penalised, rates per exposure have the exposure as a weight.
    pooled = PoissonRegressor(alpha=0, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    scaler = StandardScaler().fit(X)
    pooled.fit(scaler.transform(X), y / exposure, sample_weight=exposure)
    np.testing.assert_allclose(model.coef_, pooled.coef_ / scaler.scale_, rtol=0, atol=1e-5)
    rates = model.predict(X, offset=np.zeros(len(y)))
    np.testing.assert_allclose(rates, pooled.predict(scaler.transform(X)), rtol=1e-4)
    ratio = model.predict(X, offset=np.log(exposure)) / rates
    np.testing.assert_allclose(ratio, exposure)
    assert model.score(X, y, offset=np.log(exposure)) > 0.3
    with pytest.raises(FedLassoError, match="y is negative in 1 row; counts begin at zero"):
        FederatedPoissonLasso().fit(X, np.append(y[:-1], -1))


def breslow(b: Array, X: Array, y: Any) -> float:
    """Minus the log partial likelihood of all sites, each with its own risk sets; no ties."""
    total = 0.0
    event, time = y["f0"], y["f1"]
    for site in range(3):
        own = site == SITES
        eta = X[own] @ b
        for i in np.flatnonzero(event[own]):
            total += np.log(np.exp(eta[time[own] >= time[own][i]]).sum()) - eta[i]
    return total / len(X)


def test_hazards_and_baselines_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    X, y = times()
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    model = FederatedCoxLasso(penalty=1.0, keep=list(range(6)), fit_baseline_model=True)
    model.fit(X, y, sites=SITES)
    found = minimize(breslow, np.zeros(6), args=(Z, y), tol=1e-12)
    np.testing.assert_allclose(model.coef_ * scaler.scale_, found.x, atol=1e-4)
    score = model.predict(X)
    np.testing.assert_allclose(score, Z @ (model.coef_ * scaler.scale_), atol=1e-9)
    assert set(model.baselines_) == {"0", "1", "2"}
    own = SITES == 1
    event, time, risk = y["f0"][own], y["f1"][own], np.exp(score[own])
    steps = [event[i] / risk[time >= time[i]].sum() for i in range(own.sum())]
    at = model.event_times_[40]
    hazard = sum(step for step, when in zip(steps, time, strict=True) if when <= at)
    survival = model.predict_survival_function(X[:4], site="1")
    assert survival.shape == (4, len(model.event_times_))
    np.testing.assert_allclose(survival[:, 40], np.exp(-hazard * np.exp(score[:4])))
    assert (np.diff(survival, axis=1) <= 0).all()
    with pytest.raises(FedLassoError, match="no site is called 'x'; sites are 0, 1, 2"):
        model.predict_survival_function(X, site="x")
    model.to_folder(tmp_path / "model")
    back = FederatedCoxLasso.from_folder(tmp_path / "model")
    assert back.get_params()["fit_baseline_model"]
    np.testing.assert_array_equal(back.predict_survival_function(X[:4], site="1"), survival)
    back.to_folder(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_bytes().count(b'"hazards"') == 1


def test_survival_times_come_in_several_forms_and_bad_ones_are_refused() -> None:
    X, y = times()
    table = np.column_stack([y["f0"], y["f1"]])
    one = FederatedCoxLasso(penalty=0.05).fit(X, y, sites=SITES)
    for form in (table, pd.DataFrame(table, columns=["dead", "time"])):
        other = FederatedCoxLasso(penalty=0.05).fit(X, form, sites=SITES)
        assert np.array_equal(one.coef_, other.coef_)
    assert one.score(X, y) > 0.7
    assert FederatedCoxLasso(penalty=0.05, ties="breslow").fit(X, y).score(X, y) > 0.7
    for bad, message in (
        (table[:, ::-1], "the first column of y must be the event, 0 or 1"),
        (table[:, 0], "in two columns or two structured fields"),
        (table * [0, 1], "y has no event at all"),
        (table * [1, -1], "times are negative, missing or infinite in 150 rows"),
    ):
        with pytest.raises(FedLassoError, match=message):
            FederatedCoxLasso().fit(X, bad)
    with pytest.raises(FedLassoError, match="no baseline hazard was fitted"):
        one.predict_survival_function(X, site="0")
    sites = InProcess([Site("a", X, np.copysign(1.0, y["f1"]), loss="cox")])
    with pytest.raises(FedLassoError, match="requires rows in this process"):
        FederatedCoxLasso(fit_baseline_model=True).fit(sites)


MODELS: list[tuple[Any, Any]] = [
    (FederatedLasso, counts),
    (FederatedLogisticLasso, labels),
    (FederatedPoissonLasso, counts),
    (FederatedCoxLasso, times),
]


@pytest.mark.parametrize(("kind", "make"), MODELS, ids=[m[0].__name__ for m in MODELS])
def test_a_weight_of_two_is_a_row_twice_and_of_zero_none(kind: Any, make: Any) -> None:
    X, y = make()
    times_in = np.arange(150) % 4 % 3
    extra = {"ties": "breslow"} if kind is FederatedCoxLasso else {}
    weighted = kind(penalty=0.02, keep=[0], **extra)
    weighted.fit(X, y, sites=SITES, sample_weight=times_in)
    again = np.repeat(np.arange(150), times_in)
    repeated = kind(penalty=0.02, keep=[0], **extra).fit(X[again], y[again], sites=SITES[again])
    np.testing.assert_allclose(
        np.ravel(weighted.coef_), np.ravel(repeated.coef_), rtol=0, atol=1e-5
    )
    assert np.ravel(weighted.coef_)[0] != 0
    with pytest.raises(ValueError, match="sample_weight has shape"):
        kind().fit(X, y, sample_weight=[1.0, 2.0])


@pytest.mark.standard
@pytest.mark.parametrize(("kind", "make"), MODELS, ids=[m[0].__name__ for m in MODELS])
def test_a_penalty_is_chosen_and_what_is_kept_holds_no_record(kind: Any, make: Any) -> None:
    X, y = make()
    frame = pd.DataFrame(X, columns=[f"column {k}" for k in range(6)])
    model = kind(keep=["column 5"]).fit(frame, y, sites=SITES)
    assert model.model_.fit.curve is not None
    assert np.ravel(model.coef_)[5] != 0
    kept = pickle.dumps(model)
    assert X[:, 0].tobytes() not in kept
    assert np.array_equal(pickle.loads(kept).predict(frame), model.predict(frame))


@pytest.mark.parametrize(("kind", "make"), MODELS[:3], ids=[m[0].__name__ for m in MODELS[:3]])
def test_site_effects_are_columns_of_sites_and_new_rows_have_their_mean(
    kind: Any, make: Any
) -> None:
    X, y = make()
    model = kind(penalty=0.02, site_effects=True).fit(X, y, sites=SITES)
    dummies = np.column_stack([X, SITES == 1, SITES == 2]).astype(float)
    columns = kind(penalty=0.02, keep=[6, 7]).fit(dummies, y, sites=SITES)
    coefficients = np.ravel(columns.coef_)
    np.testing.assert_allclose(np.ravel(model.coef_), coefficients[:6], rtol=0, atol=1e-5)
    mean = np.ravel(columns.intercept_)[0] + coefficients[6:].sum() / 3
    assert np.ravel(model.intercept_)[0] == pytest.approx(mean, abs=1e-4)


def test_a_site_of_one_class_has_no_part_in_the_mean_of_site_effects() -> None:
    X, y = labels()
    y = np.where(SITES == 2, "sick", y)
    model = FederatedLogisticLasso(penalty=0.02, site_effects=True).fit(X, y, sites=SITES)
    assert abs(float(model.decision_function(X).mean())) < 20


def test_an_elastic_net_is_scikit_learns() -> None:
    from sklearn.linear_model import ElasticNet

    X, y = counts()
    scaler = StandardScaler().fit(X)
    pooled = ElasticNet(alpha=0.3, l1_ratio=0.4, tol=1e-12, max_iter=100_000)
    pooled.fit(scaler.transform(X), y)
    model = FederatedLasso(penalty=0.3, l1_ratio=0.4).fit(X, y, sites=SITES)
    np.testing.assert_allclose(model.coef_, pooled.coef_ / scaler.scale_, rtol=0, atol=1e-6)


def test_tables_and_penalties_of_no_use_are_refused() -> None:
    with pytest.raises(NotFittedError):
        FederatedLasso().coefficient_table()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    model = FederatedLasso(penalty=0.1).fit(X, X[:, 0] + rng.standard_normal(60))
    for s in (True, [0.1, 0.2], -1, np.nan):
        with pytest.raises(FedLassoError, match="use 'min', '1se' or a number, zero or more"):
            model.coef_at(s)  # type: ignore[arg-type]
