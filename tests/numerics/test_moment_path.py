"""The Lasso path from second moments, against other solvers that have the records."""

from collections.abc import Callable

import numpy as np
import pytest
from helpers.draws import objective
from helpers.loops import loop
from helpers.spectra import draw_spectra
from helpers.swept import swept_elastic_net, swept_lasso
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fedlasso.numerics import Array, LeastSquares, lasso_path
from fedlasso.numerics.moment_path import ENOUGH, GAP, MomentPath, Walk, solve_path
from fedlasso.numerics.moments import Moments, Normal

Draw = Callable[..., LeastSquares]
Records = tuple[Array, Array]


def equations(X: Array, y: Array) -> Normal:
    """The normal equations of records as they are."""
    A = np.column_stack([np.ones(len(y)), X, y])
    return Moments(A.T @ A).normal(centre=False, scale=False)


def grid_of(normal: Normal, count: int = 25, ratio: float = 1e-3) -> Array:
    return np.asarray(normal.largest_penalty * np.logspace(0, np.log10(ratio), count))


def gaps(X: Array, y: Array, path: MomentPath) -> Array:
    """Duality gaps as shares of the response's variance, computed from the records."""
    m = len(y)
    found = []
    for b, lam in zip(path.lasso.T, path.penalties, strict=True):
        r = y - X @ b
        # A dual feasible point: the residual scaled into |X'theta|/m <= lam.
        theta = r * min(1.0, lam / max(np.abs(X.T @ r).max() / m, 1e-300))
        dual = (y @ y - (y - theta) @ (y - theta)) / (2 * m)
        found.append((objective(X, y, b, lam) - dual) / (y @ y / m))
    return np.array(found)


def assert_solved(X: Array, y: Array, ratio: float = 1e-3, gap: float = GAP) -> MomentPath:
    """Assert that the whole path is solved, by gaps from the records."""
    normal = equations(X, y)
    path = solve_path(normal, grid_of(normal, ratio=ratio))
    # The path scales its residual at best, which is never worse than it is here but for rounding.
    assert gaps(X, y, path).max() <= 2 * gap
    assert not path.lasso[:, 0].any()
    return path


def assert_refitted(X: Array, y: Array, path: MomentPath) -> None:
    """Assert that refits are least squares on the supports."""
    size = float(np.sqrt(y @ y))
    for b, refit in zip(path.lasso.T, path.refits.T, strict=True):
        on = b != 0
        assert not refit[~on].any()
        fitted = X[:, on] @ np.linalg.lstsq(X[:, on], y, rcond=1e-12)[0] if on.any() else 0 * y
        # Fits are alike even where coefficients are not unique.
        assert_allclose(X @ refit, fitted, rtol=0, atol=1e-6 * size)


def standardise(X: Array) -> Array:
    Z = X - X.mean(axis=0)
    return np.asarray(Z / np.where(Z.any(axis=0), np.sqrt((Z**2).mean(axis=0)), 1.0))


@loop("seed", range(8))
@pytest.mark.parametrize(
    ("m", "p", "rho"),
    [(200, 20, 0.5), (100, 60, 0.8), (60, 60, 0.5), (40, 120, 0.5), (30, 90, 0.9), (5, 40, 0.0)],
)
def test_the_path_is_that_of_the_records(draw: Draw, m: int, p: int, rho: float, seed: int) -> None:
    f = draw(m, p, rho, seed)
    path = assert_solved(f.X, f.y)
    theirs = lasso_path(f, path.penalties)
    assert theirs.met.all()
    assert_allclose(path.lasso, theirs.coefficients, rtol=0, atol=1e-7)
    assert_refitted(f.X, f.y, path)


@loop("seed", range(8))
@pytest.mark.parametrize(("m", "p"), [(120, 15), (80, 40)])
def test_the_path_is_that_of_coordinate_descent(draw: Draw, m: int, p: int, seed: int) -> None:
    f = draw(m, p, 0.5, seed)
    normal = equations(f.X, f.y)
    penalties = grid_of(normal, 8)
    path = solve_path(normal, penalties)
    for b, refit, lam in zip(path.lasso.T, path.refits.T, penalties, strict=True):
        assert_allclose(b, swept_lasso(f.X, f.y, lam).coef_, rtol=0, atol=1e-9)
        on = b != 0
        assert_allclose(refit[on], np.linalg.lstsq(f.X[:, on], f.y, rcond=None)[0], atol=1e-9)


