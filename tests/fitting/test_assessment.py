"""How well models of every family predict, from sums, against the same worked out from rows."""

from collections import Counter

import numpy as np
import pytest
from helpers.responses import draw_response
from lifelines import KaplanMeierFitter
from lifelines.utils import concordance_index
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import r2_score, roc_auc_score

from fedlasso import InProcess, Ledger, Site
from fedlasso.federation import Federation, Request
from fedlasso.federation.federation import Around
from fedlasso.federation.messages import R
from fedlasso.fitting import Settings, fit_model
from fedlasso.fitting.examination.assess import (
    NETWORK,
    Assessing,
)
from fedlasso.fitting.examination.assessment import Measure
from fedlasso.fitting.examination.examine import Examining, assess_again, expect_error
from fedlasso.fitting.examination.intervals import greenwood, wilson
from fedlasso.fitting.examination.summed_measures import join_ranges, survival_curves
from fedlasso.fitting.fold_models import FoldModels
from fedlasso.fitting.inference.infer import separate_sites
from fedlasso.fitting.model import Model
from fedlasso.numerics import Array, Response, find_loss
from fedlasso.sites import standardise
from fedlasso.sites.assessing import GroupsAt, GroupSums, ScoreRanges
from fedlasso.sites.cells import CELL_ROWS
from fedlasso.sites.ranks import count_pairs

P = 5
EFFECTS = np.array([1.0, -0.6, 0.4, 0.0, 0.0])


def draw_sites(family: str, rows: int = 240, count: int = 3) -> list[Site]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, P)) * [1, 2, 3, 4, 5] + 1
    eta = (X - 1) @ (EFFECTS / [1, 2, 3, 4, 5])
    y = eta + rng.standard_normal(rows) if family == "linear" else draw_response(family, eta, rng)
    label = np.arange(rows) % count
    loss = "quadratic" if family == "linear" else family
    return [
        Site(f"s{k}", X[label == k], y[label == k], loss=loss, intercept=True, raw=True)
        for k in range(count)
    ]


def predict_by_fold(site: Site, models: FoldModels) -> Array:
    """Every row's linear predictor by the model of its fold."""
    X = site.table.columns.T[:, :P]
    eta = np.zeros(site.rows)
    for k, rows in enumerate(site.draw.fold_rows(models.split, site.rows)):
        eta[rows] = X[rows] @ models.coefficients[:, k] + models.intercepts[k]
    return eta


class Fitted:
    """A model of drawn sites, the models of its folds, and their predictions for all rows."""

    def __init__(self, family: str, rows: int = 240, count: int = 3, **settings: float) -> None:
        self.sites = draw_sites(family, rows, count)
        self.counted = Counted(InProcess(self.sites))
        self.ledger = Ledger(self.counted)
        self.model: Model = fit_model(self.ledger, Settings(family=family, **settings))  # type: ignore[arg-type]
        nested = expect_error(self.model)
        self.counted.asked.clear()
        self.found = assess_again(self.ledger, self.model, nested)
        self.asked = Counter(self.counted.asked)
        self.models = Examining.of(self.ledger, self.model, nested).find_models()
        self.etas = [predict_by_fold(site, self.models) for site in self.sites]
        self.eta = np.concatenate(self.etas)
        self.y = np.concatenate([site.response.y for site in self.sites])


class Counted(Around):
    """A federation that counts questions by name."""

    def __init__(self, inner: Federation) -> None:
        super().__init__(inner)
        self.asked: list[str] = []

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        self.asked.append(type(request).__name__)
        return self.inner.replies(request)


def value_of(measure: Measure | None) -> float:
    assert measure is not None
    assert measure.low is not None
    assert measure.high is not None
    assert measure.low < measure.value < measure.high
    return measure.value


@pytest.mark.standard
def test_a_linear_model_is_assessed_on_all_rows_by_nested_models() -> None:
    fitted = Fitted("linear")
    found = fitted.found
    assert found.rows == 240
    assert "chosen and fitted without its fold, one of 10 folds" in found.how
    assert value_of(found.explained) == pytest.approx(r2_score(fitted.y, fitted.eta), abs=1e-6)
    assert found.calibration is not None
    slope = np.polyfit(fitted.eta, fitted.y, 1)[0]
    assert value_of(found.calibration.slope) == pytest.approx(slope, abs=1e-6)
    mean = float((fitted.y - fitted.eta).mean())
    assert value_of(found.calibration.intercept) == pytest.approx(mean, abs=1e-6)
    assert sum(group.rows for group in found.groups) == 240
    observed = sum(group.rows * group.observed for group in found.groups)
    assert observed == pytest.approx(fitted.y.sum(), abs=1e-4)
    # The folds' moments are known: one question on errors, recalibration, ranges and sites each,
    # and one to each site that is left out.
    once = dict.fromkeys(("RecalibrationAt", "PredictionErrors", "ScoreRanges"), 1)
    assert fitted.asked == {**once, "SiteMeasures": 1 + 3}
    for site, own, eta in zip(found.sites, fitted.sites, fitted.etas, strict=True):
        assert site.rows == own.rows
        assert value_of(site.explained) == pytest.approx(r2_score(own.response.y, eta), abs=1e-6)
        errors = (own.response.y - eta) ** 2
        assert value_of(site.error) == pytest.approx(errors.mean(), rel=1e-6)


