"""Penalties: what coefficients pay, and the proximal step that makes them pay it.

A penalty is one class and one line in `PENALTIES`. It is a strength `lam` times a norm, so that a
path changes `lam` alone.
"""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.numerics.bounds import Bounds
from fedlasso.numerics.machine import Array


def soft_threshold(v: Array, a: float | Array) -> Array:
    """Return S(v, a) = sgn(v) max(|v| - a, 0), elementwise."""
    return np.sign(v) * np.maximum(np.abs(v) - a, 0.0)


@dataclass(frozen=True, eq=False)
class Penalty(ABC):
    """A convex penalty on coefficients.

    Attributes
    ----------
    name : as settings and messages call it
    lam : its strength
    weights : what each coefficient pays in units of `lam`; zero is unpenalised, infinite keeps a
        coefficient at zero, None is one for all

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import L1
    >>> L1(0.5, weights=np.array([1.0, 0.0])).prox(np.array([2.0, 2.0]), 1.0)
    array([1.5, 2. ])
    """

    name: ClassVar[str]
    lam: float
    weights: Array | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.lam) and self.lam >= 0):
            raise FedLassoError(f"the penalty is {self.lam}; give a finite number, zero or more")

    def __repr__(self) -> str:
        """Everything that tells two penalties apart, in one short line."""
        text = f"{type(self).__name__}({self.lam!r}"
        if self.weights is not None:
            text += f", weights {hashlib.sha256(self.weights.tobytes()).hexdigest()[:16]}"
        return text + ")"

    @abstractmethod
    def value(self, b: Array) -> float:
        """Return what coefficients pay."""

    @abstractmethod
    def prox(self, v: Array, step: float | Array) -> Array:
        """Return argmin_b |b - v|^2 / 2 + step * value(b), each column of v with its own step."""

    @abstractmethod
    def dual_limit(self, gradient: Array) -> float:
        """Return the largest s for which the conjugate of -s * gradient is finite.

        The gradient is the loss's. Dual points are gradients scaled down to that; a coefficient
        that pays nothing and has no bound allows none but a zero gradient.
        """

    def conjugate(self, z: Array) -> float:
        """Return the largest value of z'b less what b pays, for z within the dual limit."""
        return 0.0

    def free(self, p: int) -> NDArray[np.bool_]:
        """Return which of p coefficients pay nothing."""
        if self.weights is None:
            return np.full(p, self.lam == 0.0)
        return np.asarray(self.weights == 0.0)

    def at(self, lam: float) -> Self:
        """Return the same penalty with another strength."""
        return replace(self, lam=float(lam))


@dataclass(frozen=True, eq=False, repr=False)
class L1(Penalty):
    """The Lasso's penalty, lam * sum_k weights_k |b_k|, on coefficients that may have bounds.

    Outside of its bounds a coefficient costs infinitely much.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import L1
    >>> L1(0.5).value(np.array([1.0, -3.0]))
    2.0
    """

    name: ClassVar[str] = "l1"
    bounds: Bounds | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        told = super().__repr__()
        return told if self.bounds is None else f"{told[:-1]}, {self.bounds!r})"

    def each(self, p: int) -> Array:
        """Return what every one of p coefficients pays."""
        if self.weights is None:
            return np.full(p, self.lam)
        finite = np.isfinite(self.weights)
        paid = self.lam * np.where(finite, self.weights, 0.0)
        return np.where(finite, paid, np.inf)

    def value(self, b: Array) -> float:
        if self.bounds is not None and not self.bounds.hold(b):
            return np.inf
        if self.weights is None:
            return self.lam * float(np.abs(b).sum())
        on = b != 0
        return float(self.each(b.size)[on] @ np.abs(b[on]))

    def prox(self, v: Array, step: float | Array) -> Array:
        return self._within(self._shrink(v, step))

    def _shrink(self, v: Array, step: float | Array) -> Array:
        if self.weights is None:
            return soft_threshold(v, step * self.lam)
        paid = self.each(len(v))
        return soft_threshold(v, np.multiply.outer(paid, step) if v.ndim == 2 else paid * step)

    def _within(self, b: Array) -> Array:
        return b if self.bounds is None else self.bounds.clip(b)

    def dual_limit(self, gradient: Array) -> float:
        if self.bounds is not None:
            # Before a bound nothing grows without end.
            ends = np.isfinite(self.bounds.toward(-gradient))
            gradient = np.where(ends, 0.0, gradient)
        steep = np.abs(gradient)
        if self.weights is None:
            largest = float(steep.max(initial=0.0))
            return self.lam / largest if largest > 0 else np.inf
        on = steep > 0
        return float((self.each(gradient.size)[on] / steep[on]).min(initial=np.inf))

    def conjugate(self, z: Array) -> float:
        if self.bounds is None:
            return 0.0
        return self.bounds.conjugate(z, self.each(z.size), np.zeros(z.size))

    def without_bounds(self) -> Self:
        """Return the same penalty on coefficients that have no bounds."""
        return replace(self, bounds=None)


