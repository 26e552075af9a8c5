"""Records with columns in natural units, for curved losses, at three sites."""

import numpy as np

from fedlasso import InProcess, Ledger, Site
from fedlasso.numerics import Array


def respond(family: str, eta: Array, rng: np.random.Generator) -> Array:
    if family == "binomial":
        return (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(np.float64)
    if family == "poisson":
        return rng.poisson(np.exp(0.5 * eta)).astype(np.float64)
    time = rng.exponential(np.exp(-eta))
    censored = rng.exponential(2.0, len(eta))
    return np.where(time <= censored, time, -censored)


def draw(family: str, seed: int = 0, n: int = 300, p: int = 12) -> tuple[Array, Array]:
    """Return columns in natural units, two of them nearly the same, and responses."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, p))
    Z[:, 1] = 0.95 * Z[:, 0] + 0.3 * Z[:, 1]
    effects = np.zeros(p)
    effects[[0, 3, 5]] = (1.0, -0.7, 0.5)
    y = respond(family, Z @ effects, rng)
    X = Z.copy()
    X[:, 0] = 55 + 12 * Z[:, 0]
    X[:, 3] = 70_000 + 9_000 * Z[:, 3]
    X[:, 7] = Z[:, 7] > 1
    return X, y


def divide(X: Array, y: Array, family: str) -> list[Site]:
    site = np.arange(len(y)) * 3 // len(y)
    return [
        Site("abc"[k], X[site == k], y[site == k], loss=family, intercept=True, raw=True)
        for k in range(3)
    ]


def connect(X: Array, y: Array, family: str) -> Ledger:
    return Ledger(InProcess(divide(X, y, family)))
