"""Groups of nearly collinear columns: how they are formed, how probable and when discovered."""

from itertools import product

import numpy as np
import pytest
from helpers.responses import draw_response
from hypothesis import given
from hypothesis import strategies as st

from fedlasso import InProcess, Site
from fedlasso.fitting import fit_model
from fedlasso.fitting.inference.debiased import Start
from fedlasso.fitting.inference.groups import (
    DISAGREE,
    FLOOR,
    Group,
    discover,
    find_groups,
    lower,
    spread_starts,
)
from fedlasso.fitting.settings import Settings
from fedlasso.numerics import L1, Array
from fedlasso.numerics.spike_slab import FDR_MARGIN, Posterior
from fedlasso.sites import GradientAt

H = np.eye(5)
H[0, 1] = H[1, 0] = 0.97
H[0, 2] = H[2, 0] = -0.95
H[1, 2] = H[2, 1] = -0.96
H[3, 4] = H[4, 3] = 0.8


def posterior_of(drawn: Array) -> Posterior:
    each = drawn.mean(axis=0)
    return Posterior(each, each, each, 0.0, drawn != 0)


def test_only_groups_that_are_probable_in_every_run_are_kept() -> None:
    turns = np.zeros((300, 5))
    turns[np.arange(300), np.arange(300) % 3] = 1.0
    turns[0] = 0.0
    (group,) = find_groups(H, [posterior_of(turns)] * 3)
    assert group.columns == (0, 1, 2)
    assert group.probability == pytest.approx(299 / 300)
    rare = turns * (np.arange(300) % 10 != 0)[:, None]
    assert not find_groups(H, [posterior_of(turns), posterior_of(rare)])
    # A column that is as probable alone needs no group.
    alone = np.zeros((300, 5))
    alone[:, 1] = 1.0
    assert not find_groups(H, [posterior_of(alone)])
    assert not find_groups(np.eye(5), [posterior_of(turns)])


def test_where_runs_disagree_the_smallest_probability_counts() -> None:
    runs = np.array([[0.9, 0.5, 1.0], [0.9, 0.5 + DISAGREE, 0.2], [0.6, 0.5, 1.0]])
    np.testing.assert_allclose(lower(runs), [0.6, 0.5 + DISAGREE / 3, 0.2])


def test_runs_start_at_the_lasso_at_zero_and_at_the_closest_columns() -> None:
    b = np.array([1.0, 0.0, 0.0, 0.5, 0.0])
    lasso, zero, moved = spread_starts(H, b)
    np.testing.assert_array_equal(lasso, b)
    assert not zero.any()
    np.testing.assert_allclose(moved, [0.0, 0.97, 0.0, 0.0, 0.4])
    assert not spread_starts(np.eye(2), np.ones(2))[2].any()


def test_a_group_is_discovered_where_none_of_its_columns_is() -> None:
    groups = (Group((0, 1, 2), 0.99, 1),)
    columns, found = discover(np.array([0.3, 0.4, 0.3, 0.97, 0.1]), groups, 0.1)
    assert columns.tolist() == [False, False, False, True, False]
    assert found == groups
    columns, found = discover(np.array([0.0, 0.98, 0.0, 0.97, 0.1]), groups, 0.1)
    assert columns.tolist() == [False, True, False, True, False]
    assert not found


CHANCES = st.lists(st.floats(0, 1), min_size=4, max_size=6, unique=True)


@given(CHANCES, st.floats(0.95, 1), st.floats(0.01, 0.99))
def test_what_is_discovered_keeps_the_rate_and_the_floor(
    each: list[float], together: float, rate: float
) -> None:
    probabilities = np.array(each)
    group = Group((0, 1), max(together, *each[:2]), 0)
    columns, found = discover(probabilities, (group,), rate)
    units = np.append(probabilities[columns], [own.probability for own in found])
    assert (units >= FLOOR).all()
    for own in (units, probabilities[columns]):
        assert not own.size or np.mean(1 - own) <= FDR_MARGIN * rate + 1e-12
    assert not (found and columns[:2].any())
    larger = discover(probabilities, (group,), min(2 * rate, 1.0))[0]
    assert (larger >= columns).all()
    # Without groups no larger set of columns keeps both.
    alone = discover(probabilities, (), rate)[0]
    for taken in product([False, True], repeat=probabilities.size):
        other = np.array(taken)
        if other.sum() > alone.sum() and (probabilities[other] >= FLOOR).all():
            assert np.mean(1 - probabilities[other]) > FDR_MARGIN * rate - 1e-12


