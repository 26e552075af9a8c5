"""FederatedLasso: scikit-learn's checks, the pooled Lasso, and every kind of table."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from helpers.swept import swept_lasso
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from fedlasso import FedLassoError, InProcess, Site
from fedlasso.estimators import FederatedLasso, FederatedLogisticLasso, FederatedPoissonLasso
from fedlasso.numerics import Array


def draw(rows: int = 120, columns: int = 30, seed: int = 0) -> tuple[Array, Array]:
    """Columns on very different scales."""
    X, y = make_regression(rows, columns, n_informative=6, noise=5, random_state=seed)
    rng = np.random.default_rng(seed)
    return X * rng.uniform(0.1, 50, columns) + 20 * rng.standard_normal(columns), y / 20 + 7


def pooled(X: Array, y: Array, lam: float) -> tuple[Array, float]:
    """scikit-learn's Lasso on standardised columns, told on the original scale."""
    scaler = StandardScaler().fit(X)
    model = swept_lasso(scaler.transform(X), y, lam, intercept=True)
    b = model.coef_ / scaler.scale_
    return b, float(model.intercept_ - scaler.mean_ @ b)


# Folds here are a number of them, dealt at the sites; those checks give lists of rows instead.
OTHER_FOLDS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "cv is a number"
    for kind in ("dense", "sparse")
}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "estimator",
    [
        FederatedLasso(),
        FederatedLasso(penalty=0.1),
        FederatedLasso(cv=3),
        FederatedLogisticLasso(penalty=0.05),
        FederatedPoissonLasso(penalty=0.05),
    ],
    ids=repr,
)
def test_scikit_learns_own_checks_pass(estimator: Any) -> None:
    check_estimator(estimator, on_skip=None, expected_failed_checks=OTHER_FOLDS)


@pytest.mark.parametrize("K", [1, 3, 10])
@pytest.mark.parametrize("columns", [12, 200])
def test_the_objective_at_a_penalty_is_the_pooled_lasso(K: int, columns: int) -> None:
    X, y = draw(90, columns)
    # Sites of unequal sizes; with ten of them the smallest has three rows.
    shares = np.arange(2, K + 2)
    sites = np.searchsorted(np.cumsum(shares / shares.sum()), (np.arange(90) + 0.5) / 90)
    model = FederatedLasso("objective", penalty=0.2).fit(X, y, sites=sites)
    b, intercept = pooled(X, y, 0.2)
    np.testing.assert_allclose(model.coef_, b, rtol=0, atol=1e-7)
    assert model.intercept_ == pytest.approx(intercept, abs=1e-6)
    assert len(model.ledger_.sites) == len(set(sites))
    assert model.certificate_ is not None
    assert model.certificate_.relative_gap < 1e-9


def test_tables_of_every_kind_give_the_same_model() -> None:
    X, y = draw()
    names = [f"column {k}" for k in range(X.shape[1])]
    sites = np.arange(len(y)) % 3
    frame = pd.DataFrame(X, columns=names)
    by_array = FederatedLasso().fit(X, y, sites=sites)
    by_pandas = FederatedLasso().fit(frame, pd.Series(y), sites=pd.Series(sites))
    by_polars = FederatedLasso().fit(pl.from_pandas(frame), pl.Series(y), sites=pl.Series(sites))
    assert np.array_equal(by_array.coef_, by_pandas.coef_)
    assert np.array_equal(by_array.coef_, by_polars.coef_)
    assert list(by_polars.feature_names_in_) == names
    assert np.array_equal(by_pandas.predict(frame), by_polars.predict(pl.from_pandas(frame)))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array])
def test_sparse_tables_stay_sparse(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(150, 60, density=0.1, random_state=0, format="csr")
    y = X @ rng.standard_normal(60) + 0.1 * rng.standard_normal(150)
    dense = FederatedLasso(penalty=0.02).fit(X.toarray(), y, sites=np.arange(150) % 2)
    for name in ("toarray", "todense"):
        for cls in (sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array):
            monkeypatch.setattr(cls, name, lambda *_: pytest.fail("made dense"))
    model = FederatedLasso(penalty=0.02).fit(kind(X), y, sites=np.arange(150) % 2)
    np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-9)
    FederatedLasso().fit(kind(X), y)
    assert model.predict(kind(X)).shape == (150,)


