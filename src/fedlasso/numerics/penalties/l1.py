"""The penalty of the Lasso, with optional weights and bounds."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from fedlasso.numerics.bounds import Bounds
from fedlasso.numerics.machine import Array
from fedlasso.numerics.penalties.penalty import Penalty, soft_threshold


@dataclass(frozen=True, eq=False, repr=False)
class L1(Penalty):
    """The Lasso's penalty, lam * sum_k weights_k |b_k|; infinite outside of any bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import L1
    >>> L1(0.5).value(np.array([1.0, -3.0]))
    2.0
    """

    name: ClassVar[str] = "l1"
    bounds: Bounds | None = field(default=None, kw_only=True)

    @property
    def plain(self) -> bool:
        return self.uniform and self.unbounded and self.ridgeless

    def thresholds(self, p: int) -> Array:
        if self.weights is None:
            return np.full(p, self.lam)
        finite = np.isfinite(self.weights)
        return np.where(finite, self.lam * np.where(finite, self.weights, 0.0), np.inf)

    def value(self, b: Array) -> float:
        if self.bounds is not None and not self.bounds.hold(b):
            return np.inf
        if self.weights is None:
            return self.lam * float(np.abs(b).sum())
        on = b != 0
        return float(self.thresholds(b.size)[on] @ np.abs(b[on]))

    def prox(self, v: Array, step: float | Array) -> Array:
        return self._within(self._shrink(v, step))

    def _shrink(self, v: Array, step: float | Array) -> Array:
        if self.weights is None:
            return soft_threshold(v, step * self.lam)
        a = self.thresholds(len(v))
        return soft_threshold(v, np.multiply.outer(a, step) if v.ndim == 2 else a * step)

    def _within(self, b: Array) -> Array:
        return b if self.bounds is None else self.bounds.clip(b)

    def dual_limit(self, gradient: Array) -> float:
        if self.bounds is not None:
            # Toward a finite bound the conjugate is finite.
            ends = np.isfinite(self.bounds.toward(-gradient))
            gradient = np.where(ends, 0.0, gradient)
        steep = np.abs(gradient)
        if self.weights is None:
            largest = float(steep.max(initial=0.0))
            return self.lam / largest if largest > 0 else np.inf
        on = steep > 0
        return float((self.thresholds(gradient.size)[on] / steep[on]).min(initial=np.inf))

    def conjugate(self, z: Array) -> float:
        if self.bounds is None:
            return 0.0
        return self.bounds.conjugate(z, self.thresholds(z.size), np.zeros(z.size))

    def largest(self, slopes: Array) -> float:
        """Return the smallest strength at which all penalised coefficients are zero.

        If bounds alone keep them at zero, it is the strength without bounds.
        """
        if self.bounds is None:
            return self._steepest(slopes)
        pull = self.bounds.allowed(np.zeros(slopes.size), -slopes)
        return self._steepest(pull) or self._steepest(slopes)

    def _steepest(self, slopes: Array) -> float:
        steep = np.abs(slopes)
        if self.weights is not None:
            penalised = (self.weights > 0) & np.isfinite(self.weights)
            steep = steep[penalised] / self.weights[penalised]
        return float(steep.max(initial=0.0))

    def scaled(self, factors: Array) -> Self:
        return self if self.bounds is None else replace(self, bounds=self.bounds.scaled(factors))

    def without_bounds(self) -> Self:
        return replace(self, bounds=None)
