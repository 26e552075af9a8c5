"""Fits by goal: what they choose, what they say, and what they may spend."""

import re

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites
from helpers.loops import loop
from helpers.results import certificate_of, curve_of, validation_of

from fedlasso import FedLassoError, InProcess, Site, Status, certify, fit_for
from fedlasso.errors import Refused, Stopped
from fedlasso.federation import Around, Request
from fedlasso.federation.messages import R
from fedlasso.fitting import Run, after_rounds, fix_penalty
from fedlasso.fitting.gradient_tuning import SMALLEST_RATIO
from fedlasso.numerics import Array
from fedlasso.procedures import Secant
from fedlasso.sites.rows import PURPOSES

K, P = 3, 40
by_goal = pytest.mark.parametrize("goal", ["prediction", "selection"])


@by_goal
@pytest.mark.parametrize("uploads", [1, 2, 5, 12, 30, 100])
def test_no_goal_spends_more_than_it_may(goal: str, uploads: int) -> None:
    result = fit_for(draw_federation(), goal, uploads=uploads)
    sent = result.costs.total("training").upload + result.costs.total("moments").upload
    assert 0 <= 8 * K * P * result.rounds - sent < 8 * K * P
    assert result.rounds <= uploads
    assert "certificate" not in result.costs.kinds
    assert np.isfinite(result.coefficients).all()


@by_goal
def test_a_goal_says_why_in_one_line(goal: str) -> None:
    result = fit_for(draw_federation(), goal, uploads=60)
    assert result.why.startswith(f"goal {goal!r}: ")
    assert result.method in result.why
    assert "\n" not in result.why
    assert re.search(rf"{result.rounds} of \d+", result.why)


@by_goal
def test_the_choice_is_one_of_the_candidates(goal: str) -> None:
    federation = draw_federation((100, 80, 60))
    result = fit_for(federation, goal)
    assert result.status is Status.CHOSEN
    assert result.coefficients is result.points[result.chosen].coefficients
    assert result.chosen == int(np.argmin(validation_of(result).error))
    assert certificate_of(result).relative_gap <= 0.01


def all_rows(site: Site) -> tuple[Array, Array]:
    """Training and validation rows together."""
    samples = [site.training, *(site.validation(purpose) for purpose in PURPOSES)]
    return np.vstack([s.X for s in samples]), np.concatenate([s.y for s in samples])


@by_goal
@pytest.mark.parametrize("uploads", [24, 100])
def test_the_penalty_it_tells_is_that_of_the_model(goal: str, uploads: int) -> None:
    """The certificate that the sites give at the penalty told is the one told.

    With enough uploads the model is one of all rows, those that chose the penalty included.
    """
    sites = draw_sites((100, 80, 60))
    result = fit_for(InProcess(sites), goal, uploads=uploads, exact=False)
    if uploads == 100:
        sites = [Site(site.name, *all_rows(site)) for site in sites]
        assert result.why.endswith(", fitted to all rows")
    assert result.problem.penalty is result.penalty
    federation = InProcess(sites)
    asked = certify(federation, fix_penalty(federation, result.penalty), result.coefficients)
    assert certificate_of(result).objective == pytest.approx(asked.objective, rel=1e-9)
    assert certificate_of(result).gap == pytest.approx(asked.gap, abs=1e-9 * asked.objective)


def test_selection_is_least_squares_on_all_rows() -> None:
    sites = draw_sites((100, 80, 60))
    b = fit_for(InProcess(sites), "selection", exact=False).coefficients
    rows = [all_rows(site) for site in sites]
    X = np.vstack([part for part, _ in rows])[:, b != 0]
    y = np.concatenate([part for _, part in rows])
    np.testing.assert_allclose(b[b != 0], np.linalg.lstsq(X, y)[0], atol=1e-3)


def test_without_all_rows_selection_is_least_squares_on_the_training_rows() -> None:
    sites = draw_sites((100, 80, 60))
    fit = fit_for(InProcess(sites), "selection", exact=False, all_rows=False)
    assert "all rows" not in fit.why
    b = fit.coefficients
    X = np.vstack([site.training.X for site in sites])[:, b != 0]
    y = np.concatenate([site.training.y for site in sites])
    np.testing.assert_allclose(b[b != 0], np.linalg.lstsq(X, y)[0], atol=1e-3)


