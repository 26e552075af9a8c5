"""One way to draw a regression problem, shared by this room's tests."""

from collections.abc import Callable

import numpy as np
import pytest

from fedlasso.numerics import LeastSquares


def draw_problem(
    m: int, p: int, rho: float = 0.5, seed: int = 0, gram: bool | None = None
) -> LeastSquares:
    """Draw Gaussian columns with correlation rho^|k-l|, a few true effects and unit SNR."""
    rng = np.random.default_rng([seed, m, p])
    X = rng.standard_normal((m, p))
    for k in range(1, p):
        X[:, k] = rho * X[:, k - 1] + np.sqrt(1 - rho**2) * X[:, k]
    truth = np.zeros(p)
    support = rng.choice(p, min(p, 30), replace=False)
    truth[support] = rng.uniform(0.4, 1.2, support.size) * rng.choice([-1, 1], support.size)
    signal = X @ truth
    y = signal + np.sqrt(signal @ signal / m) * rng.standard_normal(m)
    return LeastSquares(X, y, gram)


@pytest.fixture(scope="session")
def draw() -> Callable[..., LeastSquares]:
    return draw_problem
