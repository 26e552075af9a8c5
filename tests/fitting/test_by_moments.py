"""Fits from moments: chosen fairly, fitted exactly, and the same however rows are split."""

import numpy as np
import pytest
from helpers.fitting.folded import Records, choose, draw_records
from helpers.loops import loop
from helpers.results import certificate_of, curve_of, validation_of
from helpers.swept import swept_elastic_net, swept_lasso
from numpy.testing import assert_allclose

from fedlasso import InProcess, Site, certify
from fedlasso.fitting import GOALS, Fit, Rule, fix_penalty
from fedlasso.fitting.evidence import Folded
from fedlasso.fitting.evidence.moment_evidence import solve_at
from fedlasso.fitting.examination.examine import nested_error
from fedlasso.fitting.tuning import SURE_BY, fit_by_moments, fit_choice
from fedlasso.numerics import L1, Array, ElasticNet, Penalty
from fedlasso.numerics.moments import Moments
from fedlasso.procedures import Problem
from fedlasso.sites import standardise

by_goal = pytest.mark.parametrize("goal", GOALS)
by_rule = pytest.mark.parametrize("rule", ["min", "1se"])
DRAWS = [(seed, m, p) for seed in range(4) for m, p in ((60, 8), (30, 12), (25, 40))]


def fit_records(records: Records, goal: str, rule: Rule) -> Fit:
    """What a goal makes of the moments that sites would have sent of standardised rows."""
    p = records.X.shape[1]
    problem = Problem(L1(0.0), sites=("a",), sizes=(len(records.y),), p=p)
    return fit_by_moments(GOALS[goal], rule, records.folded, problem)


def solve(X: Array, y: Array, penalty: Penalty) -> Array:
    """The minimiser of a penalty by scikit-learn; infinite weights keep columns out."""
    weights = np.ones(X.shape[1]) if penalty.weights is None else penalty.weights
    on = np.isfinite(weights)
    b = np.zeros(len(weights))
    if isinstance(penalty, ElasticNet):
        assert (weights[on] == 1.0).all()
        b[on] = swept_elastic_net(X[:, on], y, penalty.lam, penalty.ridge).coef_
    else:
        b[on] = swept_lasso(X[:, on] / weights[on], y, penalty.lam).coef_ / weights[on]
    return b


@pytest.mark.standard
@by_rule
@by_goal
@pytest.mark.parametrize(("m", "p"), [(60, 8), (40, 12)])
@loop("seed", range(4))
def test_every_candidate_is_the_minimiser_of_its_own_penalty(
    goal: str, rule: Rule, m: int, p: int, seed: int
) -> None:
    records = draw_records(seed, m, p).standard
    result = fit_records(records, goal, rule)
    for point in result.points:
        exact = solve(records.X, records.y, point.penalty)
        assert_allclose(point.coefficients, exact, rtol=0, atol=1e-7)
        r = records.y - records.X @ point.coefficients
        assert point.residual_ss == pytest.approx(float(r @ r), rel=1e-9)
        value = float(r @ r) / (2 * m) + point.penalty.value(point.coefficients)
        assert point.certificate.objective == pytest.approx(value, rel=1e-9)
        assert point.certificate.gap <= 1e-9 * records.y.var()
    assert result.coefficients is result.points[result.chosen].coefficients
    assert validation_of(result).error[result.chosen] == validation_of(result).error.min()


@by_goal
@pytest.mark.parametrize(("seed", "m", "p"), DRAWS)
def test_a_family_is_taken_only_if_it_is_surely_better(
    goal: str, seed: int, m: int, p: int
) -> None:
    chosen = choose(draw_records(seed, m, p).folded, goal, "min")
    plain, *others = chosen.candidates
    assert plain.name == "Lasso"
    assert plain.at == int(np.argmin(plain.judged.error[0]))
    for other in others:
        difference = other.each - plain.each
        mean = float(np.average(difference, weights=plain.judged.rows))
        spread = float(np.average((difference - mean) ** 2, weights=plain.judged.rows))
        assert mean < -SURE_BY * np.sqrt(spread / (len(difference) - 1))
    assert chosen.choice.error == min(each.error for each in chosen.candidates)
    families = {each.judged.candidate.name for each in chosen.candidates}
    allowed = {"prediction": {"Lasso", "elastic net", "adaptive Lasso"}}.get(goal, {"Lasso"})
    assert families <= allowed


@by_rule
@pytest.mark.parametrize(("seed", "m", "p"), DRAWS)
def test_the_objective_is_a_plain_lasso(rule: Rule, seed: int, m: int, p: int) -> None:
    records = draw_records(seed, m, p).standard
    result = fit_records(records, "objective", rule)
    lasso = choose(records.folded, "objective", rule).lasso
    assert lasso.each.shape[1] == 1
    at = lasso.sparsest if rule == "1se" else int(np.argmin(lasso.error[0]))
    assert (result.method, curve_of(result).chosen) == ("Lasso", at)
    assert type(result.penalty) is L1
    assert result.penalty.weights is None
    assert result.penalty.lam == curve_of(result).lam
    reported = validation_of(result).error[result.chosen]
    assert curve_of(result).validation.error[at] == pytest.approx(reported, rel=1e-12)
    # The curve has the models of all rows.
    own = curve_of(result).coefficients[:, at]
    assert_allclose(result.coefficients, own, rtol=0, atol=1e-7)
    if m > p:
        exact = solve(records.X, records.y, result.penalty)
        assert_allclose(result.coefficients, exact, rtol=0, atol=1e-7)