@pytest.mark.standard
@loop("seed", range(8))
@pytest.mark.parametrize(("m", "p"), [(120, 15), (30, 60)])
@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_an_elastic_net_is_a_path_too(draw: Draw, m: int, p: int, ridge: float, seed: int) -> None:
    f = draw(m, p, 0.5, seed)
    normal = equations(f.X, f.y).steadied(ridge)
    penalties = grid_of(normal, 8, 0.01)
    path = solve_path(normal, penalties)
    for b, lam in zip(path.lasso.T, penalties, strict=True):
        assert_allclose(b, swept_elastic_net(f.X, f.y, lam, ridge).coef_, rtol=0, atol=1e-8)


@loop("seed", range(8))
def test_weights_are_paid_by_columns(draw: Draw, seed: int) -> None:
    f = draw(100, 20, 0.5, seed)
    weights = np.random.default_rng(seed).uniform(0.2, 5, 20)
    weights[[3, 11]] = np.inf
    own = equations(f.X, f.y).weighted(weights)
    penalties = grid_of(own, 8)
    path = solve_path(own, penalties)
    assert not path.lasso[[3, 11]].any()
    for b, lam in zip(path.lasso.T, penalties, strict=True):
        assert_allclose(b, swept_lasso(f.X / weights, f.y, lam).coef_, rtol=0, atol=1e-9)


@loop("seed", range(8))
@pytest.mark.parametrize("kind", ["twins", "opposites", "sums"])
def test_dependent_columns(draw: Draw, kind: str, seed: int) -> None:
    f = draw(60, 20, seed=seed)
    more = {"twins": f.X, "opposites": -f.X[:, :7], "sums": f.X[:, :10] + f.X[:, 10:]}[kind]
    X = np.hstack([f.X, more])
    assert_refitted(X, f.y, assert_solved(X, f.y))


@loop("seed", range(12))
@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9])
def test_columns_that_are_the_same_but_for_rounding(draw: Draw, apart: float, seed: int) -> None:
    """One measurement in two units, each with so many digits."""
    f = draw(60, 20, seed=seed)
    near = f.X + apart * np.random.default_rng(seed).standard_normal(f.X.shape)
    # Moments tell squares apart to sixteen digits, so columns to eight.
    path = assert_solved(np.hstack([f.X, near]), f.y, gap=GAP if apart >= 1e-5 else ENOUGH)
    # Which of the two has the coefficient is not told, but what they are together is.
    together = path.lasso[:20] + path.lasso[20:]
    alone = solve_path(equations(f.X, f.y), path.penalties).lasso
    assert_allclose(together, alone, atol=max(1e-2 * np.sqrt(apart), 20 * apart))


@loop("seed", range(8))
@pytest.mark.parametrize("width", [1.0, 3.0])
def test_nearly_collinear_columns(width: float, seed: int) -> None:
    parts = draw_spectra(seed, width)
    X = np.vstack([X for X, _ in parts])
    y = np.concatenate([y for _, y in parts])
    assert_solved(X, y)


@loop("seed", range(8))
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("m", "p"), [(60, 100), (60, 30), (8, 30), (16, 16)])
def test_columns_of_zeros_and_ones(m: int, p: int, centred: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (m, p)).astype(float)
    X[:, 5] = X[:, 6]
    y = X[:, :5].sum(axis=1) + rng.integers(0, 2, m)
    if centred:
        X = standardise(X)
        y = y - y.mean()
    assert_solved(X, y)


@settings(max_examples=40)
@given(
    m=st.integers(2, 10), p=st.integers(1, 15), seed=st.integers(0, 10**6), levels=st.integers(1, 3)
)
def test_small_integer_problems(m: int, p: int, seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-levels, levels + 1, (m, p)).astype(float)
    y = rng.integers(-levels, levels + 1, m).astype(float)
    assume((X.T @ y).any())
    assert_solved(X, y)


