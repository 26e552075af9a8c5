"""How likely each column is to have an effect, given second moments alone.

Before anything is seen, it is as likely as not that no column has an effect; else that k columns
have one is as likely as 1/k, whichever they are. An effect is exactly zero, the spike, or drawn
from a normal distribution of unknown spread, the slab (Mitchell and Beauchamp 1988, George and
McCulloch 1993). Where chances are to be kept by a promise, the slab stays clear of zero: its
density is that of the normal distribution times the square of the effect (Johnson and Rossell
2010), so that what might as well be no effect is none. Gibbs sampling draws the effects one by one
given all others; how often an effect is not zero is the chance that the column has one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.machine import Array, compiled
from fedlasso.numerics.moments import Normal

# Rounds of draws of all effects, the first of which are forgotten.
DRAWS = 1500
FORGOTTEN = 300
# The share of the response's variance that one effect is thought to explain, as if one was known.
TYPICAL = 0.02
# Of the share that may be false, so much is used: effects need not be as thought before.
USED = 0.8
# Halvings that find a draw among those within so many standard deviations.
HALVINGS = 50
FARTHEST = 12.0


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of the effects once the moments are seen.

    Attributes
    ----------
    chances : array (p,), of a column to have an effect
    mean : array (p,), the expected effects
    square : array (p,), the expected squares of the effects
    empty : the chance that no column has an effect
    """

    chances: Array
    mean: Array
    square: Array
    empty: float

    @classmethod
    def average(cls, parts: Sequence[Posterior]) -> Posterior:
        """Return what several runs of draws tell together."""
        return cls(
            np.mean([part.chances for part in parts], axis=0),
            np.mean([part.mean for part in parts], axis=0),
            np.mean([part.square for part in parts], axis=0),
            float(np.mean([part.empty for part in parts])),
        )

    @property
    def sizes(self) -> tuple[Array, Array]:
        """Means and standard deviations of the effects where there are some."""
        likely = np.maximum(self.chances, np.finfo(np.float64).tiny)
        mean = self.mean / likely
        return mean, np.sqrt(np.maximum(self.square / likely - mean**2, 0.0))

    @property
    def support(self) -> NDArray[np.bool_]:
        """The columns with the largest expected F1, the likeliest first; there may be none.

        With k columns taken, the expected number of hits is the sum of their chances, and F1 is
        twice the hits over k plus the number of columns with an effect.
        """
        order = np.argsort(-self.chances, kind="stable")
        hits = np.cumsum(self.chances[order])
        taken = np.arange(1, order.size + 1)
        expected = 2 * hits / (taken + self.chances.sum())
        support = np.zeros(order.size, dtype=bool)
        # Where no column has an effect, to take none is right.
        if expected.max() > self.empty:
            support[order[: int(expected.argmax()) + 1]] = True
        return support


def find_likely(chances: Array, rate: float) -> NDArray[np.bool_]:
    """Return the most columns, the likeliest first, of which an expected share at most is false.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics.spike_slab import find_likely
    >>> find_likely(np.array([0.99, 0.2, 0.9, 0.6]), 0.1)
    array([ True, False,  True, False])
    """
    order = np.argsort(-chances, kind="stable")
    false = np.cumsum(1 - chances[order]) / np.arange(1, order.size + 1)
    likely = np.zeros(order.size, dtype=bool)
    likely[order[false <= USED * rate]] = True
    return likely