@dataclass(frozen=True, eq=False, repr=False)
class ElasticNet(L1):
    """The Lasso's penalty and half a `ridge` times the squares, which steadies columns alike.

    A weight counts for both: sum_k weights_k (lam |b_k| + ridge / 2 b_k^2).

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics import ElasticNet
    >>> ElasticNet(0.5, ridge=2.0).value(np.array([1.0, -3.0]))
    12.0
    """

    name: ClassVar[str] = "elastic net"
    ridge: float = 0.0

    def ridges(self, p: int) -> Array:
        """Return the ridge of every one of p coefficients."""
        if self.weights is None:
            return np.full(p, self.ridge)
        return self.ridge * np.where(np.isfinite(self.weights), self.weights, 0.0)

    def value(self, b: Array) -> float:
        return super().value(b) + float(self.ridges(b.size) @ (b * b)) / 2

    def prox(self, v: Array, step: float | Array) -> Array:
        ridges = self.ridges(len(v))
        shrunk = self._shrink(v, step)
        return self._within(np.asarray(shrunk / (1 + np.multiply.outer(ridges, step))))

    def dual_limit(self, gradient: Array) -> float:
        # Squares outgrow every slope, so only coefficients without them limit dual points.
        return super().dual_limit(np.where(self.ridges(gradient.size) > 0, 0.0, gradient))

    def conjugate(self, z: Array) -> float:
        ridges = self.ridges(z.size)
        if self.bounds is not None:
            return self.bounds.conjugate(z, self.each(z.size), ridges)
        on = ridges > 0
        beyond = np.maximum(np.abs(z[on]) - self.each(z.size)[on], 0.0)
        return float((beyond**2 / (2 * ridges[on])).sum())


@dataclass(frozen=True, eq=False)
class PenaltyForm:
    """What a penalty is but for its strength: a path changes that alone.

    Attributes
    ----------
    weights : what each coefficient pays in units of the strength
    l1_ratio : the Lasso's share of it; the rest goes on half the squares
    bounds : ranges that coefficients may not leave, if any

    Examples
    --------
    >>> from fedlasso.numerics import PenaltyForm
    >>> PenaltyForm(l1_ratio=0.5).at(2.0).ridge
    1.0
    """

    weights: Array | None = None
    l1_ratio: float = 1.0
    bounds: Bounds | None = None

    @property
    def plain(self) -> bool:
        """Whether it is the Lasso's, the same for all coefficients and without bounds."""
        return self.weights is None and self.l1_ratio == 1.0 and self.bounds is None

    def scaled(self, factors: Array) -> Self:
        """Return the form for coefficients that times `factors` are the ones that have bounds."""
        if self.bounds is None:
            return self
        return replace(self, bounds=self.bounds.scaled(factors))

    def at(self, strength: float) -> L1:
        """Return the penalty of one strength."""
        lam = self.l1_ratio * strength
        if self.l1_ratio == 1.0:
            return L1(lam, self.weights, bounds=self.bounds)
        return ElasticNet(lam, self.weights, strength - lam, bounds=self.bounds)

    def largest(self, slopes: Array) -> float:
        """Return the smallest strength that keeps all coefficients which pay at zero.

        Where bounds alone do that, it is the one without bounds: no strength is of any use.
        """
        if self.bounds is not None:
            unbounded = replace(self, bounds=None)
            pull = self.bounds.allowed(np.zeros(slopes.size), -slopes)
            return unbounded.largest(pull) or unbounded.largest(slopes)
        steep = np.abs(slopes)
        if self.weights is not None:
            paying = (self.weights > 0) & np.isfinite(self.weights)
            steep = steep[paying] / self.weights[paying]
        return float(steep.max(initial=0.0)) / self.l1_ratio


PENALTIES: dict[str, type[Penalty]] = {"l1": L1, "elastic net": ElasticNet}


def find_penalty(name: str) -> type[Penalty]:
    """Return the penalty of that name."""
    if name not in PENALTIES:
        raise FedLassoError(f"no penalty is called {name!r}; known: {', '.join(PENALTIES)}")
    return PENALTIES[name]