@by_goal
def test_without_all_rows_the_last_validation_rows_do_not_touch_the_model(goal: str) -> None:
    """There is one candidate, so the second samples choose nothing: other responses, same model."""
    models = []
    for noise in (0.0, 5.0):
        sites = []
        for site in draw_sites((100, 80, 60)):
            first, second = (site.validation(purpose) for purpose in PURPOSES)
            held_out = {"penalty": (first.X, first.y), "candidate": (second.X, second.y + noise)}
            training = site.training
            sites.append(Site(site.name, training.X, training.y, validation=held_out))
        models.append(fit_for(InProcess(sites), goal, all_rows=False).coefficients)
        if noise:
            everything = fit_for(InProcess(sites), goal).coefficients
            assert not np.allclose(everything, models[1], atol=1e-3)
    np.testing.assert_allclose(models[0], models[1], rtol=1e-12)


def test_noisy_sites_count_for_less() -> None:
    """A large site with much noise hides what small ones show, unless it counts for less."""
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = np.zeros(P)
        truth[:6] = 0.4
        sites = []
        for name, m, noise in (("a", 400, 8.0), ("b", 60, 0.5), ("c", 60, 0.5)):
            X = rng.standard_normal((3, m, P))
            y = X @ truth + noise * rng.standard_normal((3, m))
            held_out = {"penalty": (X[1], y[1]), "candidate": (X[2], y[2])}
            sites.append(Site(name, X[0], y[0], validation=held_out))
        fits = [fit_for(InProcess(sites), "selection", exact=exact) for exact in (False, True)]
        found.append([np.count_nonzero(fit.coefficients[:6]) for fit in fits])
        assert np.count_nonzero(fits[1].coefficients[6:]) <= 2
    equal, weighed = np.sum(found, axis=0)
    assert equal <= 12
    assert weighed == 18


class Silent(Around):
    """Sites that do not tell second moments of some columns."""

    def __init__(self, federation: InProcess, refusal: type[FedLassoError]) -> None:
        super().__init__(federation)
        self.refusal = refusal

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if request.kind == "moments":
            raise self.refusal("not told here")
        return self.inner.replies(request)


@by_goal
def test_sites_that_tell_no_moments_are_fitted_by_gradients(goal: str) -> None:
    result = fit_for(Silent(draw_federation(), Refused), goal)
    assert "moments" not in result.costs.kinds
    assert "adaptive Lasso" in result.method
    with pytest.raises(Stopped):
        fit_for(Silent(draw_federation(), Stopped), goal)


def test_the_largest_budget_asks_for_no_more_moments_than_there_are() -> None:
    result = fit_for(draw_federation(), "selection", uploads=1000)
    assert result.costs.total("moments").upload == 8 * K * (P + 1) * (P + 2) + 3 * 8 * K


@by_goal
def test_a_rule_for_sparse_models_lets_validation_rows_choose(goal: str) -> None:
    result = fit_for(draw_federation((100, 80, 60)), goal, rule="1se")
    assert "the sparsest within one standard error" in result.why
    assert result.chosen == validation_of(result).select("1se")


def test_selection_finds_a_clear_support() -> None:
    result = fit_for(draw_federation((200, 150, 150)), "selection")
    assert set(np.flatnonzero(result.coefficients)) >= set(range(5))
    assert np.count_nonzero(result.coefficients) <= 8
    assert result.method == "least squares on the most probable columns"


@by_goal
def test_no_candidate_predicts_the_held_out_rows_better_than_the_choice(goal: str) -> None:
    sites = draw_sites((100, 80, 60))
    result = fit_for(InProcess(sites), goal, uploads=24)
    held_out = [s.validation("candidate") for s in sites]
    X = np.vstack([h.X for h in held_out])
    y = np.concatenate([h.y for h in held_out])
    candidates = np.column_stack([point.coefficients for point in result.points])
    errors = ((y[:, None] - X @ candidates) ** 2).mean(axis=0)
    np.testing.assert_allclose(validation_of(result).error, errors, rtol=1e-9)
    assert errors[result.chosen] <= errors.min() * (1 + 1e-9)


