"""What a model states about itself is true of the records, recomputed independently."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.recompute import fit_breslow
from helpers.responses import draw_response
from lifelines import CoxPHFitter
from lifelines.datasets import load_rossi
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_diabetes

from fedlasso import InProcess, Site
from fedlasso.cli import main
from fedlasso.families import find_family
from fedlasso.fitting import Settings
from fedlasso.models import ModelDocument, describe_model, draw_card, make_model
from fedlasso.models.predicting import predict_file
from fedlasso.numerics import Array
from fedlasso.tables import Schema
from fedlasso.tables.columns import Column

pytestmark = pytest.mark.usefixtures("no_charts")

Smooth = Callable[[Array], tuple[float, Array]]


def make(
    X: Array,
    y: Array,
    settings: Settings,
    names: tuple[str, ...] = ("north", "south", "west"),
    site: Array | None = None,
) -> ModelDocument:
    """Fit rows dealt to sites in turn, or as `site` says."""
    family = find_family(settings.family)
    columns = tuple(f"x{k}" for k in range(X.shape[1]))
    where = np.arange(len(y)) % len(names) if site is None else site
    sites = [
        Site(
            name,
            X[where == j],
            y[where == j],
            columns=columns,
            raw=True,
            loss=settings.loss,
            intercept=family.loss.intercept,
        )
        for j, name in enumerate(names)
    ]
    schema = Schema("y", tuple(Column(name, "number") for name in columns), family=settings.family)
    return make_model(InProcess(sites), settings, schema)


def mean_loss(Z: Array, y: Array, family: str) -> Smooth:
    """Return the mean loss of coefficients and an intercept, the last one, and its gradient."""
    A = np.column_stack([Z, np.ones(len(y))])

    def at(b: Array) -> tuple[float, Array]:
        eta = A @ b
        if family == "linear":
            return float(((y - eta) ** 2).mean() / 2), A.T @ (eta - y) / len(y)
        if family == "poisson":
            # The likelihood that fits every count has the loss zero.
            ideal = np.where(y > 0, y - y * np.log(np.maximum(y, 1)), 0.0)
            rate = np.exp(eta)
            return float((rate - y * eta - ideal).mean()), A.T @ (rate - y) / len(y)
        p = 1 / (1 + np.exp(-eta))
        return float((np.logaddexp(0, eta) - y * eta).mean()), A.T @ (p - y) / len(y)

    return at


def check_certificate(document: ModelDocument, X: Array, y: Array) -> None:
    """Recompute the objective at the stated penalty, and its minimum by another solver."""
    settings = document.settings
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    names = document.schema.encoded
    factors = np.array([float(name not in settings.keep) for name in names])
    if document.penalty_factors is not None:
        factors = np.array([document.penalty_factors.get(name, np.inf) for name in names])
    on = np.isfinite(factors)
    ratio = 1.0 if document.l1_ratio is None else document.l1_ratio
    lams = document.penalty * ratio * factors[on]
    ridges = document.penalty * (1 - ratio) * factors[on]
    loss = mean_loss(Z[:, on], y, settings.family)
    k = int(on.sum())
    per_sd = dict.fromkeys(names, 0.0) | {c.name: c.standardised for c in document.coefficients}
    b = np.array([per_sd[name] for name in names])
    assert not b[~on].any()
    intercept = document.intercept + sum(c.value * c.mean for c in document.coefficients)
    own = np.append(b[on], intercept)

    def objective(b: Array) -> float:
        return loss(b)[0] + float(lams @ np.abs(b[:k]) + ridges @ b[:k] ** 2 / 2)

    def parts(v: Array) -> tuple[float, Array]:
        # Positive and negative parts make the penalty smooth.
        b = np.append(v[:k] - v[k : 2 * k], v[-1])
        value, slopes = loss(b)
        smooth = slopes[:k] + ridges * b[:k]
        both = np.concatenate([smooth + lams, lams - smooth, slopes[k:]])
        return value + float(lams @ v[:k] + lams @ v[k : 2 * k] + ridges @ b[:k] ** 2 / 2), both

    start = np.concatenate([np.maximum(b[on], 0), np.maximum(-b[on], 0), [intercept]])
    limits = [(0.0, None)] * (2 * k) + [(None, None)]
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-12}
    best = minimize(parts, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    gap = document.certificate.gap
    assert document.certificate.relative_gap < 1e-6
    assert objective(own) == pytest.approx(document.certificate.objective, rel=1e-8)
    assert objective(own) - best.fun <= gap + 1e-9 * objective(own)


@pytest.fixture(scope="module")
def diabetes() -> tuple[Array, Array]:
    data = load_diabetes(scaled=False)
    return data.data, data.target


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        pytest.param(Settings(goal="selection"), marks=pytest.mark.standard),
        Settings(goal="objective"),
        Settings(goal="discoveries"),
        pytest.param(Settings(keep=("x1",)), marks=pytest.mark.standard),
        pytest.param(Settings(l1_ratio=0.5), marks=pytest.mark.standard),
        Settings(penalty=0.0),
    ],
    ids=str,
)
def test_the_certificate_is_that_of_the_stated_penalty(
    diabetes: tuple[Array, Array], settings: Settings
) -> None:
    document = make(*diabetes, settings)
    check_certificate(document, *diabetes)
    assert f"penalty (lambda) {document.penalty:.4g}, " in describe_model(document)
    assert f"at λ = {document.penalty:.4g}" in draw_card(document)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("lam", [0.02, 0.0])
def test_the_certificate_of_other_families_is_true(family: str, lam: float) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 5)) * [1, 10, 0.1, 1, 1] + [0, 50, 0, 3, 0]
    y = draw_response(family, 0.5 * X[:, 0] - 0.06 * (X[:, 1] - 50), rng)
    check_certificate(make(X, y, Settings(family=family, penalty=lam)), X, y)


def draw_shifted(noise: tuple[float, ...] = (1.0, 1.0, 1.0)) -> tuple[Array, Array, Array]:
    """Three sites with mean responses 0, 2 and -3."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 5))
    site = np.repeat([0, 1, 2], 100)
    shift = np.array([0.0, 2.0, -3.0])[site]
    return (
        X,
        X[:, 0] - 0.5 * X[:, 1] + shift + np.array(noise)[site] * rng.standard_normal(300),
        site,
    )


