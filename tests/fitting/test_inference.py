"""Effects and estimates from a fit and the sums around it, against independent answers."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.responses import draw_response
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit

from fedlasso import InProcess, Site
from fedlasso.fitting import fix_penalty
from fedlasso.fitting.inference.debiased import Start
from fedlasso.fitting.inference.estimates import Effects
from fedlasso.fitting.inference.groups import spread_starts
from fedlasso.numerics import L1, Array
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.spike_slab import sample_posterior
from fedlasso.sites import GradientAt, SiteWeighted, standardise


def test_effects_are_those_of_all_rows_with_free_columns_taken_out() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((240, 6))
    X[:, 1] += X[:, 0]
    y = X @ [0.8, 0.5, 0.0, -0.4, 0.0, 0.0] + rng.standard_normal(240)
    sites = [Site(str(k), X[k::3], y[k::3]) for k in range(3)]
    weights = np.ones(6)
    weights[0] = 0.0
    b = np.array([0.7, 0.4, 0.0, -0.2, 0.0, 0.0])
    effects = Start.at(InProcess(sites), L1(0.1, weights), b).find_effects(seed=4)
    free = X[:, :1]
    rows = np.column_stack([X[:, 1:], y])
    rows -= free @ np.linalg.lstsq(free, rows, rcond=None)[0]
    normal = Normal.of_products(rows.T @ rows, 240)
    runs = [
        sample_posterior(normal, 5, start, (4, run), nonlocal_prior=True)
        for run, start in enumerate(spread_starts(normal.gram, b[1:]))
    ]
    expected = np.mean([run.probabilities for run in runs], axis=0)
    assert effects.probabilities[0] == 0.0
    # Rounding may turn single draws of some thousand.
    np.testing.assert_allclose(effects.probabilities[1:], expected, atol=0.02)
    assert effects.probabilities[1] > 0.99
    assert effects.probabilities[2] < 0.5


def pool_of(loss: str, seed: int, p: int = 5, m: int = 400) -> tuple[Array, Array, list[Site]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, p))
    y = draw_response(loss, 0.4 * X[:, 0] - 0.3 * X[:, 1], rng)
    sites = [Site(str(k), X[k::3], y[k::3], loss=loss) for k in range(3)]
    return X, y, sites


def test_of_least_squares_effects_are_the_same_from_wherever_they_start() -> None:
    _, _, sites = pool_of("quadratic", 2)
    weights = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    start = Start.at(InProcess(sites), L1(0.1, weights), np.array([0.3, -0.2, 0.0, 0.0, 0.1]))
    effects = start.find_effects(seed=1)
    moved = start.move(effects)
    expected = effects.expected
    np.testing.assert_allclose(moved.b[1:], expected[1:], atol=1e-15)
    # The free column is where the loss is smallest beside the others.
    assert moved.slopes[0] == pytest.approx(0.0, abs=1e-12)
    again = moved.renew()
    np.testing.assert_array_equal(again.H, start.H)
    found = again.find_effects(seed=1)
    # Rounding may turn single draws of some thousand.
    np.testing.assert_allclose(found.probabilities, effects.probabilities, atol=0.02)
    np.testing.assert_allclose(found.expected, effects.expected, atol=0.02)


def test_a_step_that_goes_too_far_is_shortened() -> None:
    _, _, sites = pool_of("poisson", 3)
    start = Start.at(InProcess(sites), L1(0.1), np.zeros(5))
    right = start.find_effects(seed=1)
    assert np.linalg.norm(start.move(right).b - right.expected) < 1e-12
    far = replace(right, probabilities=np.ones(5), means=np.array([4.0, -3.0, 0.0, 0.0, 0.0]))
    shorter = start.move(far)
    assert 0 < shorter.b[0] < 4.0
    np.testing.assert_allclose(shorter.b, far.means * shorter.b[0] / 4.0)
    hopeless = replace(far, means=np.full(5, 1000.0))
    assert start.move(hopeless) is start


def test_what_is_not_known_of_other_columns_hides_part_of_an_effect_on_yes_or_no() -> None:
    _, _, sites = pool_of("binomial", 4)
    start = Start.at(InProcess(sites), L1(0.1), np.zeros(5))
    chances = np.array([1.0, 0.3, 0.5, 0.0, 1.0])
    means = np.array([0.5, 1.0, -0.4, 0.0, 0.2])
    rng = np.random.default_rng(0)
    drawn = means + 0.6 * rng.standard_normal((200_000, 5))
    drawn *= rng.random((200_000, 5)) < chances
    variance = float(drawn.var(axis=0).sum())
    effects = Effects(chances, means, np.full(5, 0.6), variance=variance)
    assert effects.variances.sum() == pytest.approx(variance, rel=0.02)
    factor = start.attenuation(effects)
    # The mean probability over what is not known, against the one with smaller effects.
    nodes, shares = np.polynomial.hermite_e.hermegauss(60)
    known = np.linspace(-3, 3, 13)
    unknown = np.sqrt(effects.variance) * nodes
    exact = expit(known[:, None] + unknown) @ shares / shares.sum()
    np.testing.assert_allclose(expit(known / factor), exact, atol=0.01)
    assert factor > 1.1
    stretched = effects.stretch(factor)
    np.testing.assert_allclose(stretched.expected, factor * effects.expected)
    np.testing.assert_allclose(stretched.intervals(0.9), factor * effects.intervals(0.9))
    for loss in ("quadratic", "poisson", "cox"):
        _, _, others = pool_of(loss, 4)
        assert Start.at(InProcess(others), L1(0.1), np.zeros(5)).attenuation(effects) == 1.0


@pytest.mark.parametrize("loss", ["binomial", "poisson", "cox"])
def test_with_few_columns_one_step_from_the_optimum_is_maximum_likelihood(loss: str) -> None:
    """At the unpenalised fit nothing moves, and the error is that of the information matrix."""
    _, _, sites = pool_of(loss, 1)
    federation = InProcess(sites)
    problem = fix_penalty(federation, 0.0)

    def cost(b: Array) -> float:
        return sum(site.rows * site.training.value(b) for site in sites) / problem.m

    best = np.asarray(minimize(cost, np.zeros(5), tol=1e-12).x, dtype=np.float64)
    start = Start.at(federation, L1(1e-6), best)
    found = start.look(np.arange(5), strength=1e-3)
    np.testing.assert_allclose(found.values, best, atol=1e-4)
    model_based = np.sqrt(np.diagonal(np.linalg.inv(start.H)) / problem.m)
    wider = stats.t.ppf(0.995, problem.m - 5) / stats.norm.ppf(0.995)
    expected = wider * np.sqrt(start.dispersion) * model_based
    np.testing.assert_allclose(found.errors, expected, rtol=1e-3)
    if loss == "poisson":
        # Counts that a Poisson model draws vary by their mean, about.
        assert 1.0 <= start.dispersion < 1.5
    else:
        assert start.dispersion == 1.0


def test_least_squares_errors_are_the_textbook_ones() -> None:
    X, y, sites = pool_of("quadratic", 2)
    federation = InProcess(sites)
    best = np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], dtype=np.float64)
    found = Start.at(federation, L1(1e-6), best).look(np.arange(5), strength=1e-3)
    residual = y - X @ best
    variance = residual @ residual / 395
    errors = np.sqrt(variance * np.diagonal(np.linalg.inv(X.T @ X)))
    # Wider by the tails of Student's distribution.
    wider = stats.t.ppf(0.995, 395) / stats.norm.ppf(0.995)
    np.testing.assert_allclose(found.errors, wider * errors, rtol=1e-3)


def test_estimates_are_halfway_between_those_from_either_model() -> None:
    rng = np.random.default_rng(9)
    X = rng.standard_normal((200, 12))
    X[:, 1:] += 0.7 * X[:, :-1]
    y = X[:, 0] - X[:, 3] + rng.standard_normal(200)
    federation = InProcess([Site(str(k), X[k::2], y[k::2]) for k in range(2)])
    one = np.zeros(12)
    one[[0, 3]] = 0.6, -0.5
    other = np.zeros(12)
    other[[0, 3, 5]] = 1.0, -1.1, 0.1
    columns = np.array([0, 4, 7])
    first, second = (Start.at(federation, L1(0.1), b).look(columns) for b in (one, other))
    both = Start.at(federation, L1(0.1), one).look(columns, other=other)
    np.testing.assert_allclose(both.values, (first.values + second.values) / 2)
    half = (first.values - second.values) / 2
    np.testing.assert_allclose(both.errors, np.sqrt(first.errors**2 + half**2))
    assert np.abs(half).max() > 1e-3


def test_counts_that_vary_too_much_have_wider_intervals() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((400, 3))
    y = 6.0 * rng.poisson(1.0, 400)
    federation = InProcess([Site("a", X, y, loss="poisson", intercept=True)])
    start = Start.at(federation, L1(0.1), np.array([0.0, 0.0, 0.0, np.log(y.mean())]))
    # Six times a Poisson count has six times the variance that a Poisson count of its mean has.
    assert 4.0 < start.dispersion < 9.0


def test_rows_of_noisy_sites_weigh_less_and_estimates_are_weighted_least_squares() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 4))
    noise = np.repeat([1.0, 4.0, 0.5], 100)
    y = X @ [1.0, 0.0, -1.0, 0.0] + noise * rng.standard_normal(300)
    sites = [Site(str(k), X[100 * k : 100 * k + 100], y[100 * k : 100 * k + 100]) for k in range(3)]
    worth = {"0": 1.0, "1": 1 / 16, "2": 4.0}
    view, scaling = standardise(SiteWeighted(InProcess(sites), worth), "", scale=False)
    problem = fix_penalty(view, 0.0)
    weights = np.repeat([1.0, 1 / 16, 4.0], 100)
    root = np.sqrt(weights)
    A = np.column_stack([np.ones(300), X]) * root[:, None]
    expected = np.linalg.lstsq(A, y * root, rcond=None)[0]
    H = Start.at(view, L1(1.0), np.zeros(4)).H
    gradient = view.total(GradientAt(np.zeros(4))).gradient / problem.m
    step = np.asarray(np.linalg.solve(H, gradient), dtype=np.float64)
    b, intercept = scaling.original(-step)
    np.testing.assert_allclose(b, expected[1:], atol=1e-9)
    assert intercept == pytest.approx(expected[0])


def test_the_variance_of_a_predictor_is_that_of_the_drawn_effects_together() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 4))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    y = draw_response("binomial", X[:, 0] - X[:, 2], rng)
    start = Start.at(InProcess([Site("a", X, y, loss="binomial")]), L1(0.1), np.zeros(4))
    together = start.find_effects(0)
    # Which of the first two columns has the effect is not known, but their sum is.
    assert 0 < together.variance < together.variances.sum() / 2
    alone = Start.at(InProcess([Site("a", X[:, 1:], y, loss="binomial")]), L1(0.1), np.zeros(3))
    effects = alone.find_effects(0)
    assert effects.variance == pytest.approx(effects.variances.sum(), rel=0.25)
