"""The interface of a penalty: a strength times a function of the coefficients.

Every penalty has a `value`. It overrides the other capabilities that it offers, and a procedure
names those that it needs.
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
    name : the name in settings and messages
    convex : if it is not convex, a fit is a stationary point without a duality gap
    separable : whether it is a sum over coefficients
    shape, vector : names of further fields in messages, if any: a number, and a vector over the
        columns
    strength : the penalty parameter that a path varies
    weights : penalty factors of the coefficients; zero is unpenalised, infinite keeps a coefficient
        at zero, None is one for all

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
        text = f"{type(self).__name__}({self.strength!r}"
        for name in ("weights", self.vector):
            if name and (values := getattr(self, name)) is not None:
                text += f", {name} {hashlib.sha256(values.tobytes()).hexdigest()[:16]}"
        if self.shape:
            text += f", {self.shape} {getattr(self, self.shape)!r}"
        return text + (")" if self.bounds is None else f", {self.bounds!r})")

    @property
    def lam(self) -> float:
        """The L1 part of the strength: the slope at zero of a coefficient of weight one."""
        return self.strength

    @property
    def bounds(self) -> Bounds | None:
        """Bounds on the coefficients, if any."""
        return None

    @property
    def uniform(self) -> bool:
        """Whether all coefficients have the same weight."""
        return self.weights is None

    @property
    def unbounded(self) -> bool:
        return self.bounds is None

    @property
    def ridgeless(self) -> bool:
        """Whether it has no smooth part."""
        return True

    @property
    def plain(self) -> bool:
        """Whether it is the plain Lasso's: no weights, no ridge and no bounds."""
        return False

    @property
    def certifiable(self) -> bool:
        return self.convex and self.offers("dual_limit")

    def offers(self, capability: Capability) -> bool:
        """Return whether it overrides the method of that name, or the property is true."""
        own = getattr(type(self), capability)
        if callable(own):
            return own is not getattr(Penalty, capability)
        return bool(getattr(self, capability))

    @abstractmethod
    def value(self, b: Array) -> float:
        """Return the penalty of b."""

    def prox(self, v: Array, step: float | Array) -> Array:
        """Return argmin_b |b - v|^2 / 2 + step * value(b), with one step per column of v."""
        raise self._lacks("proximal step")

    def dual_limit(self, gradient: Array) -> float:
        """Return the largest s for which the conjugate of -s * (gradient of the loss) is finite.

        An unpenalised coefficient without bounds needs a zero gradient.
        """
        raise self._lacks("dual limit")

    def conjugate(self, z: Array) -> float:
        """Return the maximum of z'b - value(b) over b, for z within the dual limit."""
        return 0.0

    def thresholds(self, p: int) -> Array:
        """Return the soft thresholds of p coefficients, if the penalty is L1 plus a ridge."""
        raise self._lacks("soft thresholds")

    def steepness(self, slopes: Array) -> Array:
        """Return slopes at zero as multiples of those that the penalty holds at zero."""
        limits = self.thresholds(slopes.size)
        out = np.full(slopes.size, np.inf)
        return np.asarray(np.divide(np.abs(slopes), limits, out=out, where=limits > 0))

    def whole_groups(self, on: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return positions with those of all coefficients that enter a model with them."""
        return on

    def smooth_part(self, p: int) -> Array | None:
        """Return the ridge penalties of p coefficients, each on half the square, if any."""
        return None

    @property
    def nonsmooth(self) -> "Penalty":
        return self

    def free(self, p: int) -> NDArray[np.bool_]:
        """Return which of p coefficients are unpenalised."""
        weights = np.ones(p) if self.weights is None else self.weights
        return np.asarray(np.isfinite(weights) if self.strength == 0.0 else weights == 0.0)

    def at(self, strength: float) -> Self:
        return replace(self, strength=float(strength))

    def largest(self, slopes: Array) -> float:
        """Return the smallest strength at which all penalised coefficients are zero."""
        raise self._lacks("largest useful strength")

    def scaled(self, factors: Array) -> Self:
        """Return the penalty of coefficients in other units: bounds are divided by `factors`."""
        return self

    def without_bounds(self) -> Self:
        return self

    def _lacks(self, what: str) -> FedLassoError:
        return FedLassoError(f"the penalty {self.name!r} has no {what}")
