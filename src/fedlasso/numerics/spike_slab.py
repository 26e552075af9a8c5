"""Posterior inclusion probabilities of a spike-and-slab regression, from second moments alone.

A priori no column has an effect with probability one half; else the number k of columns with an
effect has a probability proportional to 1/k, and all sets of k columns are equally likely. An
effect is zero (the spike) or normal with an unknown variance (the slab; Mitchell and Beauchamp
1988, George and McCulloch 1993). With the non-local prior the slab's density is also multiplied by
the squared effect (Johnson and Rossell 2010), so that negligible effects count as none; it is used
where a false discovery rate is controlled. Gibbs sampling draws one effect at a time given all
others. With the non-local prior, swaps also move effects between correlated columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.machine import Array, compiled
from fedlasso.numerics.moments import Normal

# Gibbs iterations, and how many of them are burn-in.
DRAWS = 1500
BURN_IN = 300
# Prior guess of the fraction of the response's variance that one effect explains, with the weight
# of one observed effect.
TYPICAL = 0.02
# The fraction of the requested false discovery rate that is used, as the prior may be wrong.
FDR_MARGIN = 0.8
# A swap's partner is drawn in proportion to this power of its correlation.
PARTNERS = 4
# Bisection steps for a non-local draw, and its range in standard deviations.
HALVINGS = 50
FARTHEST = 12.0


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of the effects."""

    probabilities: Array  # (p,), that a column has an effect
    mean: Array  # (p,), expected effects
    square: Array  # (p,), expected squared effects
    empty: float  # the probability that no column has an effect
    # (draws, p), whether a column has an effect in a draw; None for an average.
    drawn: NDArray[np.bool_] | None = None
    # Mean square of the linear predictor, for columns of variance one correlated as the moments.
    spread: float = 0.0

    @classmethod
    def average(cls, parts: Sequence[Posterior]) -> Posterior:
        arrays = [(part.probabilities, part.mean, part.square) for part in parts]
        probabilities, mean, square = np.mean(arrays, axis=0)
        empty, spread = np.mean([(part.empty, part.spread) for part in parts], axis=0).tolist()
        return cls(probabilities, mean, square, empty, spread=spread)

    @property
    def sizes(self) -> tuple[Array, Array]:
        """Means and standard deviations of the effects, given that they are not zero."""
        positive = np.maximum(self.probabilities, np.finfo(np.float64).tiny)
        mean = self.mean / positive
        return mean, np.sqrt(np.maximum(self.square / positive - mean**2, 0.0))

    @property
    def support(self) -> NDArray[np.bool_]:
        """The columns with the largest expected F1, which may be none.

        With the k most probable columns, the expected number of hits is the sum of their
        probabilities, and F1 is twice the hits over k plus the number of columns with an effect.
        """
        order = np.argsort(-self.probabilities, kind="stable")
        hits = np.cumsum(self.probabilities[order])
        taken = np.arange(1, order.size + 1)
        expected = 2 * hits / (taken + self.probabilities.sum())
        support = np.zeros(order.size, dtype=bool)
        # The empty set is right if no column has an effect.
        if expected.max() > self.empty:
            support[order[: int(expected.argmax()) + 1]] = True
        return support


def select_by_fdr(probabilities: Array, rate: float) -> NDArray[np.bool_]:
    """Return the largest set whose expected false discovery proportion is <= FDR_MARGIN * rate."""
    order = np.argsort(-probabilities, kind="stable")
    false = np.cumsum(1 - probabilities[order]) / np.arange(1, order.size + 1)
    selected = np.zeros(order.size, dtype=bool)
    selected[order[false <= FDR_MARGIN * rate]] = True
    return selected


def sample_posterior(
    normal: Normal,
    columns: int,
    start: Array,
    seed: int | tuple[int, ...] = 0,
    *,
    noise: float | None = None,
    nonlocal_prior: bool = False,
) -> Posterior:
    """Return the posterior of the effects of standardised columns, by Gibbs sampling.

    `normal` has the candidates among all `columns`; the others have no effect. Sampling starts from
    the effects `start`. `noise` is the variance of the noise, if it is known.
    """
    p = normal.p
    if normal.variance <= 0.0:
        none = np.zeros((DRAWS - BURN_IN, p), dtype=bool)
        return Posterior(np.zeros(p), np.zeros(p), np.zeros(p), 1.0, none)
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
    totals = np.zeros((3, p))
    spread = 0.0
    drawn = np.zeros((DRAWS, p), dtype=bool)
    reach = (gram**PARTNERS).sum(axis=1) - np.diagonal(gram)
    for draw in range(DRAWS):
        if draw == BURN_IN:
            totals[:] = 0.0
            spread = 0.0
        draws = rng.random(p), rng.standard_normal(p)
        precision = normal.rows / variance
        active = int(np.count_nonzero(b))
        draw_effects(gram, b, rest, active, precision, slab, odds, nonlocal_prior, *draws, totals)
        places = np.flatnonzero(b)
        active = places.size
        if nonlocal_prior and active:
            moves = rng.random((active, 3)), rng.standard_normal(active)
            swap_effects(gram, reach, b, rest, places, precision, slab, *moves)
        drawn[draw] = b != 0
        on = np.flatnonzero(b)
        own = b[on] * shrink[on]
        spread += float(own @ gram[np.ix_(on, on)] @ own)
        if noise is None:
            # A prior row with the response's variance keeps the noise variance positive.
            left = max(normal.variance - float(b @ (score + rest)), 0.0) * normal.rows
            variance = (left + normal.variance) / (2 * rng.standard_gamma((normal.rows + 1) / 2))
        squares = float(b @ b) + TYPICAL * normal.variance
        terms = 3 * active if nonlocal_prior else active
        slab = squares / (2 * rng.standard_gamma((terms + 1) / 2))
    drawn = drawn[BURN_IN:]
    probabilities, mean, square = totals / len(drawn)
    empty = float((~drawn.any(axis=1)).mean())
    sums = mean * shrink, square * shrink**2, empty, drawn, spread / len(drawn)
    return Posterior(probabilities, *sums)


