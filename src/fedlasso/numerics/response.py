"""The response of a sample: a value, a weight and an offset per row; and Cox's risk sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.machine import Array

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Response:
    """The responses of a sample's rows.

    A survival time in y is positive if it ended in an event and has a minus sign if it was
    censored; a time of zero may have one too.
    """

    y: Array
    weights: Array
    offset: Array  # added to the linear predictors

    @classmethod
    def of(cls, y: Any, weights: Any = None, offset: Any = None) -> Response:
        """Return a response; weights are one and offsets zero by default."""
        weights = np.ones(np.shape(y)) if weights is None else weights
        offset = np.zeros(np.shape(y)) if offset is None else offset
        return cls(*(np.ascontiguousarray(each, np.float64) for each in (y, weights, offset)))

    @property
    def plain(self) -> bool:
        """Whether all weights are one and all offsets zero."""
        return bool((self.weights == 1.0).all() and not self.offset.any())

    @property
    def weight(self) -> float:
        return float(self.weights.sum())

    def take(self, rows: Any, scale: float = 1.0, mean: float = 0.0) -> Response:
        """Return some rows (None: all), with weights times `scale` and `mean` subtracted from y."""
        if rows is None:
            rows = slice(None)
        return Response(self.y[rows] - mean, scale * self.weights[rows], self.offset[rows])

    @property
    def times(self) -> Array:
        return np.abs(self.y)

    @property
    def events(self) -> NDArray[np.bool_]:
        return ~np.signbit(self.y)

    @cached_property
    def risk_sets(self) -> RiskSets:
        return RiskSets(self.times, self.events, self.weights)


class RiskSets:
    """Rows ordered by time, and the G distinct event times with the rows at risk."""

    def __init__(self, times: Array, events: NDArray[np.bool_], weights: Array) -> None:
        self.order: Places = np.argsort(times, kind="stable")
        t = times[self.order]
        dead = events[self.order]
        moments = np.unique(t[dead])
        # (G,), position in that order of the first row at risk at each event time
        self.start: Places = np.searchsorted(t, moments, side="left")
        # (m,), for each row in order the last event time no later than its own, or -1
        self.group: Places = np.searchsorted(moments, t, side="right") - 1
        # positions in that order of the events, and their event times
        self.deaths: Places = np.flatnonzero(dead)
        self.death_group: Places = self.group[self.deaths]
        # (G,), number and total weight of the events at each time
        self.counts: Places = np.bincount(self.death_group, minlength=len(moments))
        mass = weights[self.order][self.deaths]
        self.masses: Array = np.bincount(self.death_group, mass, len(moments)).astype(np.float64)
        self.moments: Array = moments

    @property
    def size(self) -> int:
        """Number of distinct event times."""
        return len(self.moments)

    @cached_property
    def pairs(self) -> tuple[Places, Places]:
        """All pairs of events at the same time, as positions among the events in order of time."""
        pairs = [np.zeros((2, 0), np.int64)]
        at = 0
        for count in self.counts.tolist():
            pairs.append(at + np.indices((count, count)).reshape(2, -1))
            at += count
        one, other = np.concatenate(pairs, axis=1)
        return one, other
