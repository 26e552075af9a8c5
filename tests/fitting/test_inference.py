"""Estimates, intervals and discoveries against independent answers, and over many draws."""

from dataclasses import replace

import numpy as np
import pytest
from responses import draw_response
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit
from statistics_of import benjamini_hochberg, holm

from fedlasso import FedLassoError, InProcess, Site
from fedlasso.federation import Around, Request
from fedlasso.federation.messages import R
from fedlasso.fitting import Goal
from fedlasso.fitting.inference import RUNS, Effects, Estimates, Start
from fedlasso.fitting.tuning import fix_penalty
from fedlasso.models.fitted import fit_model
from fedlasso.models.inferring import find_caution
from fedlasso.models.settings import SELECTED, Settings
from fedlasso.numerics import L1, Array
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.spike_slab import weigh_columns
from fedlasso.sites import CLEARLY, ErrorAt, GradientAt, NoiseAbove, Weighed, standardise


def make(scores: list[float], tests: int = 0) -> Estimates:
    values = np.array(scores)
    columns = np.arange(values.size)
    return Estimates(columns, values, np.ones(values.size), tests or values.size)


@pytest.mark.parametrize("seed", range(20))
def test_adjusted_p_values_are_the_textbook_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = make(list(3 * rng.standard_normal(15)), tests=40)
    everything = np.append(found.p_values, np.ones(25))
    np.testing.assert_allclose(found.adjusted("bh"), benjamini_hochberg(everything)[:15])
    np.testing.assert_allclose(found.adjusted("holm"), holm(everything)[:15])


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_of_effects_hold_them_as_often_as_said(level: float) -> None:
    """Effects are drawn as they are thought to be: zero, or normal."""
    rng = np.random.default_rng(3)
    chances = np.array([1.0, 0.99, 0.9, 0.6, 0.97, 0.97])
    means = np.array([1.0, -1.0, 0.5, 0.1, 3.0, 0.01])
    spreads = np.array([0.5, 0.3, 0.4, 0.2, 0.1, 1.0])
    low, high = Effects(chances, means, spreads).intervals(level).T
    draws = means + spreads * rng.standard_normal((40_000, 6))
    draws[rng.random((40_000, 6)) >= chances] = 0.0
    tail = (1 - level) / 2
    # Four standard errors of 40,000 draws; zero alone has more than a tail of probability.
    slack = 4 * np.sqrt(tail * (1 - tail) / 40_000)
    assert ((draws < low).mean(axis=0) <= tail + slack).all()
    assert ((draws > high).mean(axis=0) <= tail + slack).all()
    assert ((draws <= low).mean(axis=0) >= tail - slack).all()
    assert ((draws >= high).mean(axis=0) >= tail - slack).all()
    # Without doubt it is the normal interval, and much doubt reaches zero.
    reach = stats.norm.ppf(1 - tail)
    np.testing.assert_allclose([low[0], high[0]], [1 - reach * 0.5, 1 + reach * 0.5])
    doubtful = Effects(np.array([0.85]), np.array([3.0]), np.array([0.1]))
    assert doubtful.intervals(level)[0, 0] == 0.0


def test_columns_found_at_a_smaller_rate_are_among_those_of_a_larger_one() -> None:
    chances = np.array([0.999, 0.7, 0.95, 0.9])
    effects = Effects(chances, np.ones(4), np.ones(4))
    found = replace(make([3.0, 2.0, 4.0, 3.0]), effects=effects)
    np.testing.assert_array_equal(found.found(0.3).columns, [0, 1, 2, 3])
    np.testing.assert_array_equal(found.found(0.1).columns, [0, 2, 3])
    assert not found.found(0.001).columns.size
    with pytest.raises(FedLassoError, match="how likely"):
        make([3.0]).found(0.1)


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
    runs = [weigh_columns(normal, 5, b[1:], (4, run), clear=True) for run in range(RUNS)]
    expected = np.mean([run.chances for run in runs], axis=0)
    assert effects.chances[0] == 0.0
    # Rounding may turn single draws of some thousand.
    np.testing.assert_allclose(effects.chances[1:], expected, atol=0.02)
    assert effects.chances[1] > 0.99
    assert effects.chances[2] < 0.5


