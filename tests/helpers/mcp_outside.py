"""The minimax concave penalty (Zhang 2010) from outside the package, in one file."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedlasso import Penalty
from fedlasso.numerics import Array, soft_threshold


@dataclass(frozen=True, eq=False, repr=False)
class MCP(Penalty):
    """The minimax concave penalty: the Lasso's next to zero, constant beyond gamma * lam.

    Proximal steps are shorter than gamma.
    """

    name: ClassVar[str] = "mcp for tests"
    convex: ClassVar[bool] = False
    shape: ClassVar[str] = "gamma"
    gamma: float = 3.0

    def value(self, b: Array) -> float:
        inner = self.lam * np.abs(b) - b * b / (2 * self.gamma)
        return float(np.where(np.abs(b) <= self.gamma * self.lam, inner, self._most).sum())

    def prox(self, v: Array, step: float | Array) -> Array:
        shrunk = soft_threshold(v, step * self.lam) / (1 - step / self.gamma)
        return np.where(np.abs(v) <= self.gamma * self.lam, shrunk, v)

    def largest(self, slopes: Array) -> float:
        return float(np.abs(slopes).max())

    @property
    def _most(self) -> float:
        return self.gamma * self.lam**2 / 2
