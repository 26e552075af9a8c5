"""Exact local sweeps, in both forms."""

from collections.abc import Callable

import numpy as np
import pytest
from helpers.draws import objective
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Lasso

from fedlasso.numerics import Array, LeastSquares, local_sweeps, soft_threshold
from fedlasso.numerics.local_steps import ROUNDING

Draw = Callable[..., LeastSquares]
each_form = pytest.mark.parametrize("gram", [True, False], ids=["gram", "residual"])


def explicit_sweeps(f: LeastSquares, b: Array, lam: float, epochs: int) -> Array:
    """Apply the paper's equation as written."""
    b = b.copy()
    for _ in range(epochs):
        for k in range(f.p):
            x = f.X[:, k]
            r = f.y - f.X @ b + x * b[k]
            v = x @ r
            b[k] = np.sign(v) * max(abs(v) - f.m * lam, 0.0) / (x @ x)
    return b


def starts(f: LeastSquares, q: int, seed: int = 0) -> Array:
    """Draw q starts, the first zero, the others sparse to dense."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((f.p, q)) * (rng.random((f.p, q)) < np.linspace(0, 1, q))
    return np.asarray(B, dtype=np.float64)


@each_form
@pytest.mark.parametrize(("m", "p"), [(30, 20), (20, 45), (1, 5), (7, 1)])
@pytest.mark.parametrize("epochs", [0, 1, 4])
def test_equals_explicit_updates(draw: Draw, gram: bool, m: int, p: int, epochs: int) -> None:
    f = draw(m, p, gram=gram)
    lam = 0.1 * float(np.abs(f.score).max())
    B = starts(f, 3)
    result = local_sweeps(f, B, lam, epochs)
    assert result.shape == B.shape
    for j in range(3):
        assert_allclose(result[:, j], explicit_sweeps(f, B[:, j], lam, epochs), atol=1e-12, rtol=0)


@each_form
@pytest.mark.parametrize("epochs", [1, 5, 20])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equals_scikit_learn_with_fixed_sweeps(draw: Draw, gram: bool, epochs: int) -> None:
    # From starts far from the optimum, whose gap is too wide for scikit-learn's screening (which
    # zeroes screened coordinates before the first sweep) to take part.
    f = draw(60, 90, gram=gram)
    lam = 0.1 * float(np.abs(f.score).max())
    B = starts(f, 3)
    result = local_sweeps(f, B, lam, epochs)
    for j in range(3):
        peer = Lasso(alpha=lam, fit_intercept=False, max_iter=epochs, tol=0.0, warm_start=True)
        peer.coef_ = B[:, j].copy()
        peer.fit(f.X, f.y)
        assert peer.n_iter_ == epochs
        assert_allclose(result[:, j], peer.coef_, atol=1e-10, rtol=0)


@each_form
@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(1, 15),
    p=st.integers(1, 40),
    seed=st.integers(0, 1000),
    share=st.floats(0.0, 1.2),
    first=st.integers(0, 4),
    then=st.integers(0, 4),
)
def test_promises(
    draw: Draw, gram: bool, m: int, p: int, seed: int, share: float, first: int, then: int
) -> None:
    f = draw(m, p, seed=seed, gram=gram)
    lam = share * float(np.abs(f.score).max())
    B = starts(f, 4, seed)
    kept = B.copy()
    whole = local_sweeps(f, B, lam, first + then)
    assert np.array_equal(B, kept)
    split = local_sweeps(f, local_sweeps(f, B, lam, first), lam, then)
    assert whole.tobytes() == split.tobytes()
    for j in range(4):
        alone = local_sweeps(f, B[:, [j]], lam, first + then)
        assert whole[:, j].tobytes() == alone[:, 0].tobytes()
        before = objective(f.X, f.y, B[:, j], lam)
        assert objective(f.X, f.y, whole[:, j], lam) <= before * (1 + 1e-12)


@each_form
def test_splitting_and_company_at_the_size_of_a_study(draw: Draw, gram: bool) -> None:
    f = draw(268, 600, gram=gram)
    lam = 0.1 * float(np.abs(f.score).max())
    B = starts(f, 3)
    whole = local_sweeps(f, B, lam, 5)
    assert whole.tobytes() == local_sweeps(f, local_sweeps(f, B, lam, 2), lam, 3).tobytes()
    assert whole[:, 1].tobytes() == local_sweeps(f, B[:, [1]], lam, 5)[:, 0].tobytes()


# Rows, columns, correlation, penalty as a share of the largest useful one, draws.
ARRIVALS = [
    (30, 10, 0.5, 0.1, 170),
    (200, 40, 0.5, 0.05, 30),
    (40, 12, 0.9, 0.02, 60),
    (20, 45, 0.5, 0.2, 60),
    (8, 60, 0.8, 0.3, 10),
    (1, 5, 0.5, 0.1, 10),
    (7, 1, 0.5, 0.1, 10),
]


@pytest.mark.full
@each_form
@pytest.mark.parametrize(("m", "p", "rho", "share", "draws"), ARRIVALS)
@pytest.mark.parametrize("scales", ["alike", "apart"])
def test_iterates_that_have_arrived_stand_still_on_every_draw(
    draw: Draw, gram: bool, m: int, p: int, rho: float, share: float, draws: int, scales: str
) -> None:
    for seed in range(draws):
        f = draw(m, p, rho=rho, seed=seed, gram=gram)
        if scales == "apart":
            factors = 10.0 ** np.random.default_rng(seed).uniform(-4, 4, p)
            f = LeastSquares(f.X * factors, f.y, gram)
        lam = share * float((np.max if scales == "alike" else np.median)(np.abs(f.score)))
        # Coordinate descent arrives within thousands of sweeps here; a trembling one never does.
        b = local_sweeps(f, np.zeros((p, 1)), lam, 10**6)
        assert local_sweeps(f, b, lam, 1).tobytes() == b.tobytes()
        assert np.abs(b).max() > 0
        # It is the optimum: each exact update, computed apart, moves the fit by rounding only.
        units = np.sqrt(f.design.norms)
        size = float(np.sqrt(f.y_ss / m)) + float(units @ np.abs(b[:, 0]))
        update = soft_threshold(f.design.norms * b[:, 0] - f.gradient(b[:, 0]), lam)
        moves = np.abs(update / f.design.norms - b[:, 0])
        assert (moves * units).max() <= 32 * ROUNDING * size


@each_form
def test_silence_at_lambda_max_and_at_a_column_of_zeros(draw: Draw, gram: bool) -> None:
    f = draw(17, 23, gram=gram)
    lam = float(np.abs(f.score).max())
    assert not local_sweeps(f, np.zeros((23, 2)), lam, 3).any()
    X = f.X.copy()
    X[:, 4] = 0.0
    b = local_sweeps(LeastSquares(X, f.y, gram), np.ones((23, 1)), 0.1 * lam, 3)
    assert np.isfinite(b).all()
    assert b[4, 0] == 0.0


@each_form
def test_a_nan_is_not_hidden(draw: Draw, gram: bool) -> None:
    f = draw(17, 23, gram=gram)
    start = np.zeros((23, 1))
    start[3] = np.nan
    assert np.isnan(local_sweeps(f, start, 0.1, 1)).any()


def test_many_columns_never_build_a_gram_matrix() -> None:
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((20_000, 500)).T)
    f = LeastSquares(X, rng.standard_normal(500))
    b = local_sweeps(f, np.zeros((20_000, 1)), 0.9 * float(np.abs(f.score).max()), 1)
    assert b.any()
    assert "gram" not in f.design.__dict__