def test_it_works_in_a_pipeline_and_a_grid_search_with_sites() -> None:
    X, y = draw()
    sites = np.repeat(["a", "b", "c"], 40)
    with config_context(enable_metadata_routing=True):
        model = FederatedLasso("objective").set_fit_request(sites=True)
        pipeline = make_pipeline(MaxAbsScaler(), model)
        search = GridSearchCV(pipeline, {"federatedlasso__penalty": [0.01, 0.1, 5.0]}, cv=3)
        search.fit(X, y, sites=sites)
    best = search.best_estimator_[-1]
    assert best.penalty_ in (0.01, 0.1)
    assert best.ledger_.sites == ("a", "b", "c")
    assert search.score(X, y) > 0.8


def test_a_federation_can_be_fitted_directly() -> None:
    X, y = draw()
    parts = [slice(0, 70), slice(70, 120)]
    sites = InProcess([Site(f"s{j}", X[r], y[r]) for j, r in enumerate(parts)])
    model = FederatedLasso(penalty=0.1).fit(sites)
    np.testing.assert_allclose(model.coef_, pooled(X, y, 0.1)[0], atol=1e-7)
    assert model.n_features_in_ == 30
    with pytest.raises(FedLassoError, match="pass it alone"):
        FederatedLasso().fit(sites, y)


def test_sites_with_samples_of_their_own_are_validated_on_them() -> None:
    X, y = draw(160)
    own = {"penalty": (X[100:130], y[100:130]), "candidate": (X[130:], y[130:])}
    site = Site("a", X[:100], y[:100], validation=own)
    model = FederatedLasso(validation=None).fit(InProcess([site]))
    assert model.model_.scaling.held_out == (30, 30)
    assert model.score(X[130:], y[130:]) > 0.8


@pytest.mark.full
@pytest.mark.parametrize("goal", ["prediction", "selection", "objective"])
@pytest.mark.parametrize("cv", [None, 4])
def test_every_goal_predicts_and_keeps_within_its_uploads(goal: str, cv: int | None) -> None:
    X, y = draw(200, 60)
    model = FederatedLasso(goal, cv=cv, uploads=100).fit(X, y, sites=np.arange(200) % 3)
    vectors = (
        model.ledger_.total("training", "0").upload + model.ledger_.total("scaling", "0").upload
    )
    assert vectors / (8 * 60) <= 100
    assert model.score(X, y) > 0.9
    again = FederatedLasso(goal, cv=cv, uploads=100).fit(X, y, sites=np.arange(200) % 3)
    assert model.coef_.tobytes() == again.coef_.tobytes()
    other = FederatedLasso(goal, cv=cv, seed=1).fit(X, y, sites=np.arange(200) % 3)
    assert model.model_.fit.curve is not None
    assert other.model_.fit.curve is not None
    assert model.model_.fit.curve.validation.error[0] != other.model_.fit.curve.validation.error[0]


@pytest.mark.parametrize("procedure", ["CD", "ST", "DA", "FISTA", "ADMM"])
def test_procedures_run_on_standardised_sites(procedure: str) -> None:
    X, y = draw(200, 20)
    model = FederatedLasso(procedure=procedure, penalty=0.1, uploads=200)
    assert model.fit(X, y, sites=np.arange(200) % 2).score(X, y) > 0.9


def test_a_constant_column_has_coefficient_zero() -> None:
    X, y = draw()
    X[:, 3], X[:, 5] = 0.1, 0.0
    model = FederatedLasso().fit(X, y, sites=np.arange(120) % 2)
    assert model.coef_[3] == model.coef_[5] == 0
    assert model.model_.constant == ("x3", "x5")


