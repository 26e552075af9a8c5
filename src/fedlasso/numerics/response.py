"""The response of a sample: a value, a weight and an offset per row; and who is at risk when."""

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
    """What the rows of a sample answer.

    Attributes
    ----------
    y : the response. A survival time is positive where it ended in an event and has a minus sign
        where it was censored; so zero may have one too.
    weights : how much each row counts; one by default
    offset : what is added to each row's linear predictor; zero by default

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics import Response
    >>> Response.of(np.array([3.0, -5.0])).events
    array([ True, False])
    """

    y: Array
    weights: Array
    offset: Array

    @classmethod
    def of(cls, y: Any, weights: Any = None, offset: Any = None) -> Response:
        """Return a response whose weights and offsets may be left out."""
        response = np.ascontiguousarray(y, dtype=np.float64)
        shape = response.shape
        return cls(
            response,
            np.ones(shape) if weights is None else np.ascontiguousarray(weights, np.float64),
            np.zeros(shape) if offset is None else np.ascontiguousarray(offset, np.float64),
        )

    @property
    def plain(self) -> bool:
        """Whether all rows count alike and none has an offset."""
        return bool((self.weights == 1.0).all() and not self.offset.any())

    @property
    def weight(self) -> float:
        """What all rows weigh together."""
        return float(self.weights.sum())

    def take(self, rows: Any, share: float = 1.0, mean: float = 0.0) -> Response:
        """Return some rows, or all if that is None, their weights times `share`, y about a mean."""
        if rows is None:
            rows = slice(None)
        return Response(self.y[rows] - mean, share * self.weights[rows], self.offset[rows])

    @property
    def times(self) -> Array:
        """Survival times."""
        return np.abs(self.y)

    @property
    def events(self) -> NDArray[np.bool_]:
        """Which survival times ended in an event."""
        return ~np.signbit(self.y)

    @cached_property
    def risk_sets(self) -> RiskSets:
        """Who was at risk at every time of an event."""
        return RiskSets(self.times, self.events, self.weights)


class RiskSets:
    """Rows in the order of their times, and the times of events.

    Attributes
    ----------
    order : array (m,), the rows by time
    start : array (G,), for each time of an event the first place in that order at risk then
    group : array (m,), for each row in order the last time of an event no later than its own; -1
        before the first
    deaths : places in that order whose time ended in an event
    death_group : for each of those, which time that is
    counts, masses : array (G,), number and weight of the events at each time
    """

    def __init__(self, times: Array, events: NDArray[np.bool_], weights: Array) -> None:
        self.order: Places = np.argsort(times, kind="stable")
        t = times[self.order]
        dead = events[self.order]
        moments = np.unique(t[dead])
        self.start: Places = np.searchsorted(t, moments, side="left")
        self.group: Places = np.searchsorted(moments, t, side="right") - 1
        self.deaths: Places = np.flatnonzero(dead)
        self.death_group: Places = self.group[self.deaths]
        self.counts: Places = np.bincount(self.death_group, minlength=len(moments))
        mass = weights[self.order][self.deaths]
        self.masses: Array = np.bincount(self.death_group, mass, len(moments)).astype(np.float64)
        self.moments: Array = moments

    @property
    def size(self) -> int:
        """Number of times at which there was an event."""
        return len(self.moments)

    @cached_property
    def pairs(self) -> tuple[Places, Places]:
        """All pairs of events at the same time: the place of one by time, and the other."""
        pairs = [np.zeros((2, 0), np.int64)]
        at = 0
        for count in self.counts.tolist():
            pairs.append(at + np.indices((count, count)).reshape(2, -1))
            at += count
        one, other = np.concatenate(pairs, axis=1)
        return one, other
