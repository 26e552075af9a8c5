"""Candidates judged from moments: the same errors as a cross-validation on the records."""

import numpy as np
import pytest
from helpers.fitting.folded import Records, draw_records
from helpers.loops import loop
from helpers.swept import swept_elastic_net, swept_lasso
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fedlasso.fitting.candidates import ELASTIC, LASSO, Candidate, adaptive
from fedlasso.fitting.tuning import (
    BLENDS,
    GRID_PENALTIES,
    RATIO_FEW_ROWS,
    RATIO_MANY_ROWS,
    SMALLEST_BY_MOMENTS,
    CandidateErrors,
    average_folds,
    judge_by_moments,
)
from fedlasso.numerics import Array, ElasticNet

# Weights come from a Lasso of the rows that train, at one penalty for all of them.
WEIGHTS_AT = 0.05
ADAPTIVE = adaptive(WEIGHTS_AT)
families = pytest.mark.parametrize("family", [LASSO, ELASTIC, ADAPTIVE], ids=lambda f: f.name)
by_seed = loop("seed", range(4))


def fit_by_records(train: Records, family: Candidate, lam: float) -> tuple[Array, Array]:
    """The family's model and its refit on standardised training rows, by scikit-learn and numpy."""
    own = train.standard
    weights = np.ones(own.X.shape[1])
    if family is ADAPTIVE:
        first = np.abs(swept_lasso(own.X, own.y, WEIGHTS_AT).coef_)
        weights = np.divide(1.0, first, out=np.full(first.shape, np.inf), where=first != 0)
    if family is ELASTIC:
        b = swept_elastic_net(own.X, own.y, lam, 0.01).coef_
        extra = np.sqrt(0.01 * len(own.y)) * np.eye(len(b))
        X, y = np.vstack([own.X, extra]), np.concatenate([own.y, np.zeros(len(b))])
    else:
        b = swept_lasso(own.X / weights, own.y, lam).coef_ / weights
        X, y = own.X, own.y
    on = b != 0
    refit = np.zeros(len(b))
    refit[on] = np.linalg.lstsq(X[:, on], y, rcond=None)[0]
    return b, refit


@pytest.mark.standard
@by_seed
@families
def test_errors_are_those_of_a_cross_validation_on_the_records(
    family: Candidate, seed: int
) -> None:
    records = draw_records(seed)
    judged = judge_by_moments(records.folded, family)
    for at in range(5, len(judged.penalties), 19):
        lam = float(judged.penalties[at])
        for k, (train, test) in enumerate(records.splits()):
            lasso, refit = fit_by_records(train, family, lam)
            Z = (test.X - train.X.mean(axis=0)) / train.X.std(axis=0)
            for share, kept in enumerate(BLENDS):
                b = kept * lasso + (1 - kept) * refit
                error = ((test.y - train.y.mean() - Z @ b) ** 2).mean()
                assert judged.each[k, share, at] == pytest.approx(error, rel=1e-7)
    assert_allclose(judged.rows, np.bincount(records.fold))


@by_seed
def test_without_an_intercept_or_scales_nothing_is_centred_or_scaled(seed: int) -> None:
    records = draw_records(seed)
    folded = records.folded
    plain = type(folded)(folded.folds, centre=False, scale=False)
    judged = judge_by_moments(plain, LASSO, 1)
    assert judged.each.shape[1] == 1
    at = 30
    for k, (train, test) in enumerate(records.splits()):
        b = swept_lasso(train.X, train.y, float(judged.penalties[at])).coef_
        error = ((test.y - test.X @ b) ** 2).mean()
        assert judged.each[k, 0, at] == pytest.approx(error, rel=1e-6)


@families
@pytest.mark.parametrize(("m", "p"), [(60, 8), (20, 40)])
def test_the_grid_begins_at_the_empty_model(family: Candidate, m: int, p: int) -> None:
    records = draw_records(0, m, p)
    judged = judge_by_moments(records.folded, family)
    whole = family.adapt(records.folded.normal(records.folded.whole))
    assert judged.penalties[0] == whole.largest_penalty
    ratio = judged.penalties[1:] / judged.penalties[:-1]
    assert_allclose(ratio, ratio[0], rtol=1e-9)
    shortest = RATIO_MANY_ROWS if m > p else RATIO_FEW_ROWS
    assert len(judged.penalties) >= GRID_PENALTIES
    assert judged.penalties[-1] <= shortest * judged.penalties[0] * (1 + 1e-9)
    assert judged.penalties[-1] >= SMALLEST_BY_MOMENTS * judged.penalties[0] * (1 - 1e-9)


