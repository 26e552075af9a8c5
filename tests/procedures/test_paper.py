"""CD, ST, P and DA against plain numpy written straight from the paper."""

import numpy as np
import pytest
from helpers.draws import draw_sites

from fedlasso import InProcess, fit
from fedlasso.fitting import Run, after_rounds, fix_penalty
from fedlasso.numerics import L1, Array, LeastSquares, dual_steps, local_sweeps, soft_threshold
from fedlasso.procedures.averaging import ThresholdedRounds
from fedlasso.sites import Site

LAM = 0.12
THRESHOLDS = np.array([0.0, 0.03, 0.1, 0.3, 1.0])
RATES = np.array([0.03, 0.1, 0.3, 0.6, 1.0])


def sweep(X: Array, y: Array, b: Array, lam: float) -> Array:
    b, m = b.copy(), len(y)
    for k in range(len(b)):
        r = y - X @ b + X[:, k] * b[k]
        z = X[:, k] @ r
        b[k] = np.sign(z) * max(abs(z) - m * lam, 0.0) / (X[:, k] @ X[:, k])
    return b


def plain_averaging(sites: list[Site], rounds: int, epochs: int, tau: float) -> Array:
    m = sum(s.rows for s in sites)
    b = np.zeros(len(sites[0].columns))
    for _ in range(rounds):
        total = np.zeros_like(b)
        for site in sites:
            local = b
            for _ in range(epochs):
                local = sweep(site.training.X, site.training.y, local, LAM)
            total += site.rows / m * local
        b = soft_threshold(total, tau)
    return b


@pytest.mark.parametrize("epochs", [1, 3])
def test_cd_is_the_papers_average(epochs: int) -> None:
    sites = draw_sites()
    result = fit(InProcess(sites), "CD", penalty=LAM, rounds=5, epochs=epochs)
    np.testing.assert_allclose(
        result.coefficients, plain_averaging(sites, 5, epochs, 0.0), atol=1e-12
    )


@pytest.mark.parametrize("epochs", [1, 3])
def test_st_thresholds_the_end_and_p_every_round(epochs: int) -> None:
    sites = draw_sites()
    st = fit(InProcess(sites), "ST", penalty=LAM, rounds=5, epochs=epochs)
    p = fit(InProcess(sites), "P", penalty=LAM, rounds=5, epochs=epochs)
    average = plain_averaging(sites, 5, epochs, 0.0)
    for j, tau in enumerate(LAM * THRESHOLDS):
        np.testing.assert_allclose(st.candidates[:, j], soft_threshold(average, tau), atol=1e-12)
        np.testing.assert_allclose(
            p.candidates[:, j], plain_averaging(sites, 5, epochs, tau), atol=1e-12
        )


@pytest.mark.standard
@pytest.mark.parametrize("epochs", [1, 5])
@pytest.mark.parametrize(("sizes", "p"), [((30, 25, 20), 12), ((30, 25, 20), 40), ((60, 9, 4), 90)])
def test_averages_that_have_arrived_stand_still_on_every_draw(
    sizes: tuple[int, ...], p: int, epochs: int
) -> None:
    for seed in range(20):
        sites = InProcess(draw_sites(sizes, p, seed))
        run = Run(sites, ThresholdedRounds(epochs=epochs), fix_penalty(sites, LAM))
        seen = [run.state.values.tobytes()]
        for state in run.rounds(after_rounds(5000)):
            seen.append(state.values.tobytes())
            if seen[-1] == seen[-2]:
                break
        assert seen[-1] == seen[-2]


def test_p_at_threshold_zero_is_cd_bit_for_bit() -> None:
    cd = fit(InProcess(draw_sites()), "CD", penalty=LAM, rounds=6, epochs=2)
    p = fit(InProcess(draw_sites()), "P", penalty=LAM, rounds=6, epochs=2)
    assert p.candidates[:, 0].tobytes() == cd.coefficients.tobytes()


def plain_dual_averaging(sites: list[Site], rounds: int, epochs: int, rate: float) -> Array:
    m = sum(s.rows for s in sites)
    L = max(np.linalg.eigvalsh(s.training.X.T @ s.training.X / s.rows)[-1] for s in sites)
    eta = rate / L
    z = np.zeros(len(sites[0].columns))
    for t in range(rounds):
        total = np.zeros_like(z)
        for site in sites:
            local = z
            for k in range(epochs):
                b = soft_threshold(local, eta * (t * epochs + k) * LAM)
                gradient = site.training.X.T @ (site.training.X @ b - site.training.y) / site.rows
                local = local - eta * gradient
            total += site.rows / m * local
        z = total
    return soft_threshold(z, eta * rounds * epochs * LAM)


@pytest.mark.parametrize("epochs", [1, 4])
def test_da_is_the_papers_dual_averaging(epochs: int) -> None:
    sites = draw_sites()
    result = fit(InProcess(sites), "DA", penalty=LAM, rounds=5, epochs=epochs)
    for j, rate in enumerate(RATES):
        np.testing.assert_allclose(
            result.candidates[:, j], plain_dual_averaging(sites, 5, epochs, rate), atol=1e-11
        )


def test_da_with_one_step_a_round_is_pooled_da() -> None:
    sites = draw_sites()
    X = np.vstack([s.training.X for s in sites])
    y = np.concatenate([s.training.y for s in sites])
    L = max(s.training.largest_curvature for s in sites)
    result = fit(InProcess(sites), "DA", penalty=LAM, rounds=8, epochs=1)
    for j, eta in enumerate(RATES / L):
        z = np.zeros(X.shape[1])
        for t in range(8):
            z -= eta * X.T @ (X @ soft_threshold(z, eta * t * LAM) - y) / len(y)
        np.testing.assert_allclose(
            result.candidates[:, j], soft_threshold(z, eta * 8 * LAM), atol=1e-12
        )


def test_the_two_forms_of_a_site_agree() -> None:
    """A site that prefers X'X and one that prefers X answer alike."""
    sample = draw_sites()[0].least_squares
    start = np.random.default_rng(1).standard_normal((40, 3))
    forms = [LeastSquares(sample.design, sample.y, gram) for gram in (True, False)]
    sweeps = [local_sweeps(f, start, LAM, 3) for f in forms]
    np.testing.assert_allclose(sweeps[0], sweeps[1], atol=1e-12)
    rates = np.array([0.01, 0.05, 0.1])
    steps = [dual_steps(f, start, rates, L1(LAM), 4, 3) for f in forms]
    np.testing.assert_allclose(steps[0], steps[1], atol=1e-12)


@pytest.mark.parametrize("name", ["CD", "P"])
def test_a_path_that_has_arrived_stands_still_in_every_bit(name: str) -> None:
    """And where it stands is where plain averaging trembles, to rounding."""
    sites = draw_sites()
    result = fit(InProcess(sites), name, penalty=LAM, rounds=120, epochs=3, keep_path=True)
    assert result.path is not None
    assert result.path[-1].tobytes() == result.path[-2].tobytes()
    np.testing.assert_allclose(
        result.candidates[:, 0], plain_averaging(sites, 120, 3, 0.0), rtol=0, atol=1e-12
    )