def log_odds(columns: int) -> Array:
    """Return the prior log odds of one more effect, given 0, 1, 2, ... others."""
    others = np.arange(1, columns)
    first = 1.0 / (columns * (1.0 / np.arange(1, columns + 1)).sum())
    odds: Array = np.append(first, others / (columns - others))
    return np.log(odds)


@compiled
def draw_effects(
    gram: Array,
    b: Array,
    rest: Array,
    active: int,
    precision: float,
    slab: float,
    odds: Array,
    nonlocal_prior: bool,
    uniforms: Array,
    normals: Array,
    totals: Array,
) -> None:
    """Draw every effect given the others; add its probability, mean and square to `totals`.

    `rest` is X'(y - Xb) / m and is updated, `active` is the number of effects in b, `precision` the
    number of rows over the noise variance, and `odds` comes from `log_odds`.
    """
    for k in range(b.size):
        if gram[k, k] == 0.0:
            continue
        own = precision * gram[k, k] + 1.0 / slab
        centre = precision * (rest[k] + gram[k, k] * b[k]) / own
        others = active - 1 if b[k] != 0.0 else active
        favour = odds[others] + (own * centre * centre - np.log(slab * own)) / 2.0
        mean = centre
        square = centre * centre + 1.0 / own
        if nonlocal_prior:
            favour += np.log(square / slab)
            mean = centre * (square + 2.0 / own) / square
            square = square + 4.0 * centre * centre / own / square + 2.0 / own / own / square
        probability = 1.0 / (1.0 + np.exp(-favour))
        totals[0, k] += probability
        totals[1, k] += probability * mean
        totals[2, k] += probability * square
        new = 0.0
        if uniforms[k] < probability:
            away = (
                draw_nonlocal(centre * np.sqrt(own), normals[k]) if nonlocal_prior else normals[k]
            )
            new = centre + away / np.sqrt(own)
        active = others + 1 if new != 0.0 else others
        set_effect(gram, b, rest, k, new)


@compiled
def swap_effects(
    gram: Array,
    reach: Array,
    b: Array,
    rest: Array,
    active: NDArray[np.int64],
    precision: float,
    slab: float,
    uniforms: Array,
    normals: Array,
) -> None:
    """Move effects to correlated columns without one, by Metropolis-Hastings steps.

    Each step draws a column with an effect, a partner, and the partner's effect given all others.
    The effect itself is integrated out of the acceptance probability. The prior is the non-local
    one, and columns have length one. `reach` sums each column's weights of partners. `active` has
    the places of the effects.
    """
    own = precision + 1.0 / slab
    for step in range(active.size):
        place = min(int(uniforms[step, 0] * active.size), active.size - 1)
        i = active[place]
        left = uniforms[step, 1] * reach[i]
        j = -1
        for k in range(b.size):
            if k != i:
                left -= gram[i, k] ** PARTNERS
                if left < 0.0:
                    j = k
                    break
        if j < 0 or b[j] != 0.0:
            continue
        here = precision * (rest[i] + b[i]) / own
        there = precision * (rest[j] + gram[i, j] * b[i]) / own
        favour = own * (there * there - here * here) / 2.0
        favour += np.log((there * there + 1.0 / own) / (here * here + 1.0 / own))
        if np.log(uniforms[step, 2]) < favour + np.log(reach[i] / reach[j]):
            set_effect(gram, b, rest, i, 0.0)
            away = draw_nonlocal(there * np.sqrt(own), normals[step])
            set_effect(gram, b, rest, j, there + away / np.sqrt(own))
            active[place] = j


@compiled
def set_effect(gram: Array, b: Array, rest: Array, k: int, new: float) -> None:
    change = new - b[k]
    if change != 0.0:
        b[k] = new
        for i in range(b.size):
            rest[i] -= change * gram[k, i]


@compiled
def draw_nonlocal(centre: float, draw: float) -> float:
    """Transform a standard normal draw to a density that is also proportional to (centre + z)^2.

    Both draws are the same quantile of their distributions.
    """
    quantile = 0.5 * math.erfc(-draw / math.sqrt(2.0))
    low = -FARTHEST
    high = FARTHEST
    for _ in range(HALVINGS):
        z = (low + high) / 2.0
        below = 0.5 * math.erfc(-z / math.sqrt(2.0))
        density = math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
        reached = (centre * centre + 1.0) * below - (2.0 * centre + z) * density
        if reached < quantile * (centre * centre + 1.0):
            low = z
        else:
            high = z
    return (low + high) / 2.0
