"""Bounds on totals as powers of two, which define the grid of fixed-point numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics import find_loss

# Bits that a number within its bound has in one word and in two; the rest is for adding up.
ONE_WORD_BITS = 61
TWO_WORD_BITS = 110
# Resolution of sums of residuals, in bits below the norm of all residuals. A row is rounded 52 bits
# below its largest term, so the rounding of one row is far below a step of the grid.
COARSE = 48


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """Exponents of powers of two that bound norms over the training rows of all sites in a view.

    By the Cauchy-Schwarz inequality they bound every sum of products, in total and at each site.

    Attributes
    ----------
    rows : square root of the number of rows
    columns : array (p,), norm of every column
    response : norm of the response
    reach : norm of the residuals of any model in the question, and of every intermediate sum
    terms : array (p,), norm of the numbers that every column is computed from: those before it is
        centred, unless its mean is so far from zero that it is centred value by value
    curved : whether the loss's slopes are bounded by the response, as for all but least squares
    """

    rows: int
    columns: NDArray[np.int64]
    response: int
    reach: int
    terms: NDArray[np.int64]
    curved: bool = False

    @classmethod
    def unknown(cls, p: int, reach: int = 0) -> Magnitudes:
        """Return the magnitudes of p columns before anything is known about them."""
        nothing = np.zeros(p, np.int64)
        return cls(0, nothing, 0, reach, nothing)

    def of_loss(self, loss: str) -> Magnitudes:
        return replace(self, curved=not find_loss(loss).quadratic)

    @property
    def slopes(self) -> int:
        """Exponent for the norm of the slopes, which for least squares are the residuals."""
        return max(self.response, self.rows) if self.curved else self.reach

    @property
    def products(self) -> NDArray[np.int64]:
        """Exponents for the norms of (1, x, y), an array (p + 2,)."""
        return np.concatenate([[self.rows], self.columns, [self.response]]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Bound:
    """The exponent of a power of two that no total of a field exceeds, and words per number.

    Several exponents are along the first axis. One word has at most 61 bits below the bound, two
    have at most 110. `coarse` limits them where the question has coefficients: large ones make a
    site round its rows, and a finer sum would disclose which rows are above a threshold.
    """

    exponent: int | NDArray[np.int64]
    words: Literal[1, 2] = 2
    coarse: int | None = None

    @property
    def bits(self) -> int:
        """Bits below the bound that are sent."""
        most = ONE_WORD_BITS if self.words == 1 else TWO_WORD_BITS
        return most if self.coarse is None else min(most, self.coarse)

    def over(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        powers = np.asarray(self.exponent)
        return powers[:, None] if powers.ndim == 1 and len(shape) == 2 else powers


def power_above(size: float) -> int:
    """Return the exponent of a power of two that a number, rounded a few times, is below."""
    return int(np.frexp(size)[1]) + 1 if size > 0 else 0


def powers_above(sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.where(sizes > 0, np.frexp(sizes)[1] + 1, 0).astype(np.int64)