@pytest.mark.standard
@by_goal
@pytest.mark.parametrize(("seed", "m", "p"), DRAWS)
def test_one_standard_error_makes_a_sparser_lasso(goal: str, seed: int, m: int, p: int) -> None:
    folded = draw_records(seed, m, p).folded
    smallest = choose(folded, "objective", "min").choice
    sparse = choose(folded, goal, "1se").choice
    lasso = sparse.judged
    assert sparse.at <= smallest.at
    limit = smallest.error + smallest.se
    assert sparse.error <= limit * (1 + 1e-12)
    whole = folded.normal(folded.whole)
    few = fit_choice(whole, sparse).active
    if sparse.support is None:
        assert lasso.error[0, sparse.at] <= limit
        assert few <= fit_choice(whole, smallest).active
    else:
        assert few <= sparse.support.sum()


@pytest.mark.standard
@by_rule
@by_goal
@loop("seed", range(3))
def test_the_fit_does_not_depend_on_how_rows_are_split_into_sites(
    goal: str, rule: Rule, seed: int
) -> None:
    records = draw_records(seed, 80, 10).standard
    one = fit_records(records, goal, rule)
    rng = np.random.default_rng(seed)
    at_random = rng.integers(0, 3, 80)
    unequal = np.minimum(rng.geometric(0.5, 80), 5)
    by_response = records.y.argsort().argsort() // 27
    for site in (at_random, unequal, by_response):
        sums = [np.zeros((12, 12)) for _ in range(5)]
        for j in np.unique(site):
            mine = records.take(site == j)
            for k, part in zip(np.unique(mine.fold), mine.folded.folds, strict=True):
                sums[k] += part.products
        folded = Folded(tuple(Moments(products) for products in sums))
        other = fit_by_moments(GOALS[goal], rule, folded, one.problem)
        assert other.method == one.method
        assert_allclose(other.coefficients, one.coefficients, rtol=0, atol=1e-9)
        assert_allclose(validation_of(other).error, validation_of(one).error, rtol=1e-9)


@pytest.mark.full
@by_rule
@by_goal
@loop("seed", range(3))
def test_the_nested_error_is_that_of_choosing_anew_without_each_fold(
    goal: str, rule: Rule, seed: int
) -> None:
    records = draw_records(seed, 60, 8)
    nested, models = nested_error(records.folded, GOALS[goal], rule)
    errors = []
    active = []
    for train, test in records.splits():
        own = train.standard
        choice = choose(train.folded, goal, rule).choice
        point = fit_choice(own.folded.whole.normal(centre=False, scale=False), choice)
        b = solve(own.X, own.y, point.penalty)
        Z = (test.X - train.X.mean(axis=0)) / train.X.std(axis=0)
        errors.append((test.y - train.y.mean() - Z @ b) ** 2)
        active.append(np.count_nonzero(b))
    means = np.array([e.mean() for e in errors])
    rows = [len(e) for e in errors]
    assert nested.error[0] == pytest.approx(np.concatenate(errors).mean(), rel=1e-6)
    spread = np.average((means - nested.error[0]) ** 2, weights=rows)
    assert nested.se[0] == pytest.approx(np.sqrt(spread / 4), rel=1e-5)
    assert nested.active[0] == pytest.approx(np.mean(active))
    predicted = [
        test.X @ b[:, 0] + a for (_, test), (b, a) in zip(records.splits(), models, strict=True)
    ]
    residuals = np.concatenate(
        [e - t.y for e, (_, t) in zip(predicted, records.splits(), strict=True)]
    )
    assert nested.error[0] == pytest.approx((residuals**2).mean(), rel=1e-6)


@by_goal
@by_rule
@loop("seed", range(3))
def test_sites_certify_what_the_server_chose(goal: str, rule: Rule, seed: int) -> None:
    records = draw_records(seed, 90, 8)
    cuts = np.array_split(np.random.default_rng(seed).permutation(90), 3)
    sites = [Site(f"s{j}", records.X[r], records.y[r], raw=True) for j, r in enumerate(cuts)]
    view, scaling = standardise(InProcess(sites), "")
    folded = Folded.ask(view, 5, seed, centre=True, scale=True)
    assert sum(fold.rows for fold in folded.folds) == 90
    result = fit_by_moments(GOALS[goal], rule, folded, fix_penalty(view, 0.0))
    asked = certify(view, result.problem, result.coefficients)
    assert certificate_of(result).objective == pytest.approx(asked.objective, rel=1e-9)
    assert asked.gap <= 1e-9 * records.y.var()
    own = records.standard
    assert_allclose(result.coefficients, solve(own.X, own.y, result.penalty), rtol=0, atol=1e-7)
    coefficients, intercept = scaling.original(result.coefficients)
    assert_allclose(
        records.X @ coefficients + intercept, own.X @ result.coefficients + records.y.mean()
    )


@loop("seed", range(8))
def test_one_penalty_is_solved_with_its_weights(seed: int) -> None:
    records = draw_records(seed, 60, 10).standard
    normal = records.folded.whole.normal(centre=False, scale=False)
    weights = np.random.default_rng(seed).uniform(0.2, 4, 10)
    weights[3] = np.inf
    for share in (1.5, 0.5, 0.05, 1e-3):
        for given in (None, weights):
            penalty = L1(share * normal.largest_penalty, given)
            exact = solve(records.X, records.y, penalty)
            assert_allclose(solve_at(normal, penalty), exact, rtol=0, atol=1e-8)


def test_a_response_that_no_column_explains_gives_the_empty_model() -> None:
    records = draw_records(0, 60, 8, active=0)
    flat = Records(records.X, np.zeros(60), records.fold)
    for goal in GOALS:
        result = fit_records(flat, goal, "min")
        assert not result.coefficients.any()
        assert certificate_of(result).gap == 0.0
