"""Cross-validation by gradients: what it judges, what it chooses and what it may send."""

from functools import cache

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites
from helpers.loops import loop
from helpers.results import certificate_of, curve_of

from fedlasso import InProcess
from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.fitting import GOALS, Budget, Fit, Rule, Settings, Status
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import SplitEvidence
from fedlasso.fitting.evidence.split_evidence import count_gradients
from fedlasso.fitting.fit_plan import Gathered, Plan
from fedlasso.fitting.goals.by_gradients import fit_by_folds
from fedlasso.fitting.goals.compared import ComparedGoal
from fedlasso.fitting.gradient_tuning import judge_lasso, search_penalty_curve
from fedlasso.numerics import Array
from fedlasso.sites import folds, standardise

SIZES = (40, 50, 30)
P = 60


def judge_on(splits: tuple[str, ...], uploads: int, sites: Federation) -> SplitEvidence:
    """What gradients may show on the training rows of some splits."""
    ledger = metered(sites)
    return SplitEvidence.open(ledger, splits, Budget(ledger, uploads))


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
@pytest.mark.parametrize("uploads", [70, 120, 400, 1000])
def test_no_more_is_sent_than_may_be(goal: str, uploads: int) -> None:
    _, sent, _ = fitted(goal, "min", uploads)
    # One vector per split is scalars: sizes and squared responses.
    assert sent <= uploads + 1


@pytest.mark.standard
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
    fit, _, _ = fitted("prediction", "min", 70)
    assert fit.status is Status.CUT


def test_too_few_uploads_are_refused() -> None:
    federation = draw_federation(SIZES, p=P)
    with pytest.raises(FedLassoError, match="give more uploads, fewer folds, or a penalty"):
        judge_on(folds(4, 0), count_gradients(4) - 1, federation)


def test_a_holdout_chooses_the_penalty_with_the_smallest_error() -> None:
    evidence = judge_on(("holdout 0.3 0",), 200, draw_federation(SIZES, p=P))
    curve = search_penalty_curve(evidence, "min")
    assert curve.chosen == int(np.argmin(curve.validation.error))
    assert not curve.cut
    assert (np.diff(curve.penalties) < 0).all()
