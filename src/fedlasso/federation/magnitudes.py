"""How large totals can be, as powers of two: what a grid of whole numbers must reach to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics import find_loss

# Bits of one word and of two that a number within its bound takes; the rest is for adding up.
FINE = 61
WIDE = 110
# Bits below the size of a whole vector of residuals that sums of them are told to. Rows are rounded
# 52 bits below their largest term, so what rounding does to one row is far below a step.
COARSE = 48


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """Powers of two that bound the numbers of a view, over the training rows of all sites.

    By the inequality of Cauchy and Schwarz they bound every sum of products, at all sites together
    and so at each.

    Attributes
    ----------
    rows : of the square root of the number of rows
    columns : array (p,), of the norm of every column
    response : of the norm of the response
    reach : of the norm of the residuals of any model in the question, and of all that is added up
        on the way to them
    terms : array (p,), of what a column adds at a coefficient of one before it is centred
    curved : whether slopes stay within the size of the response wherever a model leads, as those of
        all losses but least squares do
    """

    rows: int
    columns: NDArray[np.int64]
    response: int
    reach: int
    terms: NDArray[np.int64]
    curved: bool = False

    @classmethod
    def unknown(cls, p: int, reach: int = 0) -> Magnitudes:
        """Return those of p columns before anything is known of them."""
        nothing = np.zeros(p, np.int64)
        return cls(0, nothing, 0, reach, nothing)

    def of_loss(self, loss: str) -> Magnitudes:
        """Return the same where the sites have that loss."""
        return replace(self, curved=not find_loss(loss).quadratic)

    @property
    def slopes(self) -> int:
        """The power that bounds the norm of slopes, residuals for least squares."""
        return max(self.response, self.rows) if self.curved else self.reach

    @property
    def products(self) -> NDArray[np.int64]:
        """The same of the norms of (1, x, y), an array (p + 2,)."""
        return np.concatenate([[self.rows], self.columns, [self.response]]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Bound:
    """A power of two that no total of a field exceeds, and how many words each number takes.

    Several powers are along the first axis. One word has at most 61 bits below the bound, two have
    at most 110. Fewer must do where whoever asks gives coefficients: large ones make a site round
    its rows, and a sum that showed this would tell which rows lie above a threshold.
    """

    exponent: int | NDArray[np.int64]
    words: Literal[1, 2] = 2
    coarse: int | None = None

    @property
    def bits(self) -> int:
        """How many bits below the bound are told."""
        most = FINE if self.words == 1 else WIDE
        return most if self.coarse is None else min(most, self.coarse)

    def over(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return the power for every number of an array."""
        powers = np.asarray(self.exponent)
        if powers.ndim == 1 and len(shape) == 2:
            powers = powers[:, None]
        return np.broadcast_to(powers, shape)


def power_above(size: float) -> int:
    """Return a power of two that a number, rounded a few times, does not exceed."""
    return int(np.frexp(size)[1]) + 1 if size > 0 else 0


def powers_above(sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return such a power for every number."""
    return np.where(sizes > 0, np.frexp(sizes)[1] + 1, 0).astype(np.int64)
