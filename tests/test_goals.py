"""Fits by goal: what they choose, what they say, and what they may spend."""

import re

import numpy as np
import pytest
from draws import draw_federation, draw_sites

from fedlasso import FedLassoError, InProcess, Ledger, Site, Status, certify, fit
from fedlasso.fitting import Goal, iterate

K, P = 3, 40
by_goal = pytest.mark.parametrize("goal", ["prediction", "selection", "objective"])


@by_goal
@pytest.mark.parametrize("uploads", [1, 2, 5, 12, 30, 100])
def test_no_goal_spends_more_than_it_may(goal: Goal, uploads: int) -> None:
    result = fit(draw_federation(), goal=goal, uploads=uploads)
    training = result.costs.total("training").upload
    assert training == 8 * K * P * result.rounds
    assert result.rounds <= uploads
    assert "certificate" not in result.costs.kinds
    assert np.isfinite(result.coefficients).all()


@by_goal
def test_a_goal_says_why_in_one_line(goal: Goal) -> None:
    result = fit(draw_federation(), goal=goal, uploads=60)
    assert result.why.startswith(f"goal {goal!r}: ")
    assert "\n" not in result.why
    assert re.search(rf"{result.rounds} of \d+", result.why)


def test_the_objective_is_the_pooled_lasso() -> None:
    result = fit(draw_federation(), goal="objective", lam=0.1)
    assert result.status is Status.OPTIMAL
    assert result.certificate is not None
    assert result.certificate.relative_gap <= 1e-8
    papers = fit(draw_federation(), goal="objective")
    assert papers.problem.lam == fit(draw_federation(), "CD", rounds=1).problem.lam


@pytest.mark.parametrize("goal", ["prediction", "selection"])
def test_the_choice_is_one_of_the_candidates(goal: Goal) -> None:
    federation = draw_federation((100, 80, 60))
    result = fit(federation, goal=goal)
    assert result.status is Status.CHOSEN
    assert np.array_equal(result.coefficients, result.candidates[:, result.chosen])
    assert result.validation is not None
    assert result.chosen == int(np.argmin(result.validation.mse))
    assert result.setting == result.problem.lam == result.settings[result.chosen]
    assert result.certificate is not None
    assert result.certificate.relative_gap <= 0.01


def test_selection_finds_a_clear_support() -> None:
    result = fit(draw_federation((200, 150, 150)), goal="selection")
    assert set(np.flatnonzero(result.coefficients)) >= set(range(5))
    assert np.count_nonzero(result.coefficients) <= 8
    assert "refitted adaptive Lasso" in result.why


@pytest.mark.parametrize("goal", ["prediction", "selection"])
def test_no_candidate_predicts_the_held_out_rows_better_than_the_choice(goal: Goal) -> None:
    sites = draw_sites((100, 80, 60))
    result = fit(InProcess(sites), goal=goal)
    held_out = [s.validation("candidate") for s in sites]
    X, y = np.vstack([h.X for h in held_out]), np.concatenate([h.y for h in held_out])
    errors = ((y[:, None] - X @ result.candidates) ** 2).mean(axis=0)
    assert result.validation is not None
    np.testing.assert_allclose(result.validation.mse, errors, rtol=1e-9)
    assert errors[result.chosen] <= errors.min() * (1 + 1e-9)


def test_a_fit_by_goal_can_be_carried_on_by_the_procedure() -> None:
    ledger = draw_federation()
    result = fit(ledger, goal="prediction")
    procedure, problem = result.procedure, result.problem
    own = procedure.certificate(problem, result.state)
    assert own is not None
    assert result.state.round == result.rounds
    assert own.gap == pytest.approx(
        certify(ledger, problem, result.coefficients).gap, rel=1e-6, abs=1e-12
    )
    states = list(iterate(Ledger(ledger), procedure, problem, result.state))
    last = procedure.certificate(problem, states[-1])
    assert last is not None
    assert last.relative_gap <= 1e-8


def test_order_of_sites_changes_no_bit() -> None:
    forward = fit(InProcess(draw_sites()), goal="prediction", uploads=40)
    backward = fit(InProcess(draw_sites()[::-1]), goal="prediction", uploads=40)
    assert forward.coefficients.tobytes() == backward.coefficients.tobytes()


def test_pure_noise_may_give_the_empty_model() -> None:
    rng = np.random.default_rng(0)

    def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.standard_normal((n, 8)), rng.standard_normal(n)

    held_out = {"penalty": sample(50), "candidate": sample(50)}
    result = fit(InProcess([Site("a", *sample(60), validation=held_out)]), goal="selection")
    assert np.isfinite(result.coefficients).all()


def test_what_a_goal_does_not_go_with() -> None:
    federation = draw_federation()
    with pytest.raises(FedLassoError, match="a procedure or a goal, not both"):
        fit(federation, "CD", goal="prediction")
    with pytest.raises(FedLassoError, match="chooses its penalty; leave lam out"):
        fit(federation, goal="selection", lam=0.1)
    with pytest.raises(FedLassoError, match="no goal is called 'speed'; use one of prediction"):
        fit(federation, goal="speed")  # type: ignore[arg-type]
    bare = InProcess([Site("a", np.eye(3), np.arange(3.0))])
    with pytest.raises(FedLassoError, match="site 'a': no rows to validate the penalty"):
        fit(bare, goal="prediction")