def test_weighted_rows_have_their_mean_error_without_an_interval() -> None:
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 80) * np.repeat([1.0, 4.0], 40)
    X = np.random.default_rng(0).standard_normal((80, P))
    y = X @ EFFECTS + np.repeat([0.0, 3.0], 40)
    sites = [
        Site(name, X[own], y[own], weights=weights[own], raw=True)
        for name, own in (("one", slice(0, 40)), ("two", slice(40, 80)))
    ]
    ledger = Ledger(InProcess(sites))
    model = fit_model(ledger, Settings(penalty=0.05))
    found = assess_again(ledger, model)
    errors = [value_of(site.error) for site in found.sites]
    sums = [weights[:40].sum(), weights[40:].sum()]
    assert found.error is not None
    assert found.error.value == pytest.approx(np.average(errors, weights=sums))
    assert found.error.low is None


@pytest.mark.standard
def test_means_of_calibration_groups_are_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nearly separable classes: predictions are near zero and one, and cells are rounded.
    monkeypatch.setattr(f"{__name__}.EFFECTS", 12 * EFFECTS)
    for family in ("binomial", "poisson"):
        if family == "poisson":
            monkeypatch.setattr(f"{__name__}.EFFECTS", EFFECTS / 6)
        groups = Fitted(family, penalty=0.003).found.groups
        most = 1.0 if family == "binomial" else np.inf
        assert all(0 <= mean <= most for g in groups for mean in (g.expected, g.observed))
        if family == "binomial":
            assert {groups[0].expected, groups[-1].expected} & {0.0, 1.0}


@pytest.mark.standard
def test_classes_are_assessed_as_from_rows() -> None:
    fitted = Fitted("binomial", penalty=0.03)
    found = fitted.found
    assert "fitted at the given penalty without its fold, one of 5 folds" in found.how
    aurocs = [
        roc_auc_score(site.response.y, eta)
        for site, eta in zip(fitted.sites, fitted.etas, strict=True)
    ]
    for site, auroc in zip(found.sites, aurocs, strict=True):
        assert value_of(site.auroc) == pytest.approx(auroc, abs=1e-9)
    ones = np.array([site.response.y.sum() for site in fitted.sites])
    pairs = ones * (np.array([site.rows for site in fitted.sites]) - ones)
    assert value_of(found.auroc) == pytest.approx(np.average(aurocs, weights=pairs), abs=1e-9)

    def deviance(at: Array) -> float:
        eta = at[0] + at[1] * fitted.eta
        return float(2 * (np.logaddexp(0, eta) - fitted.y * eta).sum())

    assert found.calibration is not None
    both = minimize(deviance, [0.0, 1.0], tol=1e-12)
    assert value_of(found.calibration.slope) == pytest.approx(both.x[1], abs=1e-4)
    p = expit(both.x[0] + both.x[1] * fitted.eta)
    rows = np.column_stack([np.ones(p.size), fitted.eta])
    se = float(np.sqrt(np.linalg.inv(rows.T @ (rows * (p * (1 - p))[:, None]))[1, 1]))
    assert found.calibration.slope.high == pytest.approx(both.x[1] + 1.96 * se, abs=1e-3)
    large = minimize(lambda at: deviance(np.array([at[0], 1.0])), [0.0], tol=1e-12)
    assert value_of(found.calibration.intercept) == pytest.approx(large.x[0], abs=1e-4)
    empty = minimize(lambda at: deviance(np.array([at[0], 0.0])), [0.0], tol=1e-12)
    ratio = deviance(np.array([0.0, 1.0])) / empty.fun
    # Sums of deviances have four bits below their standard error at each site.
    assert value_of(found.explained) == pytest.approx(1 - ratio, abs=5e-3)
    for group in found.groups:
        ends = binomtest(round(group.rows * group.observed), group.rows)
        assert (group.low, group.high) == pytest.approx(ends.proportion_ci(method="wilson"))
    assert found.roc[0] == (0.0, 0.0)
    assert found.roc[-1] == (1.0, 1.0)
    area = np.trapezoid([true for _, true in found.roc], [false for false, _ in found.roc])
    assert area == pytest.approx(roc_auc_score(fitted.y, fitted.eta), abs=0.02)