def test_what_is_kept_holds_no_record() -> None:
    X, y = draw()
    model = clone(FederatedLasso()).fit(X, y, sites=np.arange(120) % 2)
    kept = pickle.dumps(model)
    assert X[:, 0].tobytes() not in kept
    assert y.tobytes() not in kept
    assert len(kept) < X.nbytes + 60_000
    assert np.array_equal(pickle.loads(kept).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"goal": "speed"}, "no goal is called 'speed'"),
        ({"goal": "prediction", "penalty": 1.0}, "chooses its penalty"),
        ({"penalty": "high"}, "penalty is 'high'; give a number"),
        ({"penalty": -1.0}, "the penalty is -1.0; give a finite number, zero or more"),
        ({"uploads": 3}, "give more"),
        ({"uploads": 0}, "`uploads` is 0"),
        ({"cv": 1}, "`cv` is 1; give a whole number of folds, 2 or more"),
        ({"validation": 2.0}, "`validation` is 2.0; give a fraction between 0 and 1"),
        ({"procedure": "CDD"}, "did you mean 'CD'?"),
        ({"cv": 5, "penalty": 1.0}, "folds choose a penalty, and one was given"),
        ({"validation": 0.2, "penalty": 1.0}, "held-out rows choose a penalty, and one was given"),
        ({"epochs": 5}, "`epochs` has no effect here: only a `procedure` has local epochs"),
        ({"seed": -1}, "`seed` is -1; give a whole number, 0 or more"),
        ({"cv": [([0], [1])]}, "cv is [([0], [1])]; give a whole number"),
        ({"keep": "x0"}, "keep is 'x0'; give a list of columns, by names or numbers"),
        ({"keep": [30]}, "keep: there is no column 30; X has 30"),
        ({"keep": ["x33"]}, "no column to keep is called 'x33'; did you mean 'x3'?"),
        ({"bounds": "x0"}, "bounds is 'x0'; give a dict, as {'age': (0, None)}"),
        ({"bounds": {30: (0, None)}}, "bounds: there is no column 30; X has 30"),
        ({"bounds": {"x33": (0, 1)}}, "no column to bound is called 'x33'; did you mean 'x3'?"),
        ({"bounds": {"x0": (1, 2)}}, "the bounds of 'x0' leave out zero"),
        ({"bounds": {"x0": (None, -1)}}, "the bounds of 'x0' leave out zero"),
        ({"bounds": {"x0": 0.0}}, "the bounds of 'x0' are 0.0; give two numbers"),
        ({"bounds": {"x0": ("low", None)}}, "the bounds of 'x0' are ('low', None); give two"),
        ({"bounds": {"x0": (np.nan, 1)}}, "the bounds of 'x0' are (nan, 1); give two numbers"),
        ({"bounds": {"x0": (0, 1)}, "procedure": "DA"}, "use Newton or FISTA for bounds"),
    ],
)
def test_bad_settings_are_one_clear_line(settings: dict[str, Any], message: str) -> None:
    X, y = draw()
    with pytest.raises(FedLassoError) as caught:
        FederatedLasso(**settings).fit(X, y)
    assert message in str(caught.value)


def test_one_label_per_row() -> None:
    X, y = draw()
    with pytest.raises(FedLassoError, match="give one label per row"):
        FederatedLasso().fit(X, y, sites=[1, 2])


def test_held_out_rows_may_choose_among_candidates_at_a_given_penalty() -> None:
    X, y = draw(200, 20)
    model = FederatedLasso(procedure="ST", penalty=0.1, validation=0.3)
    assert model.fit(X, y, sites=np.arange(200) % 2).model_.scaling.held_out == (30, 30)


def test_a_site_with_one_row_is_refused_by_name() -> None:
    X, y = draw()
    sites = np.where(np.arange(120) == 7, "lonely", "other")
    with pytest.raises(FedLassoError, match="site 'lonely' has 1 row, which its sums would"):
        FederatedLasso().fit(X, y, sites=sites)