def predicted_error(document: ModelDocument, X: Array, y: Array, folder: Path) -> float:
    """Return the mean squared error of `fedlasso predict` on rows."""
    path = folder / "rows.csv"
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(document.schema.encoded)
        table.writerows(X.tolist())
    return float(((predict_file(document, path).values - y) ** 2).mean())


@pytest.mark.standard
@pytest.mark.parametrize("noise", [(1.0, 1.0, 1.0), (1.0, 3.0, 0.3)])
@pytest.mark.parametrize("changes", [{"intervals": ("x0",)}, {"site_effects": True}], ids=str)
def test_the_error_is_that_of_predictions(
    noise: tuple[float, ...], changes: dict[str, object], tmp_path: Path
) -> None:
    X, y, site = draw_shifted(noise)
    settings = Settings(goal="objective")
    plain = make(X, y, settings, site=site)
    other = make(X, y, replace(settings, **changes), site=site)  # type: ignore[arg-type]
    assert plain.error is not None
    assert other.error is not None
    for document in (plain, other):
        assert document.error is not None
        seen = predicted_error(document, X, y, tmp_path)
        assert document.error.mse == pytest.approx(seen, rel=0.06)
        assert document.error.r2 == pytest.approx(1 - seen / y.var(), abs=0.06)


def test_weights_of_inference_leave_the_model_and_its_error_as_they_are() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 4))
    site = np.repeat([0, 1, 2], 100)
    y = X[:, 0] + np.array([0.3, 1.0, 4.0])[site] * rng.standard_normal(300)
    settings = Settings(goal="objective", site_effects=False)
    plain = make(X, y, settings, site=site)
    inferred = make(X, y, replace(settings, intervals=("x0", "selected")), site=site)
    assert inferred.trust is not None
    assert inferred.trust.site_weights is not None
    assert {row.name for row in inferred.trust.selected} == {c.name for c in plain.coefficients}
    for name in ("coefficients", "intercept", "penalty", "error", "certificate", "curve"):
        assert getattr(inferred, name) == getattr(plain, name)
    assert "row weights in inference by" in describe_model(inferred)
    assert "in inference only" in draw_card(inferred)
    weighted = make(X, y, replace(settings, site_weights="variance"), site=site)
    assert weighted.error is not None
    assert weighted.error.rows.endswith("weighted by the noise of their site as requested")