def draw_quiet(seed: int, noise: float) -> InProcess:
    """One site where all of eight columns matter."""
    rng = np.random.default_rng(seed)

    def sample(n: int) -> tuple[Array, Array]:
        X = rng.standard_normal((n, 8))
        return X, X @ np.linspace(0.5, 2, 8) + noise * rng.standard_normal(n)

    held_out = {"penalty": sample(60), "candidate": sample(60)}
    return InProcess([Site("a", *sample(120), validation=held_out)])


@pytest.mark.standard
@by_goal
@loop("seed", range(4))
def test_the_path_goes_on_while_its_last_fit_is_the_best(goal: str, seed: int) -> None:
    quiet = curve_of(fit_for(draw_quiet(seed, 0.0), goal))
    # Without noise every smaller penalty predicts better, down to the last that is tried.
    step = quiet.penalties[1] / quiet.penalties[0]
    errors = quiet.validation.error
    # A fit may be good enough at several penalties; the error falls with their square.
    assert errors[-1] == errors.min()
    assert errors[-1] < 0.01 * errors[19]
    assert SMALLEST_RATIO < quiet.penalties[-1] / quiet.penalties[0] <= SMALLEST_RATIO / step
    np.testing.assert_allclose(quiet.penalties[1:] / quiet.penalties[:-1], step, rtol=1e-9)
    assert not quiet.cut
    noisy = curve_of(fit_for(draw_quiet(seed, 30.0), goal))
    assert noisy.chosen < len(noisy.penalties) - 1
    assert noisy.penalties[-1] >= 0.05 * noisy.penalties[0] * (1 - 1e-9)


@by_goal
def test_a_path_that_uploads_ended_says_so(goal: str) -> None:
    for seed in range(4):
        result = fit_for(draw_federation((100, 80, 60), seed=seed), goal, uploads=8)
        assert curve_of(result).cut
        assert result.status is Status.CUT
        errors = curve_of(result).validation.error
        assert curve_of(result).chosen == int(np.argmin(errors))
        assert curve_of(result).coefficients.shape == (P, len(errors))


def test_a_fit_by_goal_can_be_carried_on_by_the_procedure() -> None:
    federation = draw_federation()
    result = fit_for(federation, "prediction", uploads=24)
    run = Run(federation, Secant(), result.problem)
    state = run.until(after_rounds(200))
    last = Secant().certificate(result.problem, state)
    assert last is not None
    assert last.relative_gap <= 1e-8
    assert last.objective <= certificate_of(result).objective * (1 + 1e-12)


def test_order_of_sites_changes_no_bit() -> None:
    forward = fit_for(InProcess(draw_sites()), "prediction", uploads=40)
    backward = fit_for(InProcess(draw_sites()[::-1]), "prediction", uploads=40)
    assert forward.coefficients.tobytes() == backward.coefficients.tobytes()


@pytest.mark.standard
def test_pure_noise_gives_the_empty_model() -> None:
    empty = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        samples = [(rng.standard_normal((n, P)), rng.standard_normal(n)) for n in (120, 40, 40)]
        held_out = dict(zip(PURPOSES, samples[1:], strict=True))
        result = fit_for(InProcess([Site("a", *samples[0], validation=held_out)]), "selection")
        empty += not result.coefficients.any()
    assert empty >= 18


@by_goal
def test_a_response_of_zeros_gives_the_empty_model(goal: str) -> None:
    X = np.random.default_rng(0).standard_normal((30, 4))
    held_out = dict.fromkeys(PURPOSES, (X, np.zeros(30)))
    result = fit_for(InProcess([Site("a", X, np.zeros(30), validation=held_out)]), goal)
    assert not result.coefficients.any()


@by_goal
def test_sites_of_two_rows_are_fitted(goal: str) -> None:
    result = fit_for(draw_federation((2,) * 10), goal)
    assert np.isfinite(result.coefficients).all()
    assert np.isfinite(validation_of(result).error).all()


def test_what_no_goal_is() -> None:
    with pytest.raises(FedLassoError, match="no fit is made for 'speed'; use 'prediction' or"):
        fit_for(draw_federation(), "speed")
    bare = InProcess([Site("a", np.eye(3), np.arange(3.0))])
    with pytest.raises(FedLassoError, match="site 'a': no rows to validate the penalty"):
        fit_for(bare, "prediction")
