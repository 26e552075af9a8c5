"""Lower and upper bounds on coefficients."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.numerics.machine import ROUNDING, Array


@dataclass(frozen=True, eq=False)
class Bounds:
    """A range for every coefficient. It contains zero and may be infinite on either side."""

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        if not ((self.lower <= 0).all() and (self.upper >= 0).all()):
            raise FedLassoError(
                "the range of every coefficient must include zero; give lower bounds of at most 0 "
                "and upper bounds of at least 0"
            )

    def __repr__(self) -> str:
        digest = hashlib.sha256(self.lower.tobytes() + self.upper.tobytes()).hexdigest()
        return f"bounds {digest[:16]}"

    def part(self, on: Any) -> Bounds:
        return Bounds(self.lower[on], self.upper[on])

    def scaled(self, factors: Array) -> Bounds:
        """Return the bounds divided by `factors`, for coefficients in other units.

        A factor of zero marks a coefficient that stays at zero and needs no bound.
        """
        on = factors > 0
        lower = np.divide(self.lower, factors, out=np.full(len(on), -np.inf), where=on)
        upper = np.divide(self.upper, factors, out=np.full(len(on), np.inf), where=on)
        return Bounds(lower, upper)

    def clip(self, v: Array) -> Array:
        """Return the nearest coefficients within bounds, for every column of v."""
        return np.asarray(np.clip(v.T, self.lower, self.upper).T)

    def snap(self, b: Array) -> Array:
        """Return b within bounds, and at a bound where only rounding keeps it away."""
        near = self.clip(b * (1 + ROUNDING))
        return np.where((near == self.lower) | (near == self.upper), near, b)

    def hold(self, b: Array) -> bool:
        return bool(((b >= self.lower) & (b <= self.upper)).all())

    def toward(self, pull: Array) -> Array:
        """Return the bound in the direction of the sign of `pull`."""
        return np.where(pull > 0, self.upper, self.lower)

    def allowed(self, b: Array, pull: Array) -> Array:
        """Return `pull`, with zeros where b is already at the bound in that direction."""
        return np.where(b == self.toward(pull), 0.0, pull)

    def conjugate(self, z: Array, thresholds: Array, ridges: Array) -> float:
        """Return max over b within bounds of z'b - sum_k (thresholds_k |b_k| + ridges_k b_k^2 / 2).

        It is finite if every coefficient has a bound, a ridge, or |z_k| <= thresholds_k.
        """
        beyond = np.maximum(np.abs(z) - thresholds, 0.0)
        room = np.abs(self.toward(z))
        ends = np.where(np.isfinite(room), room, 0.0)
        size = np.minimum(np.divide(beyond, ridges, out=ends, where=ridges > 0), room)
        return float((beyond * size - ridges / 2 * size**2).sum())