@pytest.mark.standard
def test_survival_is_assessed_as_from_rows() -> None:
    fitted = Fitted("cox", 600, penalty=0.03)
    found = fitted.found
    whole = 0.0
    for site, own, eta in zip(found.sites, fitted.sites, fitted.etas, strict=True):
        y = own.response
        expected = concordance_index(y.times, -eta, y.events)
        assert value_of(site.concordance) == pytest.approx(expected, abs=1e-9)
        assert site.pairs is not None
        whole += site.pairs * expected
    pairs = sum(site.pairs or 0 for site in found.sites)
    assert value_of(found.concordance) == pytest.approx(whole / pairs, abs=1e-9)
    assert len(found.curves) == 3
    cuts = np.quantile(fitted.eta, [1 / 3, 2 / 3])
    groups = np.searchsorted(cuts, fitted.eta)
    response = Response.of(fitted.y)
    for k, curve in enumerate(found.curves):
        own = groups == k
        fitter = KaplanMeierFitter().fit(response.times[own], response.events[own])
        expected = fitter.survival_function_at_times(curve.times).to_numpy()
        # Intervals of time with fewer than five rows of a site join their neighbours.
        np.testing.assert_allclose(curve.shares, expected, atol=0.06)
        assert curve.at_risk[0] == pytest.approx(own.sum(), abs=30)
        assert len(curve.low) == len(curve.high) == len(curve.at_risk) == len(curve.times)


@pytest.mark.standard
def test_a_tuned_fit_keeps_the_models_of_its_folds() -> None:
    fitted = Fitted("binomial", 150, uploads=600)
    assert "fitted at the chosen penalty without its fold, one of 5 folds" in fitted.found.how
    expected = {"PredictionErrors": 1, "ScoreRanges": 1, "PairsAt": 1, "SiteMeasures": 4}
    steps = fitted.asked.pop("RecalibrationAt")
    assert steps <= 8
    assert fitted.asked == expected


@pytest.mark.standard
def test_fits_of_folds_that_stall_go_on() -> None:
    """Newton steps to nearly separable classes stall on one of these folds."""
    X, y = load_breast_cancer(return_X_y=True)
    y = 1.0 - y
    label = np.random.default_rng(0).permutation(np.arange(len(y)) % 3)
    sites = [
        Site(f"bc{k}", X[label == k], y[label == k], loss="binomial", intercept=True, raw=True)
        for k in range(3)
    ]
    ledger = Ledger(InProcess(sites))
    model = fit_model(ledger, Settings(family="binomial", penalty=0.02))
    assert Examining.of(ledger, model).find_models().count == 5


@pytest.mark.parametrize("family", ["linear", "binomial"])
def test_a_left_out_site_has_a_model_of_the_others(family: str) -> None:
    fitted = Fitted(family, 150, penalty=0.03)
    assert [site.name for site in fitted.found.left_out] == ["s0", "s1", "s2"]
    others = InProcess([fitted.sites[0], fitted.sites[2]])
    model = fit_model(others, Settings(family=family, penalty=0.03))
    own = fitted.sites[1]
    score = model.score(own.table.columns.T[:, :P])
    found = fitted.found.left_out[1]
    if family == "linear":
        assert value_of(found.explained) == pytest.approx(r2_score(own.response.y, score), abs=1e-5)
    else:
        assert value_of(found.auroc) == pytest.approx(roc_auc_score(own.response.y, score))


def test_over_a_network_no_site_is_left_out() -> None:
    class Elsewhere(Federation):
        """Sites that are not in this process, as far as anybody can tell."""

        def __init__(self, inner: Federation) -> None:
            self.inner = inner
            self.sites, self.columns, self.loss = inner.sites, inner.columns, inner.loss

        def replies(self, request: Request[R]) -> tuple[R, ...]:
            return self.inner.replies(request)

    ledger = Ledger(Elsewhere(InProcess(draw_sites("linear", 90))))
    found = assess_again(ledger, fit_model(ledger, Settings(penalty=0.1)))
    assert found.how.endswith(NETWORK)
    assert found.left_out == ()


def test_rows_have_the_mean_of_the_sites_intercepts() -> None:
    sites = draw_sites("linear", 90)
    shifted = [
        Site(s.name, s.table.columns.T, s.response.y + 10 * k, raw=True)
        for k, s in enumerate(sites)
    ]
    ledger = Ledger(InProcess(shifted))
    model = fit_model(ledger, Settings(penalty=0.1, site_effects=True))
    found = assess_again(separate_sites(ledger, True, None), model)
    y = np.concatenate([site.response.y for site in shifted])
    X = np.vstack([site.table.columns.T for site in shifted])
    # As predictions for new rows have, which belong to no site.
    assert value_of(found.explained) == pytest.approx(r2_score(y, model.score(X)), abs=0.03)


