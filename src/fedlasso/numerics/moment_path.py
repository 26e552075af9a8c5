"""The Lasso path from second moments alone, and least squares on each of its supports."""

from dataclasses import dataclass

import numpy as np

from fedlasso.numerics.descent import Lasso, descend
from fedlasso.numerics.homotopy import ActiveColumns, advance, homotopy_at, restart_at
from fedlasso.numerics.machine import Array, one_thread
from fedlasso.numerics.moments import Normal

# The duality gap to reach, as a fraction of the response's variance.
GAP = 1e-9
# The gap accepted if columns are so nearly dependent that no solver reaches that one.
ENOUGH = 1e-5
# Maximum number of sweeps at a penalty where the homotopy alone does not reach it.
SWEEPS = 1000


@dataclass(frozen=True, eq=False)
class MomentPath:
    """The Lasso at decreasing penalties, and least squares on each of its supports.

    Where nearly dependent columns leave no accurate digits, the last good fits are repeated.
    `lasso` and `refits` are (p, L), a column per penalty.
    """

    penalties: Array
    lasso: Array
    refits: Array


class Walk:
    """A Lasso path that is followed down to some penalties, and can be continued later."""

    def __init__(self, normal: Normal) -> None:
        norms = np.ascontiguousarray(np.diagonal(normal.gram))
        gram = np.ascontiguousarray(normal.gram)
        zero = np.zeros(normal.p)
        self.normal = normal
        self._score = np.ascontiguousarray(normal.score)
        self._columns = ActiveColumns.of(np.empty((0, 0)), gram, norms)
        self._state = homotopy_at(
            self._columns, normal.largest_penalty, zero, self._score, normal.rank
        )
        # The last Lasso and its refit, and the duality gap to reach.
        self._last = (zero, zero)
        self._wanted = GAP * normal.variance

    def follow(self, penalties: Array) -> MomentPath:
        """Continue to decreasing penalties, none larger than the last one."""
        lasso = np.zeros((penalties.size, self.normal.p))
        refits = np.zeros_like(lasso)
        at = 0
        ahead = penalties.size
        while at < penalties.size and self._wanted >= 0.0:
            part = slice(at, at + ahead)
            lasso[part] = refits[part] = 0.0
            targets = penalties[part]
            advance(self._columns, self._state, targets, self._score, lasso[part], refits[part])
            failed = np.flatnonzero(~(self._gaps(lasso[part], targets) <= self._wanted))
            good = int(failed[0]) if failed.size else targets.size
            if good:
                self._last = (lasso[at + good - 1].copy(), refits[at + good - 1].copy())
            at += good
            ahead *= 2
            if failed.size:
                self._repair(float(penalties[at]), lasso[at], refits[at])
                at += 1
                # Penalties after this one may fail too: do not solve all of them each time.
                ahead = 1
        # If no accurate digits are left, repeat the last fits.
        lasso[at:], refits[at:] = self._last
        return MomentPath(penalties, lasso.T, refits.T)

    @one_thread()
    def _gaps(self, lasso: Array, penalties: Array) -> Array:
        """Return the duality gaps of fits, one in each row."""
        correlation = self._score - lasso @ self._columns.G
        against = self.normal.variance - lasso @ self._score
        residual = np.maximum(against - (lasso * correlation).sum(axis=1), 0.0)
        largest = np.abs(correlation).max(axis=1)
        s = np.divide(against, residual, out=np.zeros_like(against), where=residual > 0.0)
        over = s * largest > penalties
        np.divide(penalties, largest, out=s, where=over)
        dual = np.maximum(s * (2 * against - s * residual) / 2, 0.0)
        return np.asarray(residual / 2 + penalties * np.abs(lasso).sum(axis=1) - dual)

    def _gap(self, b: Array, lam: float) -> float:
        return float(self._gaps(b[None], np.array([lam]))[0])

    def _repair(self, lam: float, lasso: Array, refit: Array) -> None:
        """Fill in the best fit at a penalty where the homotopy did not reach the duality gap.

        Coordinate descent from the last fit may reach it. If no fit does, the last one is repeated.
        """
        b = lasso
        gap = self._gap(b, lam)
        if self._wanted == GAP * self.normal.variance:
            swept, reached = self._sweep(lam)
            if not reached:
                # Sweeps are slow and would fail at later penalties too: do not try again.
                self._wanted = ENOUGH * self.normal.variance
            swept_gap = self._gap(swept, lam)
            if not gap <= swept_gap:
                b, gap = swept, swept_gap
        if gap <= self._wanted:
            restart_at(self._columns, self._state, lam, b)
            rows = np.zeros((2, 1, b.size))
            advance(self._columns, self._state, np.array([lam]), self._score, *rows)
            self._last = (b.copy(), rows[1, 0])
        else:
            self._wanted = -1.0
        lasso[:], refit[:] = self._last

    def _sweep(self, lam: float) -> tuple[Array, bool]:
        """Return coordinate descent from the last fit, and whether its gap reached `GAP`."""
        b = self._last[0].copy()
        gram = self._columns.G
        problem = Lasso.of(gram, np.diagonal(gram).copy(), self._score, lam)
        for _ in range(SWEEPS // 10):
            for _ in range(10):
                descend(problem, b, 0.0, 1)
            if self._gap(b, lam) <= GAP * self.normal.variance:
                return b, True
        return b, False


def solve_path(normal: Normal, penalties: Array) -> MomentPath:
    """Return the Lasso at decreasing penalties, and least squares on each of its supports."""
    return Walk(normal).follow(penalties)
