"""Models of every family: the pooled optimum on the original scale, and wishes that are refused."""

import numpy as np
import pytest
from helpers.responses import draw_response
from numpy.typing import NDArray
from sklearn.linear_model import ElasticNet, LogisticRegression

from fedlasso import FedLassoError, InProcess, Site, Status
from fedlasso.fitting import Settings, fit_model
from fedlasso.models.text import warn_of_fit
from fedlasso.numerics import Array

P = 6


def draw(family: str, rows: int = 180) -> tuple[Array, Array, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    X = 3 + 2 * rng.standard_normal((rows, P)) * np.arange(1, P + 1)
    eta = (X[:, 0] - 3) / 2 - (X[:, 1] - 3) / 8
    return X, draw_response(family, eta, rng), np.arange(rows) % 3


def federation(family: str, loss: str | None = None, **more: object) -> InProcess:
    X, y, label = draw(family)
    sites = []
    for k in range(3):
        own = label == k
        given = {name: np.asarray(value)[own] for name, value in more.items()}
        sites.append(
            Site(
                f"s{k}",
                X[own],
                y[own],
                loss=loss or {"linear": "quadratic"}.get(family, family),
                intercept=True,
                raw=True,
                **given,
            )
        )
    return InProcess(sites)


def test_a_logistic_lasso_is_that_of_scikit_learn() -> None:
    X, y, _ = draw("binomial")
    model = fit_model(federation("binomial"), Settings(family="binomial", penalty=0.03))
    assert model.status is Status.OPTIMAL
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    other = LogisticRegression(
        C=1 / (0.03 * len(y)), l1_ratio=1.0, solver="saga", tol=1e-12, max_iter=100_000
    ).fit(Z, y)
    np.testing.assert_allclose(model.standardised, other.coef_[0], atol=1e-6)
    np.testing.assert_allclose(model.predict(X), other.predict_proba(Z)[:, 1], atol=1e-6)


def test_an_elastic_net_is_that_of_scikit_learn() -> None:
    X, y, _ = draw("linear")
    model = fit_model(federation("linear"), Settings(l1_ratio=0.3, penalty=0.2))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    other = ElasticNet(alpha=0.2, l1_ratio=0.3, tol=1e-14, max_iter=100_000).fit(Z, y)
    np.testing.assert_allclose(model.standardised, other.coef_, atol=1e-7)
    np.testing.assert_allclose(model.predict(X), other.predict(Z), atol=1e-6)


@pytest.mark.parametrize("family", ["linear", "binomial", "poisson", "cox"])
def test_a_kept_column_is_used_however_large_the_penalty(family: str) -> None:
    settings = Settings(family=family, penalty=50.0, keep=("x4",))
    model = fit_model(federation(family), settings)
    assert np.flatnonzero(model.standardised).tolist() == [4]


@pytest.mark.parametrize("family", ["linear", "binomial", "poisson", "cox"])
def test_rows_that_count_twice_are_as_good_as_there_twice(family: str) -> None:
    X, y, label = draw(family)
    rng = np.random.default_rng(1)
    twice = rng.random(len(y)) < 0.3
    loss = {"linear": "quadratic"}.get(family, family)
    if family == "cox":
        # Ties are averaged over weights, which is not the same as over rows.
        y = y * (1 + 1e-6 * rng.random(len(y)))
        loss = "cox with Breslow ties"
    ties = "breslow" if family == "cox" else "efron"
    settings = Settings(family=family, penalty=0.1, ties=ties)  # type: ignore[arg-type]
    weighted = [
        Site(
            f"s{k}",
            X[label == k],
            y[label == k],
            loss=loss,
            weights=1.0 + twice[label == k],
            intercept=True,
            raw=True,
        )
        for k in range(3)
    ]
    rows = np.concatenate([np.arange(len(y)), np.flatnonzero(twice)])
    doubled = [
        Site(
            f"s{k}",
            X[rows][label[rows] == k],
            y[rows][label[rows] == k],
            loss=loss,
            intercept=True,
            raw=True,
        )
        for k in range(3)
    ]
    one = fit_model(InProcess(weighted), settings)
    other = fit_model(InProcess(doubled), settings)
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-5)
    assert one.intercept == pytest.approx(other.intercept, abs=1e-4)


