"""Small random federations for tests."""

from collections.abc import Sequence

import numpy as np

from fedlasso import InProcess, Site
from fedlasso.numerics import Array


def draw_site(name: str, m: int, b: Array, rng: np.random.Generator, n: int = 12) -> Site:
    """A Gaussian site with m training rows and two validation samples of n rows."""

    def sample(rows: int) -> tuple[Array, Array]:
        X = rng.standard_normal((rows, len(b)))
        return X, X @ b + rng.standard_normal(rows)

    X, y = sample(m)
    return Site(name, X, y, validation={"penalty": sample(n), "candidate": sample(n)})


def draw_sites(sizes: Sequence[int] = (30, 25, 20), p: int = 40, seed: int = 0) -> list[Site]:
    """Sites named a, b, c, ... that share a sparse truth."""
    rng = np.random.default_rng(seed)
    b = np.zeros(p)
    b[: max(1, p // 8)] = 1.0
    return [draw_site(chr(97 + j), m, b, rng) for j, m in enumerate(sizes)]


def draw_federation(sizes: Sequence[int] = (30, 25, 20), p: int = 40, seed: int = 0) -> InProcess:
    """The same as a federation in this process."""
    return InProcess(draw_sites(sizes, p, seed))


def objective(X: Array, y: Array, b: Array, lam: float) -> float:
    """The Lasso's objective as it is written: ||y - Xb||^2 / (2m) + lam |b|_1."""
    r = y - X @ b
    return float(r @ r / (2 * y.size) + lam * np.abs(b).sum())
