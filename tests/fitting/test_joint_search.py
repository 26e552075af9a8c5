"""The search on all folds in joint round trips, against exact fits on the same folds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.natural_units import connect, divide, draw
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from fedlasso import InProcess, Ledger, Site
from fedlasso.errors import CannotFit
from fedlasso.fitting import Settings, fit_model, joint_search
from fedlasso.fitting.context import Context
from fedlasso.fitting.error_path import Stall
from fedlasso.fitting.joint_search import STUCK
from fedlasso.fitting.model import Model
from fedlasso.fitting.points import LEAST_CURVED, Point, PointSet
from fedlasso.fitting.result import Status
from fedlasso.fitting.tuning import average_folds
from fedlasso.numerics import L1, Array, Penalty, Sample, find_loss
from fedlasso.numerics.quadratic_lasso import solve_step
from fedlasso.numerics.sample import make_sample
from fedlasso.procedures import Problem
from fedlasso.sites import SCALES, folds

FAMILIES = ("binomial", "poisson", "cox")
each_family = pytest.mark.parametrize("family", FAMILIES)
# Round trips that any tuned fit of up to 300 columns may take.
MOST_TRIPS = 15


def solve(samples: list[Sample], penalty: Penalty, b: Array) -> Array:
    """Return the optimum on pooled rows, by Newton steps on all columns, halved where needed."""
    m = sum(sample.m for sample in samples)
    thresholds = penalty.thresholds(b.size)
    everything = np.arange(b.size)

    def objective(b: Array) -> float:
        return sum(f.m * f.value(b) for f in samples) / m + penalty.value(b)

    for _ in range(100):
        slopes = sum(f.m * f.gradient(b) for f in samples) / m
        H = sum(f.m * f.hessian(b, everything) for f in samples) / m
        step = solve_step(np.asarray(H), np.asarray(slopes), thresholds, b)[0] - b
        if np.abs(step).max() < 1e-12:
            break
        along = 1.0
        while objective(b + along * step) > objective(b) + 1e-14 and along > 1e-6:
            along /= 2
        b = b + along * step
    return b


def judge_exactly(model: Model, sites: list[Site]) -> tuple[Array, Array]:
    """Return held-out errors of exact fits on the same folds and penalties, and their SE."""
    curve = model.fit.curve
    assert curve is not None
    form = Context(Ledger(InProcess(sites)), model.settings).form
    errors = []
    rows = []
    for split in folds(5, model.settings.seed):
        name = replace(model.view, split=split)
        for site in sites:
            name.answer(site)
        views = [site.view(name.name) for site in sites]
        held_out = [view.held_out["penalty"] for view in views]
        rows.append(sum(sample.m for sample in held_out))
        b = np.zeros(len(sites[0].columns))
        own = []
        for strength in curve.penalties:
            b = solve([view.training for view in views], form.at(strength), b)
            own.append(sum(float(f.errors(b).sum()) for f in held_out) / rows[-1])
        errors.append(own)
    return average_folds(np.array(errors), np.array(rows))


def assert_chooses_as_exact_fits(model: Model, X: Array, y: Array, family: str) -> None:
    curve = model.fit.curve
    assert curve is not None
    error, se = judge_exactly(model, divide(X, y, family))
    best = int(np.argmin(error))
    assert error[curve.chosen] - error[best] <= 0.1 * se[best]
    assert abs(curve.chosen - best) <= 1 or error[curve.chosen] == error[best]
    near = slice(max(curve.chosen - 1, 0), curve.chosen + 2)
    np.testing.assert_allclose(curve.validation.error[near], error[near], atol=0.1 * se[best])


@pytest.mark.standard
@each_family
def test_it_chooses_the_penalty_that_exact_fits_choose(family: str) -> None:
    X, y = draw(family)
    ledger = connect(X, y, family)
    model = fit_model(ledger, Settings(family=family))
    assert model.status is Status.OPTIMAL
    assert ledger.costs.trips <= MOST_TRIPS
    assert ledger.costs.most_sent / 8 <= 0.75 * X.size
    assert_chooses_as_exact_fits(model, X, y, family)
    exact = fit_model(
        connect(X, y, family), Settings(family=family, penalty=model.path_penalty, tol=1e-8)
    )
    scale = np.abs(exact.coefficients).max()
    np.testing.assert_allclose(model.coefficients, exact.coefficients, atol=1e-6 * scale)


OPTIONS: tuple[dict[str, Any], ...] = (
    {"l1_ratio": 0.5},
    {"keep": ("x4", "x7")},
    {"bounds": {"x0": (0.0, None), "x3": (None, 0.0)}},
    {"site_effects": True},
    {"rule": "1se"},
    {"validation": 0.25},
)


def assert_ends_certified(family: str, options: dict[str, Any]) -> None:
    X, y = draw(family, seed=1)
    ledger = connect(X, y, family)
    model = fit_model(ledger, Settings(family=family, **options))
    assert model.status is Status.OPTIMAL
    assert ledger.costs.trips <= MOST_TRIPS
    assert model.fit.certificate is not None
    assert model.fit.certificate.relative_gap <= 1e-6


@pytest.mark.standard
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_every_option_ends_certified_within_few_round_trips(options: dict[str, Any]) -> None:
    assert_ends_certified("binomial", options)


@pytest.mark.full
@pytest.mark.parametrize("family", ["poisson", "cox"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_every_option_of_other_families_ends_certified(
    family: str, options: dict[str, Any]
) -> None:
    if family == "cox" and "site_effects" in options:
        options = {}
    assert_ends_certified(family, options)


@pytest.mark.standard
@each_family
def test_odd_columns_end_in_a_model(family: str) -> None:
    """A copy, a constant, a column in units of a million, and one of two rows only."""
    X, y = draw(family, seed=2)
    rare = np.zeros(len(X))
    rare[[5, 150]] = 1.0
    X = np.column_stack([X, X[:, 3], np.full(len(X), 7.0), 1e6 * X[:, 5], rare])
    ledger = connect(X, y, family)
    model = fit_model(ledger, Settings(family=family))
    assert np.isfinite(model.coefficients).all()
    assert model.coefficients[13] == 0
    assert ledger.costs.trips <= 2 * MOST_TRIPS


@pytest.mark.standard
def test_separable_classes_end_in_a_model() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6))
    ledger = connect(X, (X[:, 0] > 0).astype(np.float64), "binomial")
    model = fit_model(ledger, Settings(family="binomial"))
    assert model.coefficients[0] > 0
    assert ledger.costs.trips <= 60


@pytest.mark.standard
@pytest.mark.parametrize("family", FAMILIES)
def test_more_columns_than_rows_end_in_a_model(family: str) -> None:
    X, y = draw(family, n=90, p=130)
    ledger = connect(X, y, family)
    model = fit_model(ledger, Settings(family=family))
    assert np.isfinite(model.coefficients).all()
    assert ledger.costs.trips <= 60


@pytest.mark.standard
def test_rare_classes_end_in_a_model() -> None:
    X, _ = draw("binomial", n=240)
    y = np.zeros(240)
    y[::40] = 1.0
    model = fit_model(connect(X, y, "binomial"), Settings(family="binomial"))
    assert np.isfinite(model.coefficients).all()


def test_no_penalised_column_leaves_nothing_to_choose() -> None:
    X, y = draw("binomial", p=8)
    settings = Settings(family="binomial", keep=tuple(f"x{k}" for k in range(8)))
    with pytest.raises(CannotFit, match="no column is penalised"):
        fit_model(connect(X, y, "binomial"), settings)


def points_of(family: str) -> tuple[PointSet, Any]:
    """Return points on one sample, some of them second derivatives too, and the sample."""
    X, y = draw(family, n=120, p=8)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    sample = make_sample(np.asfortranarray(Z), y, find_loss(family))
    points = PointSet(
        Ledger(InProcess([Site("a", Z, y, loss=family)])), Problem(L1(1.0), ("a",), (120,), 8)
    )
    rng = np.random.default_rng(0)
    for size in (0.0, 0.1, 0.2, 0.3, 0.4):
        b = size * rng.standard_normal(8)
        duals = np.array([sample.dual(b, scale) for scale in SCALES]) / sample.m
        points.known.append(Point(b, sample.value(b), sample.gradient(b), duals))
    return points, sample


@pytest.mark.standard
@each_family
def test_gaps_are_upper_bounds(family: str) -> None:
    points, sample = points_of(family)
    for strength in (0.02, 0.05, 0.1):
        penalty = L1(strength)
        b = np.zeros(8)
        for _ in range(4_000):
            step = 0.2
            b = penalty.prox(b - step * sample.gradient(b), step)
        optimum = sample.value(b) + penalty.value(b)
        best = points.best(penalty)
        assert points.gap(penalty) >= best.objective(penalty) - optimum - 1e-9
        for point in points.known:
            assert point.certify(penalty).gap >= point.objective(penalty) - optimum - 1e-9


@each_family
def test_a_dual_value_at_zero_is_not_negative_and_at_one_follows_from_the_gradient(
    family: str,
) -> None:
    points, sample = points_of(family)
    for point in points.known:
        assert sample.dual(point.b, 0.0) >= -1e-9
        at_one = sample.dual(point.b, 1.0) / sample.m
        np.testing.assert_allclose(at_one, point.loss - point.b @ point.slopes, atol=1e-9)


def test_a_path_ends_where_fits_come_no_closer() -> None:
    stall = Stall()
    for trip in range(3 * STUCK):
        stall.count(2, 0.75**trip)
        assert stall.trips == 0
    least = stall.least
    for trip in range(STUCK):
        assert stall.trips == trip
        stall.count(2, 0.9 * least)
    assert stall.trips == STUCK
    # At the next penalty counting starts again.
    stall.count(3, 1e6)
    assert stall.trips == 0


def test_errors_of_models_with_intercepts_of_sites_are_those_of_their_own_shift() -> None:
    """They are guessed at first, and asked again a round trip later."""
    X, y = draw("binomial", seed=1)
    y[:100] = np.random.default_rng(0).random(100) < 0.9
    sites = divide(X, y, "binomial")
    ledger = Ledger(InProcess(sites))
    model = fit_model(ledger, Settings(family="binomial", site_effects=True))
    assert ledger.costs.trips <= MOST_TRIPS
    curve = model.fit.curve
    assert curve is not None
    assert curve.fold_models is not None
    # The printed error at the choice is that of the folds' models, but for what sites round.
    models = curve.fold_models
    judged = 0.0
    for k, site in enumerate(sites):
        own_X, own_y = X[k * 100 : k * 100 + 100], y[k * 100 : k * 100 + 100]
        for fold, rows in enumerate(site.draw.fold_rows(models.split, 100)):
            eta = own_X[rows] @ models.coefficients[:, fold] + models.intercepts[fold]
            judged += 2 * float(np.logaddexp(0, eta).sum() - own_y[rows] @ eta)
    assert curve.validation.error[curve.chosen] == pytest.approx(judged / len(y), rel=0.01)


def draw_rare_columns(rows: int, columns: int, total: float, seed: int) -> tuple[Array, Array]:
    """Return correlated binary columns, so many ones per row, and 3% positive responses."""
    rng = np.random.default_rng(seed)
    rates = np.exp(rng.uniform(np.log(0.001), np.log(0.25), columns))
    rates *= total / rates.sum()
    loads = 0.4 * rng.normal(size=(columns, 6))
    common = (loads**2).sum(axis=1)
    own = np.maximum(1 - common, 0.05)
    latent = rng.normal(size=(rows, 6)) @ loads.T + rng.normal(size=(rows, columns)) * np.sqrt(own)
    X = (latent / np.sqrt(common + own) > norm.isf(np.minimum(rates, 0.5))).astype(np.float64)
    effects = np.zeros(columns)
    nonzero = rng.choice(columns, columns // 8, replace=False)
    effects[nonzero] = 1.5 * rng.normal(size=nonzero.size)
    eta = X @ effects
    intercept = brentq(lambda c: expit(eta + c).mean() - 0.03, -20, 5)
    return X, (rng.random(rows) < expit(eta + intercept)).astype(np.float64)


@pytest.mark.full
@pytest.mark.parametrize(("rows", "columns", "seed"), [(4000, 80, 2), (6000, 120, 1)])
def test_rare_columns_end_where_the_error_is_smallest(rows: int, columns: int, seed: int) -> None:
    X, y = draw_rare_columns(rows, columns, 4.0 if columns == 80 else 5.0, seed)
    model = fit_model(connect(X, y, "binomial"), Settings(family="binomial"))
    assert model.status is Status.OPTIMAL
    curve = model.fit.curve
    assert curve is not None
    assert not curve.cut
    assert curve.validation.error[curve.chosen] == curve.validation.error.min()
    assert np.count_nonzero(model.coefficients) >= 5


def test_after_a_failed_trial_a_column_without_curvature_takes_no_long_step() -> None:
    points = points_of("binomial")[0]
    penalty = L1(0.01)
    curvature = np.array([1.0, 1.0, 1e-6, *np.ones(5)])
    base = Point(
        np.zeros(8),
        1.0,
        np.full(8, -0.1),
        np.zeros(len(SCALES)),
        0,
        0,
        0,
        np.arange(8),
        np.diag(curvature),
    )
    points.known = [base]
    trial = points.propose(penalty)
    assert trial.b[2] > 1e5 * trial.b[0] > 0
    points.add(trial, replace(base, b=trial.b, loss=2.0))
    shorter = points.propose(penalty)
    assert shorter.b[2] == pytest.approx(shorter.b[0] / (LEAST_CURVED * curvature.mean()))


def test_a_search_that_gets_stuck_goes_on_by_newton_unless_its_trips_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = draw("binomial", n=240, p=12)
    settings = Settings(family="binomial")
    usual = fit_model(connect(X, y, "binomial"), settings)
    assert usual.status is Status.OPTIMAL
    monkeypatch.setattr(joint_search, "MOST_TRIPS", 3)
    told: list[str] = []
    model = fit_model(connect(X, y, "binomial"), settings, told.append)
    assert model.status is Status.OPTIMAL
    assert any("by Newton" in text for text in told)
    curve = model.fit.curve
    assert curve is not None
    assert curve.fold_models is not None
    at = int(curve.validation.error.argmin())
    assert curve.lam == curve.penalties[at]
    assert 0 < at < curve.penalties.size - 1
    assert curve.lam == pytest.approx(usual.penalty, rel=0.8)
    limited = fit_model(connect(X, y, "binomial"), replace(settings, round_trips=40))
    assert limited.status is Status.CUT


def test_sites_with_rules_are_not_asked_for_a_second_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = draw("binomial", n=240, p=12)
    monkeypatch.setattr(joint_search, "MOST_TRIPS", 3)
    monkeypatch.setattr(Ledger, "atoms", (60, 60, 60))
    model = fit_model(connect(X, y, "binomial"), Settings(family="binomial", cv=5))
    assert model.status is Status.CUT
