"""Held-out errors along the penalties of a joint search, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.split_points import TINY, JudgedSplit, SplitPoints
from fedlasso.fitting.tuning import CandidateErrors, average_folds
from fedlasso.fitting.validation import Rule
from fedlasso.sites import INTERCEPT

# A fit counts if its gap, on the scale of errors, is at most this fraction of the standard error;
# or, where nothing is decided, of the decrease of the error.
CLOSE = 0.2
DECIDED = 0.2
DROP = 1.0
# Mean gap of all splits; a single one may be so many times as large.
WORST = 4.0
# After so many round trips about a penalty, each further one allows gaps so many times as large.
PATIENT = 1
LOOSER = 1.5
# A path ends after so many errors above the smallest, or if the last two penalties lower it by less
# than this fraction of its standard error.
RISEN = 2
FLAT = 0.05
# Penalties closer than this ratio have none between them.
BETWEEN = 0.6
# Fits at a penalty make progress if their mean excess falls below this fraction of the least.
PROGRESS = 0.8


@dataclass
class Stall:
    """Round trips at one penalty since its fits last came clearly closer to their optima.

    Attributes
    ----------
    front : place of the penalty on the path
    least : smallest excess of its fits when they came closer
    trips : round trips since then
    """

    front: int = -1
    least: float = np.inf
    trips: int = 0

    def count(self, front: int, excess: float) -> None:
        """Count one more round trip, after which fits at a penalty have this excess."""
        if front > self.front or excess < PROGRESS * self.least:
            self.front = front
            self.least = excess
            self.trips = 0
        else:
            self.trips += 1


@dataclass(eq=False)
class ErrorPath:
    """Errors of the best models so far along decreasing penalties.

    Attributes
    ----------
    points : the models on every split
    grid : the penalties
    rule : how one is chosen
    between : penalties between these, tried beside the chosen one
    """

    points: SplitPoints
    grid: list[float]
    rule: Rule
    between: set[float] = field(default_factory=set)
    counts: dict[tuple[float, bool], int] = field(default_factory=dict)

    def count(self, window: Sequence[float], near: Sequence[float]) -> None:
        """Count a round trip about the first unsettled penalty, and about those that may decide."""
        for key in [*((s, False) for s in window[:1]), *((s, True) for s in near)]:
            self.counts[key] = self.counts.get(key, 0) + 1

    @property
    def splits(self) -> list[JudgedSplit]:
        return self.points.splits

    def front(self) -> int:
        """Return the place of the first penalty of the path that is not settled."""
        unsettled = (k for k, strength in enumerate(self.grid) if not self.is_settled(strength))
        return next(unsettled, len(self.grid))

    def errors(self, strength: float) -> tuple[float, float]:
        """Return the mean error of the best points so far, and its standard error."""
        best = self.points.best(strength)
        if len(best) == 1:
            return best[0].error, best[0].se
        each = np.array([[point.error] for point in best])
        error, se = average_folds(each, self.points.fractions)
        return float(error[0]), float(se[0])

    def allowed(self, strength: float, strictly: bool = False) -> float:
        """Return the gap that fits at a penalty may have; `strictly` if they may decide."""
        error, se = self.errors(strength)
        late = self.counts.get((strength, strictly), 0) - PATIENT
        # An error is twice a loss.
        scale = (LOOSER**late if late > 0 else 1.0) / 2
        if strictly:
            return DECIDED * se * scale
        above = [other for other in self.grid if other > strength]
        drop = self.errors(min(above))[0] - error if above else 0.0
        return max(CLOSE * se, DROP * drop) * scale

    def is_settled(self, strength: float, strictly: bool = False) -> bool:
        """Return whether the fits at a penalty are close enough."""
        penalty = self.points.form.at(strength)
        allowed = self.allowed(strength, strictly)
        # Better bounds take longer, and often these suffice.
        for enough in (allowed, 0.0):
            gaps = np.array([split.points.gap(penalty, enough) for split in self.splits])
            if gaps @ self.points.fractions <= allowed and gaps.max() <= WORST * allowed:
                return True
        return False

    def excess(self, front: int) -> float:
        """Return the mean gap of the fits at a place of the path, over the allowed gap."""
        if front == len(self.grid):
            return 0.0
        penalty = self.points.form.at(self.grid[front])
        gaps = np.array([split.points.gap(penalty) for split in self.splits])
        return float(gaps @ self.points.fractions / max(self.allowed(self.grid[front]), TINY))

    def has_risen(self, front: int) -> bool:
        """Return whether the settled errors have passed their minimum, or hardly change."""
        errors = [self.errors(strength)[0] for strength in self.grid[:front]]
        if not errors:
            return False
        # Sites round sums of errors, so several may be the smallest: the last of them counts.
        best = len(errors) - 1 - int(np.argmin(errors[::-1]))
        after = errors[best + 1 :] + self._errors_ahead(front)
        if len(after) >= RISEN and min(after) > errors[best]:
            return True
        se = self.errors(self.grid[front - 1])[1]
        return front > 3 and abs(errors[-3] - errors[-1]) < FLAT * se

    def turns(self, front: int) -> bool:
        """Return whether the error seems to rise."""
        least = min(self.errors(strength)[0] for strength in self.grid[:front])
        ahead = self._errors_ahead(front)
        return least < self.errors(self.grid[front - 1])[0] or least < min(ahead, default=least)

    def _errors_ahead(self, front: int) -> list[float]:
        """Return errors at penalties that are tried and not settled.

        Such fits have seen less of the rows that they train on. If their error is above the
        minimum, so it will be once they are settled.
        """
        return [
            self.errors(strength)[0]
            for above, strength in pairwise(self.grid[front - 1 : front + RISEN])
            if all(own.points.differ(self.points.form, above, strength) for own in self.splits)
        ]

    def beside_lowest(self, end: int) -> list[float]:
        """Return penalties half way to the neighbours of the lowest error so far, settled or not.

        `end` is how many penalties of the path were tried. There are none if the lowest error is at
        the end.
        """
        tried = self.grid[:end]
        lowest = int(np.argmin([self.errors(strength)[0] for strength in tried]))
        around = tried[max(lowest - 1, 0) : lowest + 2]
        return [float(np.sqrt(a * b)) for a, b in pairwise(around)] if lowest + 1 < end else []

    def surround(self, judged: CandidateErrors) -> list[float]:
        """Return unsettled penalties beside the chosen one, new ones half way to others included.

        Beside the one with the smallest error too: the choice may depend on it.
        """
        near: set[float] = set()
        known = judged.penalties.tolist()
        for rule in {self.rule, "min"}:
            place = judged.validation.select(rule)
            around = known[max(place - 1, 0) : place + 2]
            new = {float(np.sqrt(a * b)) for a, b in pairwise(around) if b < BETWEEN * a}
            self.between |= new
            near |= {*around, *new}
        return [s for s in sorted(near, reverse=True) if not self.is_settled(s, strictly=True)]

    def judge(self, front: int) -> CandidateErrors:
        """Return the errors of the penalties that are settled."""
        between = [strength for strength in self.between if self.is_settled(strength)]
        settled = sorted([*self.grid[: max(front, 1)], *between], reverse=True)
        fits = [self.points.best(strength) for strength in settled]
        ends_in_ones = self.points.whole.ledger.columns[-1] == INTERCEPT
        described = [
            tuple(
                point.as_fit(self.points.form.at(strength), split.points.problem.m, ends_in_ones)
                for point, split in zip(own, self.splits, strict=True)
            )
            for strength, own in zip(settled, fits, strict=True)
        ]
        each = np.array([[point.error for point in own] for own in fits])
        single = len(self.splits) == 1
        return CandidateErrors(
            LASSO,
            np.array(settled),
            each.reshape(len(settled), len(self.splits)).T[:, None, :],
            np.array([split.rows for split in self.splits]),
            fits=tuple(described),
            single_se=np.array([own[0].se for own in fits]) if single else None,
        )
