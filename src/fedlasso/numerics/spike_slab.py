"""How likely each column is to have an effect, given second moments alone.

Before anything is seen, it is as likely as not that no column has an effect; else that k columns
have one is as likely as 1/k, whichever they are. An effect is exactly zero, the spike, or drawn
from a normal distribution of unknown spread, the slab (Mitchell and Beauchamp 1988, George and
McCulloch 1993). Gibbs sampling draws the effects one by one given all others; how often an effect
is not zero is the chance that the column has one.
"""

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


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of the effects once the moments are seen.

    Attributes
    ----------
    chances : array (p,), of a column to have an effect
    mean : array (p,), the expected effects
    empty : the chance that no column has an effect
    """

    chances: Array
    mean: Array
    empty: float

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


def weigh_columns(normal: Normal, columns: int, start: Array, seed: int = 0) -> Posterior:
    """Draw effects of standardised columns, and return how likely they are.

    Parameters
    ----------
    normal : normal equations of the columns that may matter
    columns : how many columns there are in all; the others are taken to have no effect
    start : a model to start from
    seed : of the draws

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.numerics.moments import Moments
    >>> from fedlasso.numerics.spike_slab import weigh_columns
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 6))
    >>> rows = np.column_stack([np.ones(200), X, X[:, 2] + rng.standard_normal(200)])
    >>> weigh_columns(Moments(rows.T @ rows).normal(), 6, np.zeros(6)).support.nonzero()[0]
    array([2])
    """
    p = normal.p
    if normal.variance <= 0.0:
        return Posterior(np.zeros(p), np.zeros(p), 1.0)
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
    noise = normal.variance
    chances = np.zeros(p)
    means = np.zeros(p)
    empty = 0
    for draw in range(DRAWS):
        if draw == FORGOTTEN:
            chances[:] = 0.0
            means[:] = 0.0
            empty = 0
        luck = rng.random(p), rng.standard_normal(p)
        draw_effects(gram, b, rest, normal.rows / noise, slab, odds, *luck, chances, means)
        active = int(np.count_nonzero(b))
        empty += active == 0
        # One more row with the response's variance keeps the noise away from nothing.
        left = max(normal.variance - float(b @ (score + rest)), 0.0) * normal.rows
        noise = (left + normal.variance) / (2 * rng.standard_gamma((normal.rows + 1) / 2))
        squares = float(b @ b) + TYPICAL * normal.variance
        slab = squares / (2 * rng.standard_gamma((active + 1) / 2))
    kept = DRAWS - FORGOTTEN
    return Posterior(chances / kept, means * shrink / kept, empty / kept)


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
    uniforms: Array,
    normals: Array,
    chances: Array,
    means: Array,
) -> None:
    """Draw every effect given the others, and add its chance and its expected value up.

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
        chance = 1.0 / (1.0 + np.exp(-favour))
        chances[k] += chance
        means[k] += chance * centre
        new = centre + normals[k] / np.sqrt(own) if uniforms[k] < chance else 0.0
        active = others + 1 if new != 0.0 else others
        change = new - b[k]
        if change != 0.0:
            b[k] = new
            for i in range(b.size):
                rest[i] -= change * gram[k, i]
