"""Cross-validation by gradients: what it judges, what it chooses and what it may send."""

from functools import cache

import numpy as np
import pytest
from draws import draw_federation, draw_sites

from fedlasso import InProcess
from fedlasso.errors import FedLassoError
from fedlasso.federation import metered
from fedlasso.fitting import Status
from fedlasso.fitting.by_folds import Splits, count_gradients, fit_by_folds, search_penalties
from fedlasso.fitting.goals import Goal, GoalFit
from fedlasso.fitting.tuning import Rule
from fedlasso.numerics import Array
from fedlasso.sites import folds, standardise

SIZES = (40, 50, 30)
P = 60


@cache
def fitted(
    goal: Goal, rule: Rule, uploads: int = 400, seed: int = 0
) -> tuple[GoalFit, float, Array]:
    ledger = metered(draw_federation(SIZES, p=P, seed=seed))
    view, _ = standardise(ledger, "")
    before = ledger.costs
    fit = fit_by_folds(ledger, view, folds(4, 0), uploads, goal, rule)
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
    splits = Splits(ledger, names, 300)
    lasso = splits.lasso()
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
            assert lasso.each(at)[k] == pytest.approx(squares / rows, rel=1e-9)
            assert lasso.rows[k] == rows


@pytest.mark.parametrize("goal", ["prediction", "selection"])
@pytest.mark.parametrize("uploads", [70, 120, 400, 1000])
def test_no_more_is_sent_than_may_be(goal: Goal, uploads: int) -> None:
    _, sent, _ = fitted(goal, "min", uploads)
    # One vector per session is scalars: sizes and squared responses.
    assert sent <= uploads + 1


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_is_fitted_to_all_rows_and_certified(seed: int) -> None:
    fit, _, _ = fitted("prediction", "min", 600, seed)
    assert fit.problem.m == sum(SIZES)
    assert fit.status is Status.CHOSEN
    assert fit.certificate.relative_gap <= 0.01
    assert "fitted to all rows" in fit.why


@pytest.mark.parametrize("seed", range(4))
def test_one_standard_error_is_sparser(seed: int) -> None:
    least, _, sparse = fitted("selection", "1se", 600, seed)
    _, _, best = fitted("selection", "min", 600, seed)
    assert np.count_nonzero(sparse) <= np.count_nonzero(best)
    assert least.curve.validation.error.size > 1


def test_uploads_that_end_early_are_told() -> None:
    fit, _, _ = fitted("prediction", "min", 70)
    assert fit.status is Status.CUT


def test_too_few_uploads_are_refused() -> None:
    ledger = metered(draw_federation(SIZES, p=P))
    with pytest.raises(FedLassoError, match="give more uploads, fewer folds, or a penalty"):
        search_penalties(ledger, folds(4, 0), count_gradients(4) - 1, "min")


def test_a_holdout_chooses_the_penalty_with_the_smallest_error() -> None:
    ledger = metered(draw_federation(SIZES, p=P))
    curve = search_penalties(ledger, ("holdout 0.3 0",), 200, "min")
    assert curve.chosen == int(np.argmin(curve.validation.error))
    assert not curve.cut
    assert (np.diff(curve.penalties) < 0).all()