def test_sites_that_differ_are_told() -> None:
    values = np.array([[1.0, 0.0], [1.1, 2.0], [0.9, 4.0]])
    found = Estimates(np.array([0, 1]), np.ones(2), np.ones(2), 2, values, np.full((3, 2), 0.25))
    p_value, share = found.heterogeneity()
    Q = (values[:, 1] - 2.0) @ (values[:, 1] - 2.0) / 0.25
    assert p_value[1] == pytest.approx(stats.chi2.sf(Q, 2))
    assert share[1] == pytest.approx((Q - 2) / Q)
    assert share[0] == 0.0
    assert p_value[0] > 0.9


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
    np.testing.assert_allclose(found.chances, effects.chances, atol=0.02)
    np.testing.assert_allclose(found.expected, effects.expected, atol=0.02)


def test_a_step_that_goes_too_far_is_shortened() -> None:
    _, _, sites = pool_of("poisson", 3)
    start = Start.at(InProcess(sites), L1(0.1), np.zeros(5))
    right = start.find_effects(seed=1)
    assert np.linalg.norm(start.move(right).b - right.expected) < 1e-12
    far = replace(right, chances=np.ones(5), means=np.array([4.0, -3.0, 0.0, 0.0, 0.0]))
    shorter = start.move(far)
    assert 0 < shorter.b[0] < 4.0
    np.testing.assert_allclose(shorter.b, far.means * shorter.b[0] / 4.0)
    hopeless = replace(far, means=np.full(5, 1000.0))
    assert start.move(hopeless) is start


def test_what_is_not_known_of_other_columns_hides_part_of_an_effect_on_yes_or_no() -> None:
    _, _, sites = pool_of("binomial", 4)
    start = Start.at(InProcess(sites), L1(0.1), np.zeros(5))
    chances = np.array([1.0, 0.3, 0.5, 0.0, 1.0])
    effects = Effects(chances, np.array([0.5, 1.0, -0.4, 0.0, 0.2]), np.full(5, 0.6))
    rng = np.random.default_rng(0)
    drawn = effects.means + effects.spreads * rng.standard_normal((200_000, 5))
    drawn *= rng.random((200_000, 5)) < chances
    assert effects.variance == pytest.approx(drawn.var(axis=0).sum(), rel=0.02)
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


def test_stretched_estimates_are_as_far_from_zero_as_before() -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    some = Estimates(np.array([0, 1]), np.ones(2), np.array([0.5, 0.2]), 2, values, values)
    wider = some.stretch(1.5)
    np.testing.assert_allclose(wider.p_values, some.p_values)
    np.testing.assert_allclose(wider.intervals(), 1.5 * some.intervals())
    assert wider.site_values is not None
    np.testing.assert_allclose(wider.site_values, 1.5 * values)
    np.testing.assert_allclose(wider.heterogeneity(), some.heterogeneity())