@loop("seed", range(8))
def test_constant_columns_stay_out(draw: Draw, seed: int) -> None:
    f = draw(60, 12, seed=seed)
    X = f.X.copy()
    X[:, 4] = 0.0
    path = assert_solved(X, f.y)
    assert not path.lasso[4].any()
    # A constant that is not zero is one about its mean.
    X[:, 4] = 7.0
    A = np.column_stack([np.ones(60), X, f.y])
    normal = Moments(A.T @ A).normal()
    path = solve_path(normal, grid_of(normal))
    assert not path.lasso[4].any()
    assert gaps(standardise(X), f.y - f.y.mean(), path).max() <= 2 * GAP


def test_nothing_to_explain_and_nothing_to_explain_it_with(draw: Draw) -> None:
    f = draw(20, 6)
    for normal in (equations(f.X, np.zeros(20)), equations(np.zeros((20, 6)), f.y)):
        assert normal.largest_penalty == 0.0
        for penalties in (np.zeros(3), np.array([1.0, 0.1, 0.0])):
            path = solve_path(normal, penalties)
            assert not path.lasso.any()
            assert not path.refits.any()


def test_zeros_down_to_the_largest_penalty_and_not_below(draw: Draw) -> None:
    f = draw(50, 20)
    normal = equations(f.X, f.y)
    top = normal.largest_penalty
    path = solve_path(normal, top * np.array([5.0, 1.0, 1 - 1e-9]))
    assert np.count_nonzero(path.lasso, axis=0).tolist() == [0, 0, 1]


@loop("seed", range(8))
def test_one_penalty_needs_no_others(draw: Draw, seed: int) -> None:
    f = draw(50, 30, seed=seed)
    normal = equations(f.X, f.y)
    penalties = grid_of(normal, 6)
    path = solve_path(normal, penalties)
    for j in range(6):
        alone = solve_path(normal, penalties[j : j + 1])
        assert_allclose(alone.lasso[:, 0], path.lasso[:, j], rtol=0, atol=1e-9)


@loop("seed", range(3))
@pytest.mark.parametrize("first", [1, 7, 24])
def test_a_path_that_is_followed_further_is_the_path_at_once(seed: int, first: int) -> None:
    parts_of_rows = draw_spectra(seed)
    X = np.vstack([rows for rows, _ in parts_of_rows])
    y = np.concatenate([response for _, response in parts_of_rows])
    normal = equations(X, y)
    # Down to penalties at which these columns leave no digits, too.
    penalties = grid_of(normal, ratio=1e-9)
    whole = solve_path(normal, penalties)
    walk = Walk(normal)
    parts = [walk.follow(penalties[:first]), walk.follow(penalties[first:])]
    np.testing.assert_array_equal(np.hstack([part.lasso for part in parts]), whole.lasso)
    np.testing.assert_array_equal(np.hstack([part.refits for part in parts]), whole.refits)


@loop("seed", range(8))
def test_with_hardly_a_penalty_the_path_ends_at_least_squares(draw: Draw, seed: int) -> None:
    f = draw(80, 12, seed=seed)
    normal = equations(f.X, f.y)
    lam = 1e-8 * normal.largest_penalty
    path = solve_path(normal, np.array([lam]))
    expected = np.linalg.lstsq(f.X, f.y, rcond=None)[0]
    # The penalty moves the solution by lam G^-1 s, where s are signs.
    moved = lam * np.abs(np.linalg.inv(f.gram)).sum(axis=1)
    assert (np.abs(path.lasso[:, 0] - expected) <= moved + 1e-10).all()
    assert_allclose(path.refits[:, 0], expected, atol=1e-9)


@loop("seed", range(4))
def test_columns_that_take_turns_do_not_keep_the_path_from_its_end(seed: int) -> None:
    """Every column three times over, few levels and few rows: ties at every penalty."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (24, 15)).astype(float)
    X = standardise(np.hstack([X, X, 1 - X]))
    y = X[:, 0] + X[:, 1] + rng.integers(0, 2, 24)
    assert_solved(X, y - y.mean(), ratio=1e-6)
