"""The data of one site and what is computed from it once."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

from fedlasso.numerics import Array, LeastSquares

Draw = Callable[..., LeastSquares]


def test_quantities_match_their_definitions(draw: Draw) -> None:
    f = draw(30, 12)
    X, y, b = f.X, f.y, np.linspace(-1, 1, 12).round(1)
    assert_allclose(f.score, X.T @ y / 30, atol=1e-12)
    assert_allclose(f.design.norms, (X**2).sum(axis=0) / 30, rtol=1e-12)
    assert_allclose(f.gram, X.T @ X / 30, atol=1e-12)
    assert_allclose(f.residual(b), y - X @ b, atol=1e-12)
    assert_allclose(f.gradient(b), X.T @ (X @ b - y) / 30, atol=1e-12)
    assert f.value(b) == pytest.approx(np.sum((y - X @ b) ** 2) / 60, rel=1e-12)
    assert f.y_ss == pytest.approx(y @ y)
    # lambda_max must silence every coordinate exactly, whichever way the score is computed
    assert np.array_equal(f.gradient(np.zeros(12)), -f.score)


@pytest.mark.parametrize(("m", "p"), [(1, 1), (1, 9), (9, 1), (40, 200), (200, 100), (150, 300)])
def test_largest_eigenvalue(draw: Draw, m: int, p: int) -> None:
    f = draw(m, p)
    expected = np.linalg.norm(f.X, 2) ** 2 / m
    assert f.largest_curvature == pytest.approx(expected, rel=1e-12)
    assert f.largest_curvature == draw(m, p).largest_curvature


def test_design_is_kept_once_and_read_only() -> None:
    X, y = np.asfortranarray(np.eye(4)), np.ones(4)
    f = LeastSquares(X, y)
    assert np.shares_memory(f.X, X)
    assert np.shares_memory(f.X, f.columns)
    with pytest.raises(ValueError, match="read-only"):
        f.X[0, 0] = 2.0
    X[0, 0] = 1.0  # the caller's own array stays writable
    rows = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    assert np.array_equal(LeastSquares(rows, y[:2]).X, rows)


def test_bits_do_not_depend_on_blas_threads(draw: Draw) -> None:
    results = []
    for threads in (1, 4):
        f = draw(300, 400)
        with threadpool_limits(threads, user_api="blas"):
            results.append(f.gram.tobytes() + np.float64(f.largest_curvature).tobytes())
    assert results[0] == results[1]


def test_gram_only_where_it_pays(draw: Draw) -> None:
    assert draw(268, 600).prefers_gram
    assert not LeastSquares(np.ones((500, 20_000), order="F"), np.ones(500)).prefers_gram
    assert not draw(2, 200).prefers_gram


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((3, 2)), np.ones(2), r"X must be \(m, p\) and y \(m,\), not \(3, 2\) and \(2,\)."),
        (np.ones(3), np.ones(3), r"X must be \(m, p\)"),
        (np.ones((0, 2)), np.ones(0), "X holds no records."),
        (np.full((3, 2), np.nan), np.ones(3), "X must be finite."),
        (np.ones((3, 2)), np.array([1.0, np.inf, 1.0]), "y must be finite."),
    ],
)
def test_bad_data(X: Array, y: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeastSquares(X, y)