def trio(seed: int) -> tuple[Array, Array]:
    """Twelve columns; one effect alone, and one of three nearly collinear columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 12))
    X[:, 4:7] = X[:, 4:5] + 0.03 * rng.standard_normal((300, 3))
    return X, X[:, 0] + X[:, 5] + rng.standard_normal(300)


def test_one_of_three_nearly_collinear_columns_is_said_to_have_the_effect() -> None:
    for seed in range(3):
        X, y = trio(seed)
        sites = [Site(str(k), X[k::3], y[k::3], raw=True) for k in range(3)]
        model = fit_model(InProcess(sites), Settings(goal="discoveries", cv=5))
        assert model.trust is not None
        assert model.trust.found is not None
        np.testing.assert_array_equal(model.trust.found.columns, [0])
        (group,) = model.trust.groups
        assert group.columns == (4, 5, 6)
        np.testing.assert_array_equal(np.flatnonzero(model.coefficients), [0, group.main])
        assert "1 group of nearly collinear columns" in model.fit.why


def test_the_refit_of_nearly_collinear_discoveries_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((600, 14))
    X = 0.99 * Z[:, :1] + np.sqrt(1 - 0.99**2) * Z
    y = X @ np.append(np.resize([20.0, -20.0], 10), np.zeros(4)) + rng.standard_normal(600)
    sites = [Site(str(k), X[k::3], y[k::3], raw=True) for k in range(3)]
    model = fit_model(InProcess(sites), Settings(goal="discoveries", cv=5))
    used = np.flatnonzero(model.coefficients)
    assert used.size >= 8
    A = np.column_stack([np.ones(600), X[:, used]])
    best = np.linalg.lstsq(A, y, rcond=None)[0]
    np.testing.assert_allclose(model.coefficients[used], best[1:], rtol=1e-4)
    assert model.fit.certificate is not None
    assert model.fit.certificate.relative_gap < 1e-7
    assert model.fit.rounds <= 3


def spectra(seed: int) -> tuple[Array, Array, Array]:
    """Smooth curves of six bumps, and effects of five of a hundred points."""
    rng = np.random.default_rng(seed)
    points = np.linspace(0, 1, 100)
    centres, widths = rng.uniform(0, 1, (6, 1)), rng.uniform(0.05, 0.25, (6, 1))
    X = rng.gamma(3, 1, (200, 6)) @ np.exp(-(((points - centres) / widths) ** 2) / 2)
    X += 2e-4 * np.cumsum(rng.standard_normal((200, 100)), axis=1)
    X /= X.std(axis=0)
    effects = np.zeros(100)
    effects[rng.choice(100, 5, replace=False)] = rng.choice([-1, 1], 5)
    signal = X @ effects
    return X, signal + signal.std() / 3 * rng.standard_normal(200), effects


@pytest.mark.full
def test_of_spectra_no_single_point_is_surely_discovered() -> None:
    """Runs from one start were sure of seven false points in these draws."""
    false = 0
    noted = 0
    for seed in (0, 2, 4, 6, 8):
        X, y, effects = spectra(seed)
        sites = [Site(str(k), X[k::2], y[k::2], raw=True) for k in range(2)]
        trust = fit_model(InProcess(sites), Settings(goal="discoveries", cv=5)).trust
        assert trust is not None
        assert trust.found is not None
        false += int((effects[trust.found.columns] == 0).sum())
        noted += any("runs of the sampler disagree about" in note for note in trust.notes)
    assert false <= 2
    assert noted >= 2


@pytest.mark.parametrize("loss", ["binomial", "poisson"])
def test_the_refit_of_other_losses_is_maximum_likelihood(loss: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 6))
    X[:, 1] = 0.95 * X[:, 0] + 0.3 * X[:, 1]
    y = draw_response(loss, X @ [0.8, -0.8, 0.5, 0.0, 0.0, 0.0], rng)
    federation = InProcess([Site(str(k), X[k::2], y[k::2], loss=loss) for k in range(2)])
    start = Start.at(federation, L1(0.05), np.array([0.3, -0.2, 0.2, 0.0, 0.0, 0.1]))
    penalty = L1(1e-6, np.where(np.arange(6) < 3, 1.0, np.inf))
    refit = start.refit(penalty, 80, 1e-8)
    assert refit.certificate is not None
    assert refit.certificate.relative_gap < 1e-6
    assert not refit.coefficients[3:].any()
    slopes = federation.total(GradientAt(refit.coefficients)).gradient[:3] / 400
    assert np.abs(slopes).max() < 2e-6
