"""Feature voting: local Lassos elect columns, on every loss."""

import numpy as np
import pytest
from helpers.draws import draw_sites
from procedures.test_every_loss import LAM
from procedures.test_every_loss import draw_sites as draw_curved

from fedlasso import InProcess, Ledger, Site, fit
from fedlasso.numerics import L1, LOSSES, Array, ElasticNet, solve_reference, stationarity
from fedlasso.numerics.curved_sweeps import minimize_smooth
from fedlasso.procedures import find_procedure


def own_fits(sites: list[Site], lam: float) -> Array:
    return np.column_stack(
        [minimize_smooth(s.training, L1(lam), np.zeros(len(s.columns)))[0] for s in sites]
    )


def elect(sites: list[Site], models: Array, share: float) -> Array:
    """Voting as it is written."""
    rows = np.array([site.rows for site in sites])
    votes = (models != 0) @ rows / rows.sum()
    return np.where(votes >= share, models @ rows / rows.sum(), 0.0)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_the_model_is_the_mean_on_the_elected_columns(loss: str) -> None:
    sites = draw_curved(loss)
    result = fit(InProcess(sites), "Voting", penalty=LAM)
    for share, candidate in zip((0.3, 0.5, 0.7), result.candidates.T, strict=True):
        expected = elect(sites, own_fits(sites, LAM), share)
        np.testing.assert_allclose(candidate, expected, atol=1e-7)
    assert result.rounds == 1


def test_shares_elect_fewer_and_fewer_and_share_one_upload() -> None:
    sites = draw_sites()
    ledger = Ledger(InProcess(sites))
    result = fit(ledger, "Voting", penalty=0.15)
    counts = (result.candidates != 0).sum(axis=0)
    assert counts[0] > counts[1] > counts[2] > 0
    assert result.costs.total("training").upload == 8 * 3 * 2 * 40
    exact = np.column_stack([solve_reference(s.least_squares, 0.15).coefficients for s in sites])
    np.testing.assert_array_equal(result.candidates[:, 1] != 0, elect(sites, exact, 0.5) != 0)


def test_every_vote_counts_at_share_zero_and_all_are_needed_at_one() -> None:
    sites = draw_sites()
    voting = find_procedure("Voting")(settings=(0.0, 1.0))
    result = fit(InProcess(sites), voting, penalty=0.15)
    one_shot = fit(InProcess(sites), "OneShot", penalty=0.15)
    np.testing.assert_allclose(result.candidates[:, 0], one_shot.coefficients, atol=1e-15)
    exact = np.column_stack([solve_reference(s.least_squares, 0.15).coefficients for s in sites])
    assert np.array_equal(result.candidates[:, 1] != 0, (exact != 0).all(axis=1))


@pytest.mark.parametrize("loss", ["quadratic", "binomial"])
def test_columns_that_pay_nothing_are_elected(loss: str) -> None:
    sites = draw_curved(loss)
    weights = np.ones(12)
    weights[11] = 0.0
    penalty = ElasticNet.with_ridge(0.2, 0.1, weights)
    result = fit(InProcess(sites), "Voting", penalty=penalty, certified=False)
    assert result.candidates[11].all()
    f = sites[0].training
    b, _ = minimize_smooth(f, penalty, np.zeros(12))
    assert stationarity(b, f.gradient(b), penalty) <= 1e-9