@pytest.mark.standard
@pytest.mark.parametrize("how", [None, "variance"])
def test_shifted_sites_are_not_said_to_differ_in_noise(how: str | None) -> None:
    X, y, site = draw_shifted()
    said: list[str] = []
    columns = tuple(f"x{k}" for k in range(5))
    sites = [Site(f"{j}", X[site == j], y[site == j], columns=columns, raw=True) for j in range(3)]
    schema = Schema("y", tuple(Column(name, "number") for name in columns))
    settings = Settings(goal="objective", intervals=("x0",), site_weights=how)  # type: ignore[arg-type]
    document = make_model(InProcess(sites), settings, schema, notify=said.append)
    texts = [*said, draw_card(document), describe_model(document)]
    assert not any("differ in noise" in text.lower() for text in texts)
    assert any("mean responses differ" in text for text in texts)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_the_curve_does_not_count_the_intercept(family: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 3))
    y = draw_response(family, 0.8 * X[:, 0] - 1.0, rng)
    curve = make(X, y, Settings(family=family)).curve
    assert curve is not None
    assert curve.active[0] == 0.0
    assert max(curve.active) <= 3.0


@pytest.mark.parametrize("seed", [4, 6])
def test_counts_in_natural_units_have_their_error(seed: int) -> None:
    """The last bits of an unpenalised slope are no reason to withhold it."""
    rng = np.random.default_rng(seed)
    coinsurance = rng.choice([0, 3.258, 3.9318, 4.5643], 300)
    limited = rng.integers(0, 2, 300)
    incentive = np.where(rng.random(300) < 0.35, 0, rng.normal(6.5, 0.6, 300))
    diseases = rng.gamma(2.5, 4.5, 300).round(1)
    income = np.exp(rng.normal(10, 0.5, 300)).round()
    X = np.column_stack([coinsurance, limited, incentive, diseases, income])
    rates = np.exp(0.7 - 0.05 * coinsurance - 0.25 * limited + 0.034 * diseases)
    y = rng.poisson(rates * rng.gamma(0.8, 1.25, 300)).astype(np.float64)
    document = make(X, y, Settings(family="poisson", keep=("x3",)))
    assert document.status == "OPTIMAL"
    assert document.error is not None
    assert document.certificate.relative_gap < 1e-7


@pytest.mark.standard
def test_a_default_binomial_fit_ends_and_has_its_error() -> None:
    """On these rows 1,500 vectors of 31 numbers did not suffice."""
    data = load_breast_cancer()
    document = make(data.data, data.target.astype(np.float64), Settings(family="binomial"))
    assert document.status == "OPTIMAL"
    assert not any("uploads" in text for text in document.warnings or ())
    assert document.error is not None
    assert document.certificate.relative_gap < 1e-7


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_without_a_penalty_cox_is_that_of_lifelines_and_certified(ties: str) -> None:
    rossi = load_rossi()
    names = [name for name in rossi.columns if name not in ("week", "arrest")]
    X = rossi[names].to_numpy(np.float64)
    y = np.where(rossi["arrest"] == 1, 1.0, -1.0) * rossi["week"].to_numpy(np.float64)
    settings = Settings(family="cox", penalty=0.0, ties=ties)  # type: ignore[arg-type]
    document = make(X, y, settings)
    assert document.status == "OPTIMAL"
    assert "less than 0.000001% above" in describe_model(document)
    if ties == "efron":
        # Every site has its own baseline hazard.
        rossi["site"] = np.arange(len(rossi)) % 3
        reference = CoxPHFitter().fit(rossi, "week", "arrest", strata=["site"]).params_
        found = {row.name: row.value for row in document.coefficients}
        own = [found[f"x{k}"] for k in range(len(names))]
        np.testing.assert_allclose(own, reference[names], rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_without_a_penalty_breslow_ties_are_those_of_the_partial_likelihood(tmp_path: Path) -> None:
    rossi = load_rossi()
    names = [name for name in rossi.columns if name not in ("week", "arrest")]
    site = np.arange(len(rossi)) % 3
    files = [str(tmp_path / f"{j}.csv") for j in range(3)]
    for j, file in enumerate(files):
        rossi[site == j].to_csv(file, index=False)
    options = ["--family", "cox", "--time", "week", "--event", "arrest", "--ties", "breslow"]
    out = tmp_path / "model"
    how = ["--penalty", "0", "--no-compare", "--out", str(out)]
    assert main(["fit", *files, *options, *how]) == 0
    table = pd.read_csv(out / "coefficients.csv", index_col="name")["coefficient"]
    assert rossi.groupby(site)["week"].nunique().max() < len(rossi) / 3
    X, weeks = rossi[names].to_numpy(np.float64), rossi["week"].to_numpy(np.float64)
    expected = fit_breslow(X, weeks, rossi["arrest"].to_numpy() == 1, site)
    np.testing.assert_allclose(table[names], expected, rtol=1e-6)