@pytest.mark.parametrize("family", ["linear", "binomial", "poisson", "cox"])
def test_an_offset_is_a_coefficient_of_one(family: str) -> None:
    X, _, _ = draw(family)
    offset = 0.2 * (X[:, 2] - 3) / 6
    model = fit_model(
        federation(family, offset=offset),
        Settings(family=family, penalty=1e-3, keep=("x2",)),
    )
    plain = fit_model(
        federation(family),
        Settings(family=family, penalty=1e-3, keep=("x2",)),
    )
    assert model.coefficients[2] == pytest.approx(plain.coefficients[2] - 0.2 / 6, abs=1e-5)
    np.testing.assert_allclose(
        np.delete(model.coefficients, 2), np.delete(plain.coefficients, 2), atol=1e-5
    )


@pytest.mark.parametrize("family", ["linear", "binomial", "poisson"])
def test_site_effects_take_up_what_differs_between_sites(family: str) -> None:
    X, _, label = draw(family)
    rng = np.random.default_rng(3)
    shift = np.array([-1.0, 0.0, 1.0])[label]
    y = draw_response(family, (X[:, 0] - 3) / 4 + shift, rng)
    loss = {"linear": "quadratic"}.get(family, family)
    sites = [
        Site(f"s{k}", X[label == k], y[label == k], loss=loss, effects=True, raw=True)
        for k in range(3)
    ]
    settings = Settings(family=family, penalty=0.02, site_effects=True)
    model = fit_model(InProcess(sites), settings)
    assert model.status is Status.OPTIMAL
    dummies = np.column_stack([X, label == 1, label == 2])
    columns = [*(f"x{k}" for k in range(P)), "one", "two"]
    pooled = [Site("all", dummies, y, loss=loss, columns=columns, intercept=True, raw=True)]
    explicit = fit_model(
        InProcess(pooled),
        Settings(family=family, penalty=0.02, keep=("one", "two")),
    )
    np.testing.assert_allclose(model.coefficients, explicit.coefficients[:P], atol=1e-5)


@pytest.mark.parametrize("family", ["binomial", "poisson", "cox"])
def test_a_penalty_is_chosen_on_folds(family: str) -> None:
    said: list[str] = []
    model = fit_model(
        federation(family),
        Settings(family=family, cv=3, uploads=600),
        said.append,
    )
    assert "3 folds" in said[0]
    assert model.fit.curve is not None
    assert 0 < model.fit.curve.chosen < len(model.fit.curve.penalties)
    assert model.standardised[0] > 0
    again = fit_model(federation(family), Settings(family=family, penalty=model.penalty))
    np.testing.assert_allclose(model.coefficients, again.coefficients, atol=1e-6)


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"family": "gamma"}, "no family is called 'gamma'"),
        ({"l1_ratio": 0.0}, "give a fraction above 0"),
        ({"site_effects": True, "intercept": False}, "omit one of the two"),
        ({"family": "cox", "site_effects": True}, "baseline hazard per site already"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wishes: dict[str, object], words: str) -> None:
    with pytest.raises(FedLassoError, match=words):
        Settings(**wishes)  # type: ignore[arg-type]


def test_a_column_to_keep_that_does_not_exist_is_named() -> None:
    with pytest.raises(FedLassoError, match="no column to keep is called 'x44'; did you mean 'x4'"):
        fit_model(federation("binomial"), Settings(family="binomial", penalty=1, keep=("x44",)))
    with pytest.raises(FedLassoError, match="the sites have the binomial loss"):
        fit_model(federation("binomial"), Settings(penalty=1.0))


def test_a_kept_column_that_separates_the_classes_is_warned_of() -> None:
    X, _, label = draw("binomial")
    y = (X[:, 0] > 3).astype(np.float64)
    sites = [
        Site(f"s{k}", X[label == k], y[label == k], loss="binomial", intercept=True, raw=True)
        for k in range(3)
    ]
    kept = fit_model(InProcess(sites), Settings(family="binomial", penalty=0.05, keep=("x0",)))
    assert np.isfinite(kept.coefficients).all()
    assert any(text.startswith("x0: never penalised") for text in warn_of_fit(kept, "y"))
    paying = fit_model(InProcess(sites), Settings(family="binomial", penalty=0.05))
    assert paying.status is Status.OPTIMAL
    assert not any("infinite" in text for text in warn_of_fit(paying, "y"))
