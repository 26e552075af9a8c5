"""How well models of every family predict, from sums, against the same worked out from rows."""

import numpy as np
import pytest
from helpers.responses import draw_response
from sklearn.metrics import roc_auc_score

from fedlasso import InProcess, Ledger, Site
from fedlasso.fitting import Settings, fit_model
from fedlasso.fitting.examination.assessment import assess, auroc_of, groups_of, survival_curves
from fedlasso.numerics import Array, Response, Sample
from fedlasso.sites import Viewed, standardise
from fedlasso.sites.assessing import (
    GroupsAt,
    GroupSums,
    PairsAt,
    RecalibrationAt,
    ScoreRanges,
    ScoresAt,
    count_pairs,
)

SPLIT = "holdout 0.4 0"
P = 5


def draw_sites(family: str, rows: int = 240) -> list[Site]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, P))
    y = draw_response(family, X @ np.array([1.0, -0.6, 0.4, 0.0, 0.0]), rng)
    label = np.arange(rows) % 3
    return [
        Site(f"s{k}", X[label == k], y[label == k], loss=family, intercept=True, raw=True)
        for k in range(3)
    ]


def held_out(family: str) -> tuple[Viewed, Array, Array, list[Sample]]:
    """A view, a model, and all held-out linear predictors and responses, site by site."""
    sites = draw_sites(family)
    federation = InProcess(sites)
    view, _ = standardise(federation, SPLIT)
    b = np.zeros(len(federation.columns))
    b[:3] = (0.8, -0.5, 0.3)
    samples = [site.view(view.name).validation("candidate") for site in sites]
    eta = np.concatenate([sample.predictor(b) for sample in samples])
    return view, b, eta, samples


def test_ranges_tell_the_area_under_the_curve_and_calibration() -> None:
    view, b, eta, samples = held_out("binomial")
    y = np.concatenate([sample.y for sample in samples])
    sums = view.total(ScoresAt(b))
    assert sums.rows == len(eta)
    assert sums.scores == pytest.approx(eta.sum(), rel=1e-6)
    assert sums.squares == pytest.approx((eta**2).sum(), rel=1e-6)
    # Ranges so narrow that no two rows share one.
    counts = view.total(ScoreRanges(b, float(eta.min()), float(np.ptp(eta)) / 900, 900))
    assert auroc_of(counts) == pytest.approx(roc_auc_score(y, eta), abs=2e-3)
    groups = groups_of(counts)
    assert sum(group.rows for group in groups) == len(eta)
    total = sum(group.rows * group.observed for group in groups)
    assert total == pytest.approx(y.sum())
    expected = sum(group.rows * group.expected for group in groups)
    assert expected == pytest.approx((1 / (1 + np.exp(-eta))).sum(), rel=1e-6)


def test_recalibration_is_a_fit_of_two_numbers() -> None:
    view, b, eta, samples = held_out("binomial")
    y = np.concatenate([sample.y for sample in samples])
    at = view.total(RecalibrationAt(b, 0.2, 1.1))
    p = 1 / (1 + np.exp(-(0.2 + 1.1 * eta)))
    np.testing.assert_allclose(at.slopes, [(p - y).sum(), ((p - y) * eta).sum()], atol=1e-4)
    w = p * (1 - p)
    expected = [w.sum(), (w * eta).sum(), (w * eta**2).sum()]
    np.testing.assert_allclose(at.curvature, expected, rtol=1e-2, atol=0.1)


def test_pairs_are_counted_as_by_hand() -> None:
    view, b, _, samples = held_out("cox")
    comparable = 0
    right = 0.0
    for sample in samples:
        eta = sample.predictor(b)
        times = sample.response.times
        events = sample.response.events
        for i in range(sample.m):
            for j in range(sample.m):
                first = times[i] < times[j] or (times[i] == times[j] and not events[j])
                if events[i] and first:
                    comparable += 1
                    right += float(eta[i] > eta[j]) + 0.5 * float(eta[i] == eta[j])
    pairs = view.total(PairsAt(b))
    assert (pairs.comparable, pairs.concordant) == (comparable, right)


def test_a_model_that_tells_nothing_apart_has_half_of_its_pairs_right() -> None:
    rng = np.random.default_rng(0)
    response = Response.of(draw_response("cox", np.zeros(40), rng))
    comparable, right = count_pairs(np.zeros(40), response)
    assert right == comparable / 2 > 0


def test_survival_by_groups_is_kaplan_and_meier_where_nobody_is_censored() -> None:
    events = np.array([[1.0, 2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [4.0, 0.0, 0.0, 0.0]])
    low, empty, high = survival_curves(GroupSums(events, 0 * events), 2.0)
    assert low.times == (0.0, 2.0, 4.0, 6.0)
    assert low.shares == pytest.approx((1.0, 0.75, 0.25, 0.0))
    assert empty.shares == pytest.approx((1.0,) * 4)
    assert high.shares == pytest.approx((1.0, 0.0, 0.0, 0.0))


def test_groups_hold_every_row_once() -> None:
    view, b, eta, _ = held_out("cox")
    cuts = np.quantile(eta, [1 / 3, 2 / 3])
    sums = view.total(GroupsAt(b, float(cuts[0]), float(cuts[1]), 0.5, 10))
    assert (sums.events + sums.censored).sum() == len(eta)
    assert (sums.events + sums.censored).sum(axis=1).max() <= len(eta) // 3 + 1


@pytest.mark.parametrize("family", ["binomial", "poisson", "cox"])
def test_a_model_is_judged_on_rows_that_it_has_not_seen(family: str) -> None:
    ledger = Ledger(InProcess(draw_sites(family, 900)))
    settings = Settings(family=family, penalty=0.05)
    model = fit_model(ledger, settings)
    found = assess(ledger, model)
    assert found.rows == 90
    assert found.explained is not None
    assert 0 < found.explained.value < 1
    if family == "cox":
        assert found.concordance is not None
        assert 0.5 < found.concordance.value < 1
        assert len(found.curves) == 3
        assert [site.name for site in found.sites] == ["s0", "s1", "s2"]
        pairs = [site.pairs or 0 for site in found.sites]
        shares = [site.concordance.value for site in found.sites if site.concordance]
        assert found.concordance.value == pytest.approx(np.average(shares, weights=pairs))
    else:
        assert found.calibration is not None
        assert 0.3 < found.calibration.slope.value < 4
        assert sum(group.rows for group in found.groups) == found.rows
    if family == "binomial":
        assert found.auroc is not None
        assert 0.5 < found.auroc.value <= 1