def test_small_sites_and_rare_events_are_withheld() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((130, P))
    y = (rng.random(130) < 1 / (1 + np.exp(-X @ EFFECTS))).astype(float)
    parts = {"few": slice(0, 8), "one": slice(8, 50), "two": slice(50, 130)}
    y[8:50] = 0.0
    y[8:12] = 1.0
    sites = [
        Site(name, X[own], y[own], loss="binomial", intercept=True, raw=True)
        for name, own in parts.items()
    ]
    ledger = Ledger(InProcess(sites))
    found = assess_again(ledger, fit_model(ledger, Settings(family="binomial", penalty=0.05)))
    few, rare, enough = found.sites
    assert (few.rows, few.error, few.explained, few.auroc, few.calibration) == (8, *[None] * 4)
    assert rare.error is not None
    assert (rare.auroc, rare.calibration) == (None, None)
    assert enough.auroc is not None


def test_no_range_has_a_few_rows() -> None:
    rng = np.random.default_rng(0)
    for rows in (3, 40, 200):
        counts = np.bincount(rng.integers(0, 64, rows), minlength=64).astype(float)
        assert sum(counts[own].sum() for own in join_ranges(counts)) == rows
    sites = draw_sites("cox", 90)
    federation = InProcess(sites)
    view, _ = standardise(federation)
    b = np.array([[0.8, -0.5, 0.3, 0.0, 0.0]]).T
    for site in sites:
        own = site.view(view.name)
        held = ScoreRanges(b, np.zeros(1)).answer(own).rows
        assert held.sum() == site.rows
        assert held[held > 0].min() >= CELL_ROWS
        sums = GroupsAt(b, np.zeros(1), "", 0.2).answer(own)
        cells = sums.events + sums.censored
        assert cells[:, :-1][cells[:, :-1] > 0].min() >= CELL_ROWS
        np.testing.assert_array_equal(
            cells.sum(axis=1), np.diff(np.rint(site.rows / 3 * np.arange(4)))
        )
        assert (sums.events % 2 == 0).all()


def test_a_model_that_orders_no_rows_has_half_of_its_pairs_right() -> None:
    rng = np.random.default_rng(0)
    response = Response.of(draw_response("cox", np.zeros(40), rng))
    comparable, right = count_pairs(np.zeros(40), response)
    assert right == comparable / 2 > 0


def test_survival_with_its_intervals_is_that_of_kaplan_and_meier() -> None:
    events = np.array([3.0, 2.0, 4.0, 0.0])
    at_risk = np.array([20.0, 15.0, 12.0, 6.0])
    times = np.repeat([1, 2, 3, 4, 1, 2, 3, 4], [3, 2, 4, 0, 2, 1, 2, 6])
    dead = np.repeat([1, 1, 1, 1, 0, 0, 0, 0], [3, 2, 4, 0, 2, 1, 2, 6])
    fitter = KaplanMeierFitter().fit(times, dead)
    survival, low, high = greenwood(events, at_risk)
    expected = fitter.survival_function_at_times([1, 2, 3, 4]).to_numpy()
    np.testing.assert_allclose(survival, expected)
    ends = fitter.confidence_interval_.to_numpy()[1:5]
    np.testing.assert_allclose(np.column_stack([low, high]), ends)
    censored = np.array([2.0, 1.0, 2.0, 6.0])
    both = np.vstack([events, 0 * events, 0 * events]), np.vstack([censored, *[0 * censored] * 2])
    (curve,) = survival_curves(GroupSums(*both), 1.0, CELL_ROWS)
    assert curve.shares == pytest.approx((1.0, *expected[:3]))
    assert curve.at_risk == (20, 15, 12, 6)


def test_wilson_at_the_ends() -> None:
    for count in (0, 1, 7, 20):
        expected = binomtest(count, 20).proportion_ci(method="wilson")
        assert wilson(count / 20, 20.0) == pytest.approx(expected)


def test_counts_are_assessed_with_their_dispersion() -> None:
    fitted = Fitted("poisson", 150, penalty=0.05)
    assert fitted.found.calibration is not None
    assert 0.5 < value_of(fitted.found.calibration.slope) < 2
    loss = find_loss("poisson")
    error = loss.deviance(fitted.eta, Response.of(fitted.y)).sum()
    rate = np.log(fitted.y.mean())
    empty = loss.deviance(np.full(150, rate), Response.of(fitted.y)).sum()
    # Sums of deviances are rounded.
    assert value_of(fitted.found.explained) == pytest.approx(1 - error / empty, abs=2e-2)
    family = fitted.model.settings.response_family
    assessing = Assessing(
        fitted.ledger, fitted.model.scaling, family, np.zeros((1, 1)), np.zeros(1), ""
    )
    assert (assessing.dispersion(0.5), assessing.dispersion(3.0)) == (1.0, 3.0)
