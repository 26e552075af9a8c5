"""Nearly collinear columns: a fit is the pooled Lasso in every coefficient, and never stalls."""

import pytest
from helpers.loops import loop
from helpers.secants import SecantClass, largest, pooled, run
from helpers.spectra import distance, draw_spectra, solve_exactly

from fedlasso import InProcess, Site, Status, open_evidence
from fedlasso.procedures import Secant
from fedlasso.procedures.secant import MomentSecant
from fedlasso.procedures.working_set_secant import WorkingSetSecant

ROUNDS = 300


@pytest.mark.full
@pytest.mark.parametrize("secant", [Secant, WorkingSetSecant, MomentSecant])
@pytest.mark.parametrize("share", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("width", [4.0, 10.0, 20.0])
@loop("seed", range(3))
def test_spectra(secant: SecantClass, share: float, width: float, seed: int) -> None:
    data = draw_spectra(seed, width)
    lam = share * largest(data)
    result = run(secant, data, lam, rounds=ROUNDS, tol=1e-12)
    assert result.status is Status.OPTIMAL
    assert result.rounds < ROUNDS
    assert distance(result.coefficients, solve_exactly(pooled(data), lam)) <= 1e-7


@loop("seed", range(3))
def test_gradients_are_no_more_than_second_moments_would_be(seed: int) -> None:
    data = draw_spectra(seed)
    p = data[0][0].shape[1]
    assert run(Secant, data, 0.001 * largest(data), tol=1e-12).rounds <= (p + 3) / 2


def test_a_path_goes_on_as_far_as_rounding_allows() -> None:
    data = draw_spectra(0)
    evidence = open_evidence(InProcess([Site(f"s{j}", X, y) for j, (X, y) in enumerate(data)]))
    path = evidence.path(evidence.grid(8, 0.001), tol=1e-14)
    assert len(path) == 8
    assert all(point.arrived(1e-14) for point in path)
    exact = solve_exactly(pooled(data), path[-1].lam)
    assert distance(path[-1].coefficients, exact) <= 1e-7


def test_moments_take_one_round_and_a_gradient_of_the_fit() -> None:
    data = draw_spectra(0)
    p = data[0][0].shape[1]
    result = run(MomentSecant, data, 0.01 * largest(data), rounds=ROUNDS, tol=1e-12)
    assert result.rounds == 2
    assert result.costs.total("moments", "s0").upload == 8 * (p + 2) * (p + 3) // 2
    assert result.costs.total("training", "s0").upload == 8 * p
