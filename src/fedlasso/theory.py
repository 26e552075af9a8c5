r"""How local epochs affect the limit of averaging: exact formulas, and sites that realise them.

Orthogonal designs, X_j'X_j = m_j I and z_j = X_j'y_j / m_j: averaging gives
:math:`\sum_j w_j S(z_j, \lambda)` for every E, and the pooled Lasso is
:math:`S(\sum_j w_j z_j, \lambda)`.

Two correlated sites, :math:`H_1 = I`, :math:`H_2 = (1, r; r, 1)`: the limit of averaging, its
contraction and its objective gap depend on E, not monotonically.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fedlasso.errors import FedLassoError

# A report draws the formulas only; importing the sites would be slow.
if TYPE_CHECKING:
    from fedlasso.numerics import Array
    from fedlasso.sites import Site


def orthogonal_average(z: Array, weights: ArrayLike, lam: float) -> Array:
    """Return the limit of averaging, reached in one round for any E; z has one row per site."""
    from fedlasso.numerics import soft_threshold

    return np.asarray(weights) @ soft_threshold(z, lam)


def orthogonal_pooled(z: Array, weights: ArrayLike, lam: float) -> Array:
    """Return the pooled Lasso of the same sites."""
    from fedlasso.numerics import soft_threshold

    return soft_threshold(np.asarray(weights) @ z, lam)


def orthogonal_sites(z: Array, sizes: Sequence[int], rng: np.random.Generator) -> list[Site]:
    """Return sites with X_j'X_j = m_j I and scores z_j, for p <= min m_j."""
    p = z.shape[1]
    if p > min(sizes):
        raise FedLassoError(f"orthogonal columns need at least {p} rows at every site")
    return _realise([np.eye(p)] * len(z), z, sizes, rng)


@dataclass(frozen=True)
class CorrelatedPair:
    """Two equally weighted sites and two predictors whose limit depends on the epoch count."""

    r: float
    a: float
    d: float
    lam: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.r < 1 and self.a > 0 and self.d > 0 and self.lam > 0):
            raise FedLassoError("the construction needs 0 < r < 1 and positive a, d, lam")

    @property
    def grams(self) -> tuple[Array, Array]:
        """H_1 and H_2."""
        return np.eye(2), np.array([[1.0, self.r], [self.r, 1.0]])

    @property
    def scores(self) -> tuple[Array, Array]:
        """z_j = H_j theta_j + lam (1, 1)'."""
        first, second = self.grams
        theta = np.array([self.a, self.a + self.d])
        return first @ np.array([self.a, self.a]) + self.lam, second @ theta + self.lam

    def limit(self, epochs: float) -> Array:
        """Return b_E, the limit of averaging with E epochs."""
        r, a, d = self.r, self.a, self.d
        s = r ** (2 * epochs)
        return np.array([a + s / r * d / (2 * (2 - s)), a + (1 - s) * d / (2 - s)])

    def contraction(self, epochs: float) -> float:
        """Return the factor by which the second coordinate's error shrinks in a round."""
        return float(self.r ** (2 * epochs) / 2)

    @property
    def pooled(self) -> Array:
        """b_star, the pooled Lasso."""
        r, a, d = self.r, self.a, self.d
        return np.array([a + r * d / (4 - r**2), a + (2 - r**2) * d / (4 - r**2)])

    def gap(self, epochs: float) -> float:
        """Return F(b_E) - F(b_star)."""
        r, d = self.r, self.d
        s = r ** (2 * epochs)
        t = s / (2 - s)
        return float(d**2 * r**4 / (32 * (4 - r**2)) + d**2 / (8 * r**2) * (t - r**2 / 2) ** 2)

    @property
    def best_epochs(self) -> float:
        """E_star(r), the real epoch count with the smallest gap."""
        return float(1 + np.log(1 + self.r**2 / 2) / -np.log(self.r**2))

    @property
    def best_whole_epochs(self) -> int:
        """The whole epoch count with the smallest gap."""
        low = int(np.floor(self.best_epochs))
        return min((low, low + 1), key=self.gap)

    def sites(self, rows: int, rng: np.random.Generator) -> list[Site]:
        """Return two sites of equal size with these Gram matrices and scores."""
        return _realise(self.grams, self.scores, (rows, rows), rng)


def _realise(
    grams: Iterable[Array], scores: Iterable[Array], sizes: Sequence[int], rng: np.random.Generator
) -> list[Site]:
    """Return sites with X'X/m = H and X'y/m = z."""
    from fedlasso.sites import Site

    sites: list[Site] = []
    for H, z, m in zip(grams, scores, sizes, strict=True):
        Q = np.linalg.qr(rng.standard_normal((m, len(H)))).Q
        X = np.sqrt(m) * Q @ np.linalg.cholesky(H).T
        sites.append(Site(f"site{len(sites) + 1}", X, X @ np.linalg.solve(H, z)))
    return sites
