"""The penalty of the group Lasso (Yuan and Lin, 2006)."""

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import FedLassoError
from fedlasso.numerics.machine import Array
from fedlasso.numerics.penalties.penalty import Penalty


@dataclass(frozen=True, eq=False, repr=False)
class GroupL1(Penalty):
    """The group Lasso's penalty, strength * sum_g weight_g sqrt(size_g) |b_g|_2.

    `groups` has a number per coefficient; coefficients with the same number are one group, which
    enters or leaves a model as a whole. All have the group's weight. A group of one is penalised as
    by the Lasso.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics import GroupL1
    >>> GroupL1(1.0, groups=np.array([0, 1, 1])).prox(np.array([1.5, 3.0, 1.0]), 1.0).round(3)
    array([0.5  , 1.658, 0.553])
    """

    name: ClassVar[str] = "group l1"
    separable: ClassVar[bool] = False
    vector: ClassVar[str] = "groups"
    _: KW_ONLY
    groups: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is None:
            return
        for place in self.places:
            if (self.weights[place] != self.weights[place[0]]).any():
                raise FedLassoError("columns of one group must have the same penalty factor")

    @cached_property
    def places(self) -> list[NDArray[np.int64]]:
        """Positions of the coefficients of each group."""
        order = np.argsort(self.groups, kind="stable")
        ends = np.flatnonzero(np.diff(self.groups[order])) + 1
        return np.split(order, ends)

    @cached_property
    def unit_limits(self) -> Array:
        """Largest norm of each group's slopes at zero, for a strength of one."""
        sizes = np.sqrt([place.size for place in self.places])
        if self.weights is None:
            return np.asarray(sizes)
        return np.asarray(sizes * [self.weights[place[0]] for place in self.places])

    @property
    def limits(self) -> Array:
        """Largest norm of each group's slopes at which the group stays at zero."""
        return self.strength * self.unit_limits

    def norms(self, values: Array) -> Array:
        """Return the norm of each group's values."""
        return np.array([np.linalg.norm(values[place]) for place in self.places])

    def part(self, on: NDArray[np.int64]) -> Self:
        """Return the penalty of some coefficients, which must be whole groups."""
        weights = None if self.weights is None else self.weights[on]
        return replace(self, weights=weights, groups=self.groups[on])

    def whole_groups(self, on: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return positions with those of all other coefficients of their groups."""
        return np.flatnonzero(np.isin(self.groups, self.groups[on]))

    def value(self, b: Array) -> float:
        return float(self.limits @ self.norms(b))

    def prox(self, v: Array, step: float | Array) -> Array:
        out = np.array(v, np.float64)
        for place, limit in zip(self.places, self.limits, strict=True):
            norm = np.linalg.norm(out[place], axis=0)
            left = np.maximum(norm - limit * step, 0.0)
            out[place] *= np.divide(left, norm, out=np.zeros_like(left), where=norm > 0)
        return out

    def dual_limit(self, gradient: Array) -> float:
        norms = self.norms(gradient)
        on = norms > 0
        return float((self.limits[on] / norms[on]).min(initial=np.inf))

    def steepness(self, slopes: Array) -> Array:
        found = np.full(slopes.size, np.inf)
        for place, norm, limit in zip(self.places, self.norms(slopes), self.limits, strict=True):
            if limit > 0:
                found[place] = norm / limit
        return found

    def largest(self, slopes: Array) -> float:
        on = self.unit_limits > 0
        return float((self.norms(slopes)[on] / self.unit_limits[on]).max(initial=0.0))
