"""What a penalty is: a strength times a function of the coefficients, with capabilities.

`value` is all that every penalty has. Whatever else it offers, it defines, and a procedure names
the capabilities that it needs.
"""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.numerics.bounds import Bounds
from fedlasso.numerics.machine import Array

Capability = Literal[
    "prox", "dual_limit", "thresholds", "convex", "separable", "ridgeless", "uniform", "unbounded"
]


def soft_threshold(v: Array, a: float | Array) -> Array:
    """Return S(v, a) = sgn(v) max(|v| - a, 0), elementwise."""
    return np.sign(v) * np.maximum(np.abs(v) - a, 0.0)


@dataclass(frozen=True, eq=False)
class Penalty(ABC):
    """A penalty on coefficients.

    Attributes
    ----------
    name : as settings and messages call it
    convex : whether it is convex; else a fit is a stationary point, without a duality gap
    separable : whether it is a sum over coefficients
    shape, vector : names of its further fields that travel, if any: a number, and a vector over the
        columns
    strength : its strength; a path changes that alone
    weights : what each coefficient pays in units of the strength; zero is unpenalised, infinite
        keeps a coefficient at zero, None is one for all

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import L1
    >>> L1(0.5, weights=np.array([1.0, 0.0])).prox(np.array([2.0, 2.0]), 1.0)
    array([1.5, 2. ])
    """

    name: ClassVar[str]
    convex: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    shape: ClassVar[str] = ""
    vector: ClassVar[str] = ""
    strength: float
    weights: Array | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.strength) and self.strength >= 0):
            raise FedLassoError(
                f"the penalty is {self.strength}; give a finite number, zero or more"
            )

    def __repr__(self) -> str:
        """Everything that tells two penalties apart, in one short line."""
        text = f"{type(self).__name__}({self.strength!r}"
        for name in ("weights", self.vector):
            if name and (values := getattr(self, name)) is not None:
                text += f", {name} {hashlib.sha256(values.tobytes()).hexdigest()[:16]}"
        if self.shape:
            text += f", {self.shape} {getattr(self, self.shape)!r}"
        return text + (")" if self.bounds is None else f", {self.bounds!r})")

    @property
    def lam(self) -> float:
        """What a coefficient of weight one pays per unit next to zero."""
        return self.strength

    @property
    def bounds(self) -> Bounds | None:
        """Ranges that coefficients may not leave, if any."""
        return None

    @property
    def uniform(self) -> bool:
        """Whether all coefficients pay alike."""
        return self.weights is None

    @property
    def unbounded(self) -> bool:
        """Whether coefficients have no bounds."""
        return self.bounds is None

    @property
    def ridgeless(self) -> bool:
        """Whether it has no smooth part."""
        return True

    @property
    def plain(self) -> bool:
        """Whether it is the Lasso's: one soft threshold for all, no ridge and no bounds."""
        return False

    @property
    def certifiable(self) -> bool:
        """Whether a duality gap bounds the distance to the best possible objective."""
        return self.convex and self.offers("dual_limit")

    def offers(self, capability: Capability) -> bool:
        """Return whether it has a capability: a method of its own, or a property that is true."""
        own = getattr(type(self), capability)
        if callable(own):
            return own is not getattr(Penalty, capability)
        return bool(getattr(self, capability))

    @abstractmethod
    def value(self, b: Array) -> float:
        """Return what coefficients pay."""

    def prox(self, v: Array, step: float | Array) -> Array:
        """Return argmin_b |b - v|^2 / 2 + step * value(b), each column of v with its own step."""
        raise self._lacks("proximal step")

    def dual_limit(self, gradient: Array) -> float:
        """Return the largest s for which the conjugate of -s * gradient is finite.

        The gradient is the loss's. Dual points are gradients scaled down to that; a coefficient
        that pays nothing and has no bound allows none but a zero gradient.
        """
        raise self._lacks("dual limit")

    def conjugate(self, z: Array) -> float:
        """Return the largest value of z'b less what b pays, for z within the dual limit."""
        return 0.0

    def thresholds(self, p: int) -> Array:
        """Return what every one of p coefficients pays per unit, where that is all but a ridge."""
        raise self._lacks("soft thresholds")

    def smooth_part(self, p: int) -> Array | None:
        """Return the ridge of every one of p coefficients, which costs half its square."""
        return None

    @property
    def nonsmooth(self) -> "Penalty":
        """The penalty without its smooth part."""
        return self

    def free(self, p: int) -> NDArray[np.bool_]:
        """Return which of p coefficients pay nothing."""
        if self.weights is None:
            return np.full(p, self.strength == 0.0)
        return np.asarray(self.weights == 0.0)

    def at(self, strength: float) -> Self:
        """Return the same penalty with another strength."""
        return replace(self, strength=float(strength))

    def largest(self, slopes: Array) -> float:
        """Return the smallest strength that keeps all coefficients which pay at zero."""
        raise self._lacks("largest useful strength")

    def scaled(self, factors: Array) -> Self:
        """Return the penalty of coefficients that times `factors` are the ones with bounds."""
        return self

    def without_bounds(self) -> Self:
        """Return the same penalty on coefficients that have no bounds."""
        return self

    def _lacks(self, what: str) -> FedLassoError:
        return FedLassoError(f"the penalty {self.name!r} has no {what}")
