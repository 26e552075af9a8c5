"""The penalty of the elastic net."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.numerics.machine import Array
from fedlasso.numerics.penalties.l1 import L1


@dataclass(frozen=True, eq=False, repr=False)
class ElasticNet(L1):
    """The elastic net's penalty, sum_k weights_k (lam |b_k| + ridge / 2 b_k^2).

    lam = l1_ratio * strength and ridge = strength - lam.
    """

    name: ClassVar[str] = "elastic net"
    shape: ClassVar[str] = "l1_ratio"
    l1_ratio: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.l1_ratio <= 1:
            raise FedLassoError(f"l1_ratio is {self.l1_ratio}; give a number between 0 and 1")

    @classmethod
    def with_ridge(cls, lam: float, ridge: float, weights: Array | None = None) -> Self:
        strength = lam + ridge
        return cls(strength, weights, lam / strength if strength > 0 else 1.0)

    @property
    def lam(self) -> float:
        return self.l1_ratio * self.strength

    @property
    def ridge(self) -> float:
        return self.strength - self.lam

    @property
    def ridgeless(self) -> bool:
        return self.l1_ratio == 1.0

    @property
    def nonsmooth(self) -> L1:
        return L1(self.lam, self.weights, bounds=self.bounds)

    def smooth_part(self, p: int) -> Array:
        if self.weights is None:
            return np.full(p, self.ridge)
        return self.ridge * np.where(np.isfinite(self.weights), self.weights, 0.0)

    def value(self, b: Array) -> float:
        return super().value(b) + float(self.smooth_part(b.size) @ (b * b)) / 2

    def prox(self, v: Array, step: float | Array) -> Array:
        ridges = self.smooth_part(len(v))
        shrunk = self._shrink(v, step)
        return self._within(np.asarray(shrunk / (1 + np.multiply.outer(ridges, step))))

    def dual_limit(self, gradient: Array) -> float:
        # Only coefficients without a ridge limit dual points.
        return super().dual_limit(np.where(self.smooth_part(gradient.size) > 0, 0.0, gradient))

    def conjugate(self, z: Array) -> float:
        ridges = self.smooth_part(z.size)
        if self.bounds is not None:
            return self.bounds.conjugate(z, self.thresholds(z.size), ridges)
        on = ridges > 0
        beyond = np.maximum(np.abs(z[on]) - self.thresholds(z.size)[on], 0.0)
        return float((beyond**2 / (2 * ridges[on])).sum())

    def largest(self, slopes: Array) -> float:
        return super().largest(slopes) / self.l1_ratio
