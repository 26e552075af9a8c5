"""The Lasso of a low-rank curvature: optimal to rounding, by sweeps or by search."""

import numpy as np
import pytest
from helpers.loops import loop
from helpers.secants import pooled
from helpers.spectra import distance, draw_spectra, solve_exactly

from fedlasso.numerics import L1, Array, Secants
from fedlasso.numerics.quadratic_lasso import CurvatureModel, descend_factored, search, solve_model


def draw_model(seed: int, spread: float, p: int = 40, r: int = 15) -> tuple[CurvatureModel, Array]:
    """A model whose columns differ by a share `spread`, and a score."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(r) + spread * rng.standard_normal((p, r))
    mu = 1e-6 * spread
    model = CurvatureModel(A, np.ones(r), mu, (A**2).sum(axis=1) + mu)
    return model, np.asarray(A @ rng.standard_normal(r))


def check_optimal(model: CurvatureModel, c: Array, penalties: Array, b: Array, tol: float) -> None:
    slope = c - model.times(b)
    on = b != 0
    np.testing.assert_allclose(slope[on], penalties[on] * np.sign(b[on]), rtol=0, atol=tol)
    off = ~on & np.isfinite(penalties)
    assert (np.abs(slope[off]) <= penalties[off] + tol).all()
    assert not b[np.isinf(penalties)].any()


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("share", [0.3, 0.01])
@loop("seed", range(4))
def test_it_is_optimal_to_rounding(spread: float, share: float, seed: int) -> None:
    model, c = draw_model(seed, spread)
    largest = float(np.abs(c).max())
    penalties = np.full(c.size, share * largest)
    b = solve_model(model, c, penalties, np.zeros(c.size))
    assert b.any()
    check_optimal(model, c, penalties, b, 1e-12 * largest)


def test_nearly_collinear_columns_are_too_much_for_sweeps() -> None:
    model, c = draw_model(0, 1e-4)
    b = np.zeros(c.size)
    penalties = np.full(c.size, 0.01 * float(np.abs(c).max()))
    work = np.empty(model.d.size)
    assert not descend_factored(*model, c, penalties, b, work, 1e-14 * float(np.abs(c).max()))


@loop("seed", range(4))
def test_the_search_takes_a_penalty_per_coefficient_and_any_start(seed: int) -> None:
    model, c = draw_model(seed, 0.1)
    rng = np.random.default_rng(seed)
    largest = float(np.abs(c).max())
    penalties = 0.1 * largest * rng.uniform(0.5, 2.0, c.size)
    penalties[3] = 0.0
    penalties[5] = np.inf
    start = rng.standard_normal(c.size)
    start[5] = 0.0
    b = search(model, c, penalties, start, 1e-14 * largest)
    assert b[3] != 0.0
    check_optimal(model, c, penalties, b, 1e-11 * largest)


@loop("seed", range(3))
def test_what_is_known_is_used_to_rounding_where_the_model_is_blind(seed: int) -> None:
    f = pooled(draw_spectra(seed))
    lam = 0.01 * float(np.abs(f.score).max())
    known = Secants.all(f.gram, f.score, f.y_ss / f.m)
    # Smooth curves leave most directions with no curvature that the model would keep.
    assert len(known.curved[0]) < f.p / 2
    b = np.zeros(f.p)
    for _ in range(3):
        b = known.propose(L1(lam), b)
    assert distance(b, solve_exactly(f, lam)) <= 1e-7
    assert known.gap(b, L1(lam)) <= known.finest(b)
