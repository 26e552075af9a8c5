"""What Secant promises on whole vectors and on a working set: the pooled Lasso, on odd data too."""

import numpy as np
import pytest
from helpers.secants import Parts, SecantClass, check, largest, parts, pooled, run
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import FedLassoError, Status
from fedlasso.procedures import Secant
from fedlasso.procedures.working_set_secant import WorkingSetSecant

# Powers of two round nothing, so that a scale can change nothing but the units.
SMALL, LARGE = 2.0**-27, 2.0**27
both = pytest.mark.parametrize("secant", [Secant, WorkingSetSecant])


@both
@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    share=st.floats(0.05, 1.2),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    p=st.integers(1, 30),
)
def test_it_reaches_the_pooled_lasso(
    secant: SecantClass, seed: int, share: float, sizes: list[int], p: int
) -> None:
    data = parts(sizes, p, seed)
    lam = share * largest(data)
    check(run(secant, data, lam, rounds=300), data, lam)


@both
def test_it_goes_down_to_ten_digits(secant: SecantClass) -> None:
    data = parts((120, 100, 80), 60)
    check(run(secant, data, 0.1, tol=1e-10), data, 0.1, tol=1e-10)


@both
def test_above_the_largest_penalty_the_empty_model_is_certified_by_one_gradient(
    secant: SecantClass,
) -> None:
    data = parts()
    lam = 1.01 * largest(data)
    result = run(secant, data, lam)
    assert result.rounds == 1
    assert not result.coefficients.any()
    check(result, data, lam)


X, Y = parts((40,), 12)[0]
ODD: dict[str, Parts] = {
    "one predictor": parts((10, 5), 1),
    "one site": parts((40,), 20),
    "a site of one row": parts((40, 1), 20),
    "one row in all": parts((1,), 20),
    "identical sites": [(X, Y)] * 3,
    "every column twice": [(np.hstack([A, A]), y) for A, y in parts((30, 20), 40)],
    "no noise": [(A, A[:, 0]) for A, _ in parts((30, 20), 40)],
    "columns of all sizes": [(A * np.logspace(-3, 3, 20), y) for A, y in parts((30, 20), 20)],
}


@both
@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("share", [0.999999, 0.5, 0.05, 0.001])
def test_odd_data(secant: SecantClass, case: str, share: float) -> None:
    lam = share * largest(ODD[case])
    check(run(secant, ODD[case], lam, rounds=300), ODD[case], lam)


@both
@pytest.mark.parametrize("x_scale", [SMALL, LARGE])
@pytest.mark.parametrize("y_scale", [SMALL, 1.0, LARGE])
def test_scales(secant: SecantClass, x_scale: float, y_scale: float) -> None:
    data = parts()
    unit = run(secant, data, 0.1)
    scaled = run(secant, [(x_scale * A, y_scale * y) for A, y in data], 0.1 * x_scale * y_scale)
    assert scaled.status is Status.OPTIMAL
    assert scaled.rounds == unit.rounds
    expected = unit.coefficients * (y_scale / x_scale)
    np.testing.assert_allclose(scaled.coefficients, expected, atol=1e-7 * np.abs(expected).max())


@both
@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_no_response_at_all(secant: SecantClass, lam: float) -> None:
    result = run(secant, [(A, 0 * y) for A, y in parts()], lam)
    assert not result.coefficients.any()
    assert result.status is Status.OPTIMAL


@both
def test_without_a_penalty_it_is_least_squares_and_certified(
    secant: SecantClass,
) -> None:
    data = parts((60, 50), 10)
    f = pooled(data)
    result = run(secant, data, 0.0)
    np.testing.assert_allclose(result.coefficients, np.linalg.lstsq(f.X, f.y)[0], atol=1e-7)
    assert result.status is Status.OPTIMAL
    assert result.rounds < 300


@both
def test_a_tolerance_must_be_a_number_from_zero_up(secant: SecantClass) -> None:
    with pytest.raises(FedLassoError, match="tol is nan; give a relative gap, zero or more"):
        secant(tol=float("nan"))
