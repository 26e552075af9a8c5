"""Cross-validation by gradients: what it judges, what it chooses and what it may send."""

import time
from functools import cache

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites
from helpers.loops import loop
from helpers.results import certificate_of, curve_of
from numpy.typing import ArrayLike

from fedlasso import InProcess, Site, certify, open_evidence
from fedlasso.errors import FedLassoError, Refused
from fedlasso.federation import Around, Federation, Request, metered
from fedlasso.federation.messages import R
from fedlasso.fitting import (
    GOALS,
    Budget,
    Fit,
    Rule,
    Settings,
    Status,
    fit_model,
    fix_penalty,
)
from fedlasso.fitting.at_penalty import fit_pooled
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import SplitEvidence
from fedlasso.fitting.evidence.split_evidence import count_gradients
from fedlasso.fitting.fit_plan import Gathered, Plan
from fedlasso.fitting.goals.by_gradients import fit_by_folds
from fedlasso.fitting.goals.compared import ComparedGoal
from fedlasso.fitting.gradient_tuning import judge_lasso, search_penalty_curve
from fedlasso.numerics import Array
from fedlasso.sites import FoldMoments, Standardiser, folds, standardise
from fedlasso.sites.rows import divide

SIZES = (40, 50, 30)
P = 60


def judge_on(splits: tuple[str, ...], uploads: int, sites: Federation) -> SplitEvidence:
    """What gradients may show on the training rows of some splits."""
    ledger = metered(sites)
    return SplitEvidence.open(Standardiser(ledger), splits, Budget(ledger, uploads))


@cache
def fitted(goal: str, rule: Rule, uploads: int = 400, seed: int = 0) -> tuple[Fit, float, Array]:
    ledger = metered(draw_federation(SIZES, p=P, seed=seed))
    view, scaling = standardise(ledger, "")
    before = ledger.costs
    context = Context(ledger, Settings(goal=goal, rule=rule, uploads=uploads))
    chooses = GOALS[goal]
    assert isinstance(chooses, ComparedGoal)
    gathered = Gathered(Plan("folds", 4, uploads, ""), view, scaling)
    fit = fit_by_folds(chooses, context, gathered)
    spent = ledger.costs - before
    sent = max(
        sum(spent.total(kind, site).upload for kind in ("scaling", "training")) / (8 * P)
        for site in spent.sites
    )
    return fit, sent, np.array(fit.coefficients)