@pytest.mark.parametrize("signs", [1.0, 0.0])
def test_columns_that_explain_all_rows_are_said_to(signs: float) -> None:
    """Yes or no by the sign of one column has no largest likelihood."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 6))
    y = (X[:, 0] + (1 - signs) * 2 * rng.logistic(size=300) > 0) * 1.0
    sites = [Site(str(k), X[k::3], y[k::3], raw=True, loss="binomial", intercept=True)
             for k in range(3)]  # fmt: skip
    settings = Settings(family="binomial", goal="discoveries", cv=5)
    trust = fit_model(InProcess(sites), settings).trust
    assert trust is not None
    assert trust.found is not None
    assert 0 in trust.found.columns
    told = any("explain nearly all rows" in note for note in trust.notes)
    assert told is bool(signs)


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
    view, scaling = standardise(Weighed(InProcess(sites), worth), "", scale=False)
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


def noisy_sites(noise: tuple[float, ...], m: int = 200, raw: bool = False) -> list[Site]:
    """Sites of equal size with one effect, and noise of their own."""
    rng = np.random.default_rng(6)
    sites = []
    for k, spread in enumerate(noise):
        X = rng.standard_normal((m, 4))
        sites.append(Site(str(k), X, X[:, 0] + spread * rng.standard_normal(m), raw=raw))
    return sites


class Secretive(Around):
    """Sites that do not compare themselves with others."""

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if isinstance(request, NoiseAbove):
            raise FedLassoError("the policy here does not answer NoiseAbove")
        return self.inner.replies(request)


def test_caution_is_the_noise_of_the_noisiest_site_as_far_as_levels_tell() -> None:
    b = np.array([1.0, 0.0, 0.0, 0.0])
    for noise in ((1.0, 1.0, 1.0), (1.0, 2.0, 0.5), (0.1, 0.1, 5.0)):
        federation = InProcess(noisy_sites(noise))
        view, scaling = standardise(federation, "", centre=False, scale=False)
        squares = np.array([reply.value for reply in view.ask(ErrorAt(b))])
        ratio = float(squares.max() / squares.mean())
        caution = find_caution(view, scaling, b)
        if len(set(noise)) == 1:
            assert caution == 1.0
        else:
            # Levels are a factor of 1.19 apart, and a site is above one when it clearly is.
            unsure = 1 + CLEARLY * np.sqrt(2 / 200)
            assert ratio / unsure <= caution <= min(1.19 * ratio / unsure, 3.0) * (1 + 1e-3)
        # Where sites say nothing, none can have more squares than all together.
        hidden, _ = standardise(Secretive(federation), "", centre=False, scale=False)
        assert find_caution(hidden, scaling, b) == 3.0


def test_without_weights_rows_are_as_noisy_as_those_of_the_noisiest_site() -> None:
    sites = noisy_sites((0.5, 3.0, 0.5), raw=True)
    wishes = Settings(penalty=0.05, intervals=("x1", "x2"))
    weighed, equal = (
        fit_model(InProcess(sites), replace(wishes, site_weights=how)).trust
        for how in (None, "equal")
    )
    assert weighed is not None
    assert equal is not None
    assert weighed.worth is not None
    assert not weighed.notes
    assert any("all rows are taken to be as noisy" in note for note in equal.notes)
    assert weighed.named is not None
    assert equal.named is not None
    view, scaling = standardise(InProcess(sites), "")
    model = fit_model(InProcess(sites), replace(wishes, site_weights="equal"))
    caution = find_caution(view, scaling, model.fit.coefficients)
    assert caution > 2
    plain = Start.at(view, model.fit.penalty, model.fit.coefficients)
    wary = replace(plain, caution=caution)
    both = np.array([1, 2])
    ratio = wary.look(both).errors / plain.look(both).errors
    np.testing.assert_allclose(ratio, np.sqrt(caution))
    assert wary.find_effects(0).chances[0] <= plain.find_effects(0).chances[0]
    assert (equal.named.errors > weighed.named.errors).all()


def draw_sites(rng: np.random.Generator, effects: Array, m: int = 300, K: int = 3) -> list[Site]:
    X = rng.standard_normal((m, effects.size))
    X[:, 1:] += 0.5 * X[:, :-1]
    y = X @ effects + rng.standard_normal(m)
    return [Site(str(k), X[k::K], y[k::K], raw=True) for k in range(K)]


def test_few_of_the_discoveries_are_false_and_most_effects_are_found() -> None:
    """Twelve draws of 30 columns, four with an effect; the bounds are far from what is seen."""
    effects = np.zeros(30)
    effects[[3, 10, 17, 24]] = [0.5, -0.5, 0.6, -0.6]
    shares = []
    powers = []
    for seed in range(12):
        sites = draw_sites(np.random.default_rng(seed), effects)
        model = fit_model(InProcess(sites), Settings(goal="discoveries", fdr=0.2, cv=5))
        assert model.trust is not None
        assert model.trust.found is not None
        found = np.isin(np.arange(30), model.trust.found.columns)
        true = effects != 0
        shares.append((found & ~true).sum() / max(found.sum(), 1))
        powers.append((found & true).sum() / 4)
        # The model has what was found, and nothing else.
        np.testing.assert_array_equal(model.coefficients != 0, found)
    # The seen means are near 0.15 and 1; a mean of twelve has a standard error below 0.06.
    assert np.mean(shares) < 0.2 + 4 * 0.06
    assert np.mean(powers) > 0.8


def test_of_noise_alone_nothing_is_found_as_a_rule() -> None:
    empty = 0
    for seed in range(20):
        sites = draw_sites(np.random.default_rng(100 + seed), np.zeros(20), m=150)
        model = fit_model(InProcess(sites), Settings(goal="discoveries", cv=5))
        assert model.trust is not None
        assert model.trust.found is not None
        empty += not model.trust.found.columns.size
    # Nine in ten are promised: fewer than 13 of 20 has a probability below 0.003 at that rate.
    assert empty >= 13


def test_named_columns_get_intervals_whatever_the_model_makes_of_them() -> None:
    effects = np.zeros(10)
    effects[2] = 1.0
    sites = draw_sites(np.random.default_rng(0), effects)
    settings = Settings(goal="objective", intervals=("x2", "x7"), penalty=0.3)
    model = fit_model(InProcess(sites), settings)
    assert model.trust is not None
    named = model.trust.named
    assert named is not None
    np.testing.assert_array_equal(named.columns, [2, 7])
    assert model.coefficients[7] == 0.0
    bounds = named.intervals() * model.scaling.factors[[2, 7], None]
    assert bounds[0, 0] > 0.7
    assert bounds[1, 0] < 0 < bounds[1, 1]


@pytest.mark.parametrize("goal", ["prediction", "selection", "objective"])
def test_columns_that_a_model_uses_have_intervals_that_allow_for_the_choice(goal: Goal) -> None:
    effects = np.zeros(12)
    effects[[2, 7]] = [1.0, -0.8]
    sites = draw_sites(np.random.default_rng(3), effects)
    wishes = Settings(goal=goal, cv=5)
    plain = fit_model(InProcess(sites), wishes)
    model = fit_model(InProcess(sites), replace(wishes, intervals=(SELECTED,)))
    np.testing.assert_array_equal(model.coefficients, plain.coefficients)
    trust = model.trust
    assert trust is not None
    assert trust.found is None
    assert trust.named is None
    assert trust.selected is not None
    np.testing.assert_array_equal(trust.selected.columns, np.flatnonzero(model.coefficients))
    chances = trust.selected.effects
    assert chances is not None
    true = np.isin(trust.selected.columns, [2, 7])
    assert true.sum() == 2
    assert (chances.chances[true] > 0.99).all()
    # An interval of what may as well be nothing reaches zero.
    low, high = trust.selected.intervals().T
    unsure = chances.chances < 0.9
    assert ((low[unsure] <= 0) & (high[unsure] >= 0)).all()
    assert (low[true] * high[true] > 0).all()


def test_of_discoveries_and_of_the_lasso_the_same_column_has_the_same_interval() -> None:
    effects = np.zeros(12)
    effects[[2, 7]] = [1.0, -0.8]
    sites = draw_sites(np.random.default_rng(4), effects)
    both = [
        fit_model(InProcess(sites), Settings(goal=goal, cv=5, intervals=(SELECTED,))).trust
        for goal in ("discoveries", "objective")
    ]
    assert both[0] is not None
    assert both[1] is not None
    found = both[0].found
    selected = both[1].selected
    assert both[0].selected is None
    assert found is not None
    assert selected is not None
    shared = np.isin(selected.columns, found.columns)
    np.testing.assert_array_equal(selected.take(shared).intervals(), found.intervals())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"intervals": ("x77",)}, "no column to give an interval to is called 'x77'"),
        ({"goal": "discoveries", "uploads": 20}, "give more"),
    ],
)
def test_what_cannot_be_done_is_said(settings: dict[str, object], words: str) -> None:
    sites = draw_sites(np.random.default_rng(0), np.zeros(10))
    with pytest.raises(FedLassoError, match=words):
        fit_model(InProcess(sites), Settings(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fdr": 0.0}, "fdr is 0.0"),
        ({"level": 1.5}, "level is 1.5"),
        ({"site_weights": "rows"}, "use 'equal' or 'variance'"),
        ({"site_weights": "variance", "family": "binomial"}, "leave site weights out"),
        ({"goal": "discoveries", "procedure": "CD"}, "leave the procedure out"),
        ({"goal": "selection", "intervals": ("x1",)}, "instead of 'selection'"),
    ],
)
def test_wishes_that_contradict_are_refused_before_any_site_is_asked(
    settings: dict[str, object], words: str
) -> None:
    with pytest.raises(FedLassoError, match=words):
        Settings(**settings)  # type: ignore[arg-type]


def test_where_every_column_is_kept_named_ones_have_intervals_and_none_is_found() -> None:
    effects = np.zeros(4)
    effects[0] = 1.0
    sites = draw_sites(np.random.default_rng(1), effects)
    everything = ("x0", "x1", "x2", "x3")
    with pytest.raises(FedLassoError, match="no column pays a penalty"):
        fit_model(InProcess(sites), Settings(keep=everything, cv=5))
    settings = Settings(keep=everything, intervals=("x0",), penalty=1.0)
    trust = fit_model(InProcess(sites), settings).trust
    assert trust is not None
    assert trust.named is not None
    assert trust.named.intervals()[0, 0] > 0
