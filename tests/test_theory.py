"""The real procedure on real matrices meets the paper's formulas."""

import numpy as np
import pytest
from helpers.draws import objective
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import FedLassoError, InProcess, fit
from fedlasso.numerics import LeastSquares, solve_reference
from fedlasso.theory import CorrelatedPair, orthogonal_average, orthogonal_pooled, orthogonal_sites

PAIR = CorrelatedPair(r=0.8, a=2.0, d=1.0)
pairs = st.builds(
    CorrelatedPair,
    r=st.floats(0.05, 0.95),
    a=st.floats(0.1, 5),
    d=st.floats(0.1, 5),
    lam=st.floats(0.1, 3),
)


def test_the_figures_of_the_paper() -> None:
    assert [round(PAIR.gap(E), 6) for E in (1, 2, 3)] == [0.008239, 0.004571, 0.009398]
    assert [round(PAIR.contraction(E), 4) for E in (1, 2, 3)] == [0.3200, 0.2048, 0.1311]
    assert PAIR.best_whole_epochs == 2


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_real_averaging_meets_the_proposition(epochs: int) -> None:
    sites = PAIR.sites(50, np.random.default_rng(0))
    result = fit(InProcess(sites), "CD", penalty=PAIR.lam, rounds=60, epochs=epochs, keep_path=True)
    np.testing.assert_allclose(result.coefficients, PAIR.limit(epochs), atol=1e-12)
    X = np.vstack([s.training.X for s in sites])
    y = np.concatenate([s.training.y for s in sites])
    gap = objective(X, y, result.coefficients, PAIR.lam) - objective(X, y, PAIR.pooled, PAIR.lam)
    assert gap == pytest.approx(PAIR.gap(epochs), abs=1e-12)
    assert result.path is not None
    errors = np.array([b[1, 0] for b in result.path[1:8]]) - PAIR.limit(epochs)[1]
    np.testing.assert_allclose(errors[1:] / errors[:-1], PAIR.contraction(epochs), rtol=1e-6)
    assert all((b > 0).all() for b in result.path)


def test_the_pooled_formula_is_the_pooled_lasso() -> None:
    sites = PAIR.sites(20, np.random.default_rng(1))
    X = np.vstack([s.training.X for s in sites])
    y = np.concatenate([s.training.y for s in sites])
    reference = solve_reference(LeastSquares(X, y), PAIR.lam)
    np.testing.assert_allclose(reference.coefficients, PAIR.pooled, atol=1e-10)


@settings(max_examples=20)
@given(pair=pairs, epochs=st.integers(1, 6))
def test_any_pair_meets_the_proposition(pair: CorrelatedPair, epochs: int) -> None:
    sites = pair.sites(8, np.random.default_rng(2))
    result = fit(InProcess(sites), "CD", penalty=pair.lam, rounds=60, epochs=epochs)
    np.testing.assert_allclose(result.coefficients, pair.limit(epochs), rtol=1e-9)


@settings(max_examples=50)
@given(pair=pairs)
def test_best_epochs_has_the_smallest_gap(pair: CorrelatedPair) -> None:
    best = pair.best_epochs
    nearby = [pair.gap(best * factor) for factor in (0.8, 0.95, 1.05, 1.25)]
    assert pair.gap(best) <= min(nearby) + 1e-12 * max(nearby)
    whole = pair.best_whole_epochs
    assert pair.gap(whole) == min(pair.gap(E) for E in range(1, whole + 20))


def test_best_epochs_grows_with_correlation() -> None:
    best = [CorrelatedPair(r, 1, 1).best_epochs for r in np.linspace(0.1, 0.95, 20)]
    assert (np.diff(best) > 0).all()


def test_orthogonal_designs_ignore_the_epochs_and_average_the_supports() -> None:
    rng = np.random.default_rng(3)
    z = rng.standard_normal((3, 12))
    sizes, lam = (20, 30, 50), 0.8
    weights = np.array(sizes) / 100
    sites = orthogonal_sites(z, sizes, rng)
    fits = {E: fit(InProcess(sites), "CD", penalty=lam, rounds=1, epochs=E) for E in (1, 5, 20)}
    longer = fit(InProcess(sites), "CD", penalty=lam, rounds=7, epochs=3)
    expected = orthogonal_average(z, weights, lam)
    for result in (*fits.values(), longer):
        np.testing.assert_allclose(result.coefficients, expected, atol=1e-12)
    union = (np.abs(z) > lam).any(axis=0)
    assert np.array_equal(expected != 0, union)
    pooled = orthogonal_pooled(z, weights, lam)
    assert not ((pooled != 0) & ~union).any()
    assert np.count_nonzero(pooled) < np.count_nonzero(expected)
    X = np.vstack([s.training.X for s in sites])
    y = np.concatenate([s.training.y for s in sites])
    reference = solve_reference(LeastSquares(X, y), lam)
    np.testing.assert_allclose(reference.coefficients, pooled, atol=1e-10)


def test_constructions_that_cannot_exist_are_refused() -> None:
    with pytest.raises(FedLassoError, match="at least 5 rows at every site"):
        orthogonal_sites(np.ones((1, 5)), (4,), np.random.default_rng(0))
    with pytest.raises(FedLassoError, match="0 < r < 1"):
        CorrelatedPair(r=1.0, a=1, d=1)