@pytest.mark.standard
def test_errors_are_those_of_the_models_on_rows_that_they_have_not_seen() -> None:
    sites = draw_sites(SIZES, p=P)
    ledger = metered(InProcess(sites))
    names = folds(4, 0)
    lasso, _ = judge_lasso(judge_on(names, 300, ledger))
    for at in (0, len(lasso.fits) // 2, len(lasso.fits) - 1):
        for k, name in enumerate(names):
            b = lasso.fits[at][k].coefficients
            _, scaling = standardise(ledger, name)
            value, intercept = scaling.original(b)
            squares = 0.0
            rows = 0
            for site in sites:
                own = site.weights(name) == 0
                error = site.training.y[own] - site.training.X[own] @ value - intercept
                squares += float(error @ error)
                rows += int(own.sum())
            assert lasso.each[k, 0, at] == pytest.approx(squares / rows, rel=1e-9)
            assert lasso.rows[k] == rows


@pytest.mark.full
@pytest.mark.parametrize("goal", ["prediction", "selection"])
@pytest.mark.parametrize("uploads", [76, 120, 400, 1000])
def test_no_more_is_sent_than_may_be(goal: str, uploads: int) -> None:
    _, sent, _ = fitted(goal, "min", uploads)
    # One vector per split is scalars: sizes and squared responses.
    assert sent <= uploads + 1


@pytest.mark.full
@loop("seed", range(4))
def test_the_choice_is_fitted_to_all_rows_and_certified(seed: int) -> None:
    fit, _, _ = fitted("prediction", "min", 600, seed)
    assert fit.problem.m == sum(SIZES)
    assert fit.status is Status.CHOSEN
    assert certificate_of(fit).relative_gap <= 0.01
    assert "fitted to all rows" in fit.why


@pytest.mark.full
@loop("seed", range(4))
def test_one_standard_error_is_sparser(seed: int) -> None:
    least, _, sparse = fitted("selection", "1se", 600, seed)
    _, _, best = fitted("selection", "min", 600, seed)
    assert np.count_nonzero(sparse) <= np.count_nonzero(best)
    assert curve_of(least).validation.error.size > 1


def test_uploads_that_end_early_are_told() -> None:
    fit, _, _ = fitted("prediction", "min", 76)
    assert fit.status is Status.CUT


def test_too_few_uploads_are_refused() -> None:
    federation = draw_federation(SIZES, p=P)
    with pytest.raises(FedLassoError, match="give more `uploads`, fewer folds"):
        judge_on(folds(4, 0), count_gradients(4) - 1, federation)


def test_a_holdout_chooses_the_penalty_with_the_smallest_error() -> None:
    evidence = judge_on(("holdout 0.3 0",), 200, draw_federation(SIZES, p=P))
    curve = search_penalty_curve(evidence, "min")
    assert curve.chosen == int(np.argmin(curve.validation.error))
    assert not curve.cut
    assert (np.diff(curve.penalties) < 0).all()


class Refusing(Around):
    """Sites that send no second moments, and answer on few folds only."""

    def __init__(self, inner: Federation, most: int) -> None:
        super().__init__(inner)
        self.most = most

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        split = getattr(request, "split", "").split()
        if isinstance(request, FoldMoments) or (
            split[:1] == ["fold"] and int(split[3]) > self.most
        ):
            raise Refused("too few rows here")
        return self.inner.replies(request)


@pytest.mark.full
@pytest.mark.parametrize(("most", "plan"), [(10, "10 folds"), (5, "5 folds"), (1, "a holdout")])
@pytest.mark.parametrize("goal", ["prediction", "objective"])
def test_few_rows_are_cross_validated_on_as_many_folds_as_sites_allow(
    most: int, plan: str, goal: str
) -> None:
    federation = Refusing(draw_federation((25, 20, 15), p=20), most)
    fit = fit_model(federation, Settings(goal=goal)).fit
    assert f"gradients on {plan}" in fit.plan or f"gradients, and {plan}" in fit.plan
    assert fit.status in (Status.CHOSEN, Status.OPTIMAL)


def test_requested_folds_are_not_replaced() -> None:
    with pytest.raises(Refused):
        fit_model(Refusing(draw_federation((25, 20, 15), p=20), 5), Settings(cv=10))


@pytest.mark.parametrize("fraction", [0.3, 1e-3])
def test_a_wide_fit_at_a_small_penalty_ends_soon(fraction: float) -> None:
    """From zero, the first models of the curvature would have hundreds of active columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 1500))
    y = X[:, 0] - X[:, 1] + rng.standard_normal(30)
    view, _ = standardise(InProcess([Site("a", X[:14], y[:14]), Site("b", X[14:], y[14:])]))
    lam = fraction * open_evidence(view).largest_penalty
    started = time.process_time()
    fit = fit_pooled(view, lam, 100, 1e-9)
    assert time.process_time() - started < 4.0
    assert fit.status is Status.OPTIMAL
    assert fit.rounds <= 45
    certificate = certify(view, fix_penalty(view, lam), fit.coefficients)
    assert certificate.objective == pytest.approx(certificate_of(fit).objective, rel=1e-9)


def rare_sites(family: str, events: ArrayLike) -> Federation:
    """Three sites of 30 rows; only some rows of the first have an event, a one or a count."""
    rng = np.random.default_rng(0)
    sites = []
    for name in "abc":
        X = rng.standard_normal((30, 4))
        on = np.isin(np.arange(30), events) if name == "a" else np.zeros(30, bool)
        y = {"binomial": 1.0 * on, "poisson": 2.0 * on, "cox": np.where(on, 1, -1) * X[:, 3] ** 2}
        sites.append(Site(name, X, y[family], loss=Settings(family=family).loss, intercept=True))
    return InProcess(sites)


@pytest.mark.parametrize("family", ["binomial", "poisson", "cox"])
def test_rare_responses_are_spread_over_folds(family: str) -> None:
    # Without strata these rows would all be in the first fold.
    together = divide("fold 1 of 5 0", "a", 30)["penalty"][:3]
    said: list[str] = []
    model = fit_model(rare_sites(family, together), Settings(family=family), said.append)
    assert "on 5 folds" in model.fit.why
    assert not any("left out" in text for text in said)


def test_a_fold_whose_other_rows_are_all_alike_is_left_out() -> None:
    said: list[str] = []
    sites = rare_sites("binomial", np.array([7]))
    model = fit_model(sites, Settings(family="binomial"), said.append)
    assert "on 4 of 5 folds" in model.fit.why
    assert any(text.startswith("1 of 5 folds left out") for text in said)


def test_a_rare_class_is_fitted_as_far_as_rounding_allows() -> None:
    """The intercept's slope is a few steps of the grid of sums, so the bound is loose."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 20))
    rare = rng.random(300) < 1 / (1 + np.exp(np.log(50) - X[:, 0]))
    sites = [
        Site(str(j), X[j::3], 1.0 * rare[j::3], loss="binomial", intercept=True) for j in range(3)
    ]
    fit = fit_model(InProcess(sites), Settings(family="binomial", penalty=0.03)).fit
    assert rare.sum() == 7
    assert fit.status is Status.OPTIMAL
    assert certificate_of(fit).relative_gap < 1e-6