def weigh_columns(
    normal: Normal,
    columns: int,
    start: Array,
    seed: int | tuple[int, ...] = 0,
    *,
    noise: float | None = None,
    clear: bool = False,
) -> Posterior:
    """Draw effects of standardised columns, and return how likely they are.

    Parameters
    ----------
    normal : normal equations of the columns that may matter
    columns : how many columns there are in all; the others are taken to have no effect
    start : a model to start from
    seed : of the draws
    noise : variance of the noise, where it is known
    clear : effects stay clear of zero

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics.moments import Moments
    >>> from fedlasso.numerics.spike_slab import weigh_columns
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 6))
    >>> rows = np.column_stack([np.ones(200), X, X[:, 2] + rng.standard_normal(200)])
    >>> weigh_columns(Moments(rows.T @ rows).normal(), 6, np.zeros(6)).chances.argmax()
    np.int64(2)
    """
    p = normal.p
    if normal.variance <= 0.0:
        return Posterior(np.zeros(p), np.zeros(p), np.zeros(p), 1.0)
    rng = np.random.default_rng(seed)
    sizes = np.sqrt(np.diagonal(normal.gram))
    shrink = np.divide(1.0, sizes, out=np.zeros(p), where=sizes > 0)
    gram = np.ascontiguousarray(normal.gram * np.outer(shrink, shrink))
    score = normal.score * shrink
    b = start * sizes
    rest = score - gram @ b
    active = max(int(np.count_nonzero(b)), 1)
    odds = log_odds(columns)
    slab = float(b @ b) / active + TYPICAL * normal.variance
    variance = normal.variance if noise is None else noise
    told = np.zeros((3, p))
    empty = 0
    for draw in range(DRAWS):
        if draw == FORGOTTEN:
            told[:] = 0.0
            empty = 0
        luck = rng.random(p), rng.standard_normal(p)
        draw_effects(gram, b, rest, normal.rows / variance, slab, odds, clear, *luck, told)
        active = int(np.count_nonzero(b))
        empty += active == 0
        if noise is None:
            # One more row with the response's variance keeps the noise away from nothing.
            left = max(normal.variance - float(b @ (score + rest)), 0.0) * normal.rows
            variance = (left + normal.variance) / (2 * rng.standard_gamma((normal.rows + 1) / 2))
        squares = float(b @ b) + TYPICAL * normal.variance
        terms = 3 * active if clear else active
        slab = squares / (2 * rng.standard_gamma((terms + 1) / 2))
    kept = DRAWS - FORGOTTEN
    chances, mean, square = told / kept
    return Posterior(chances, mean * shrink, square * shrink**2, empty / kept)


def log_odds(columns: int) -> Array:
    """Return the logarithm of the odds of one more effect where 0, 1, 2, ... others have one."""
    others = np.arange(1, columns)
    first = 1.0 / (columns * (1.0 / np.arange(1, columns + 1)).sum())
    odds: Array = np.append(first, others / (columns - others))
    return np.log(odds)


@compiled
def draw_effects(
    gram: Array,
    b: Array,
    rest: Array,
    precision: float,
    slab: float,
    odds: Array,
    clear: bool,
    uniforms: Array,
    normals: Array,
    told: Array,
) -> None:
    """Draw every effect given the others; add its chance, mean and square up in `told`.

    `rest` is X'(y - Xb) / m, kept up to date; `precision` is the rows over the noise's variance,
    and `odds` are as `log_odds` has them.
    """
    active = np.count_nonzero(b)
    for k in range(b.size):
        if gram[k, k] == 0.0:
            continue
        own = precision * gram[k, k] + 1.0 / slab
        centre = precision * (rest[k] + gram[k, k] * b[k]) / own
        others = active - 1 if b[k] != 0.0 else active
        favour = odds[others] + (own * centre * centre - np.log(slab * own)) / 2.0
        mean = centre
        square = centre * centre + 1.0 / own
        if clear:
            favour += np.log(square / slab)
            mean = centre * (square + 2.0 / own) / square
            square = square + 4.0 * centre * centre / own / square + 2.0 / own / own / square
        chance = 1.0 / (1.0 + np.exp(-favour))
        told[0, k] += chance
        told[1, k] += chance * mean
        told[2, k] += chance * square
        new = 0.0
        if uniforms[k] < chance:
            away = draw_clear(centre * np.sqrt(own), normals[k]) if clear else normals[k]
            new = centre + away / np.sqrt(own)
        active = others + 1 if new != 0.0 else others
        set_effect(gram, b, rest, k, new)


@compiled
def set_effect(gram: Array, b: Array, rest: Array, k: int, new: float) -> None:
    """Give one column another effect, and keep `rest`, what the effects leave, up to date."""
    change = new - b[k]
    if change != 0.0:
        b[k] = new
        for i in range(b.size):
            rest[i] -= change * gram[k, i]


@compiled
def draw_clear(centre: float, luck: float) -> float:
    """Return what a standard normal draw becomes where density counts by the squared effect.

    The effect is the draw and a centre, in units of the draw's standard deviation; both draws have
    the same share of the distribution below them.
    """
    share = 0.5 * math.erfc(-luck / math.sqrt(2.0))
    low = -FARTHEST
    high = FARTHEST
    for _ in range(HALVINGS):
        z = (low + high) / 2.0
        below = 0.5 * math.erfc(-z / math.sqrt(2.0))
        density = math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
        reached = (centre * centre + 1.0) * below - (2.0 * centre + z) * density
        if reached < share * (centre * centre + 1.0):
            low = z
        else:
            high = z
    return (low + high) / 2.0
