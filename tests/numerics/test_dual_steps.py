"""Dual-averaging steps, in both forms."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fedlasso.numerics import L1, Array, LeastSquares, dual_steps, soft_threshold

Draw = Callable[..., LeastSquares]
each_form = pytest.mark.parametrize("gram", [True, False], ids=["gram", "residual"])


def explicit_steps(
    f: LeastSquares, z: Array, rate: float, lam: float, first_step: int, epochs: int
) -> Array:
    """Apply the paper's two lines as written."""
    for k in range(epochs):
        b = soft_threshold(z, rate * (first_step + k) * lam)
        z = z - rate * (f.X.T @ (f.X @ b - f.y) / f.m)
    return z


@each_form
@pytest.mark.parametrize(("m", "p"), [(30, 20), (20, 45), (1, 5), (7, 1)])
@pytest.mark.parametrize("first_step", [0, 15])
def test_equals_explicit_steps(draw: Draw, gram: bool, m: int, p: int, first_step: int) -> None:
    f = draw(m, p, gram=gram)
    lam = 0.1 * float(np.abs(f.score).max())
    rates = np.array([0.03, 0.3, 1.0]) / f.largest_curvature
    z = np.random.default_rng(0).standard_normal((p, 3))
    result = dual_steps(f, z, rates, L1(lam), first_step, 6)
    for j in range(3):
        expected = explicit_steps(f, z[:, j], rates[j], lam, first_step, 6)
        assert_allclose(result[:, j], expected, atol=1e-12, rtol=1e-12)


@each_form
@settings(max_examples=25)
@given(
    m=st.integers(1, 15),
    p=st.integers(1, 40),
    seed=st.integers(0, 1000),
    share=st.floats(0.0, 1.2),
    start=st.integers(0, 20),
    first=st.integers(0, 4),
    then=st.integers(0, 4),
)
def test_promises(
    draw: Draw,
    gram: bool,
    m: int,
    p: int,
    seed: int,
    share: float,
    start: int,
    first: int,
    then: int,
) -> None:
    f = draw(m, p, seed=seed, gram=gram)
    lam = share * float(np.abs(f.score).max())
    rates = np.array([0.1, 0.6, 1.0]) / f.largest_curvature
    z = np.random.default_rng(seed).standard_normal((p, 3))
    kept = z.copy()
    whole = dual_steps(f, z, rates, L1(lam), start, first + then)
    assert np.array_equal(z, kept)
    half = dual_steps(f, z, rates, L1(lam), start, first)
    assert whole.tobytes() == dual_steps(f, half, rates, L1(lam), start + first, then).tobytes()
    for j in range(3):
        alone = dual_steps(f, z[:, [j]], rates[[j]], L1(lam), start, first + then)
        assert whole[:, j].tobytes() == alone[:, 0].tobytes()


def test_forms_agree_at_the_size_of_a_study(draw: Draw) -> None:
    f = draw(268, 600)
    lam = 0.1 * float(np.abs(f.score).max())
    rates = np.array([0.03, 0.1, 0.3, 0.6, 1.0]) / f.largest_curvature
    forms = [
        dual_steps(LeastSquares(f.X, f.y, gram), np.zeros((600, 5)), rates, L1(lam), 0, 20)
        for gram in (True, False)
    ]
    assert_allclose(forms[0], forms[1], atol=1e-11, rtol=0)
    assert np.abs(forms[0]).max() > 0.1