@by_seed
@families
def test_the_best_is_the_last_only_at_the_smallest_penalty(family: Candidate, seed: int) -> None:
    for noise in (0.0, 1e-4, 1e-3, 1e-2, 0.1):
        judged = judge_by_moments(draw_records(seed, m=80, noise=noise, active=8).folded, family)
        ratio = judged.penalties[-1] / judged.penalties[0]
        assert judged.best[1] < len(judged.penalties) - 1 or ratio < 10 * SMALLEST_BY_MOMENTS


@by_seed
def test_the_grid_goes_on_without_noise_and_not_with_much(seed: int) -> None:
    """Without noise every smaller penalty predicts better."""
    quiet = judge_by_moments(draw_records(seed, m=80, noise=0.0, active=8).folded, LASSO, 1)
    assert quiet.best == (0, len(quiet.penalties) - 1)
    assert quiet.penalties[-1] / quiet.penalties[0] == pytest.approx(SMALLEST_BY_MOMENTS, rel=1e-9)
    noisy = judge_by_moments(draw_records(seed, m=80, noise=10.0).folded, LASSO)
    assert noisy.penalties[-1] == pytest.approx(RATIO_MANY_ROWS * noisy.penalties[0], rel=1e-9)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), m=st.integers(8, 60), p=st.integers(1, 30))
def test_choices_are_what_they_say(seed: int, m: int, p: int) -> None:
    judged = judge_by_moments(draw_records(seed, m, p, 4, active=min(3, p)).folded, LASSO)
    assert np.isfinite(judged.error).all()
    plain = judged.error[0]
    best = int(np.argmin(plain))
    limit = plain[best] + judged.se[0, best]
    assert judged.sparsest <= best
    assert plain[judged.sparsest] <= limit
    assert (plain[: judged.sparsest] > limit).all()
    assert judged.limit == limit
    for excess in (0.0, 0.1, 1.0):
        at = judged.largest_within(excess)
        assert at <= best
        assert plain[at] <= (1 + excess) * plain[best]
        assert (plain[:at] > (1 + excess) * plain[best]).all()
    share, at = judged.best
    assert judged.error[share, at] <= plain.min()
    assert share == 0 or at >= judged.sparsest
    relaxed = judged.error[1:, judged.sparsest :]
    assert judged.error[share, at] == min(plain.min(), relaxed.min())


def test_a_tie_goes_to_the_larger_penalty_and_to_the_plain_fit() -> None:
    each = np.array([[[3.0, 2.0, 1.0, 1.0], [3.0, 2.0, 1.0, 1.0]]] * 2)
    rows = np.array([10.0, 10.0])
    judged = CandidateErrors(LASSO, np.array([4.0, 3.0, 2.0, 1.0]), each, rows)
    assert judged.best == (0, 2)
    assert judged.sparsest == 2


def test_the_mean_is_over_rows_and_its_error_over_folds() -> None:
    rng = np.random.default_rng(0)
    each = rng.random((4, 2, 3))
    rows = np.array([5.0, 7.0, 9.0, 11.0])
    error, se = average_folds(each, rows)
    assert_allclose(error, np.average(each, axis=0, weights=rows))
    spread = np.average((each - error) ** 2, axis=0, weights=rows)
    assert_allclose(se, np.sqrt(spread / 3))
    assert average_folds(each[:1], rows[:1])[1].max() == 0.0


def test_a_family_pays_what_it_says() -> None:
    weights = np.array([1.0, 2.0])
    assert LASSO.penalty(0.3, weights).weights is weights
    net = ELASTIC.penalty(0.3, None)
    assert isinstance(net, ElasticNet)
    assert (net.lam, net.ridge) == pytest.approx((0.3, ELASTIC.ridge), rel=1e-12)
