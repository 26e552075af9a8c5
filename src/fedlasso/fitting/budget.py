"""What each site may send for a fit: vectors, numbers, bytes and round trips."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Ledger

Panel = Literal["upload", "joint", "work"]
PANELS: tuple[Panel, ...] = ("upload", "joint")
# Vectors of p numbers that each site may send by default, where gradients choose.
GRADIENTS = 300
# The same for a loss without second moments, unless `MOST_BYTES` are more.
CURVED_GRADIENTS = 1500
# Bytes that each site may send by default.
MOST_BYTES = 64 << 20
# Round trips of the cheapest fit, and those that a search leaves for the fit to all rows.
FEWEST_TRIPS = 3
LAST_TRIPS = 8


class TooFewUploads(FedLassoError):
    """Standardising leaves too few uploads for a fit."""


class Budget:
    """Vectors of p numbers that each site may send, None until a plan sets it, and has `spent`.

    Numbers, bytes and round trips are read from the ledger.
    """

    def __init__(
        self, ledger: Ledger, vectors: float | None = None, whole: Budget | None = None
    ) -> None:
        check_limit("uploads", vectors)
        self.vectors = np.inf if vectors is None else float(vectors)
        self.spent = 0.0
        self._whole = whole
        self._ledger = ledger
        self._before = ledger.costs

    @property
    def left(self) -> float:
        """Vectors that each site may still send."""
        return self.vectors - self.spent

    @property
    def trips_left(self) -> float:
        """Round trips that are still allowed, whole fit and inference together."""
        return self._ledger.trips_left

    @property
    def bytes(self) -> int:
        """Bytes sent by the site that has sent most."""
        return (self._ledger.costs - self._before).most_sent

    @property
    def numbers(self) -> int:
        """Numbers sent by that site."""
        return self.bytes // 8

    @property
    def round_trips(self) -> int:
        """Exchanges with the sites, each with one or more questions."""
        return self._ledger.costs.trips - self._before.trips

    def spend(self, vectors: float) -> None:
        """Record vectors that each site has sent, here and in the budget that this is part of."""
        self.spent += vectors
        if self._whole is not None:
            self._whole.spend(vectors)

    def part(self, vectors: float) -> Budget:
        """Return a budget of so many vectors, whose spending counts here as well."""
        return Budget(self._ledger, max(int(vectors), 1), self)

    def limit(self, vectors: float) -> None:
        """Set how many vectors each site may send in all, unless that is set."""
        if self.vectors == np.inf:
            self.vectors = vectors

    def require_trips(self, trips: int, what: str) -> None:
        """Refuse to start what takes more round trips than are left."""
        if self.trips_left < trips:
            raise FedLassoError(
                f"`round_trips` leaves {self.trips_left:.0f}, and {what} takes {trips} or more; "
                "give more"
            )

    def require(self, vectors: float) -> None:
        """Refuse to go on with fewer than two vectors."""
        if vectors < 2:
            raise TooFewUploads(
                f"`uploads` is {self.vectors:.0f}, standardising takes {np.ceil(self.spent):.0f}, "
                "and the rest is too few to tune; give more"
            )


def vectors_within_bytes(p: int) -> int:
    """Return how many vectors of p numbers each site may send by default for a curved loss."""
    return max(CURVED_GRADIENTS, MOST_BYTES // (8 * p))


def check_limit(name: str, limit: float | None) -> None:
    """Refuse a limit that is not a positive whole number."""
    if limit is not None and (not isinstance(limit, int | np.integer) or limit < 1):
        raise FedLassoError(f"`{name}` is {limit!r}; give a whole number, 1 or more")


def rounds_within(budget: int, panel: Panel, paths: int, epochs: int) -> int:
    """Return the rounds of a path: floor(B/q) by uploads, floor(5B/(qE)) by work, or both."""
    uploads = budget // paths
    work = 5 * budget // (paths * epochs)
    limits = {"upload": uploads, "work": work, "joint": min(uploads, work)}
    if panel not in limits:
        raise FedLassoError(f"no panel is called {panel!r}; use one of {', '.join(limits)}")
    return limits[panel]
