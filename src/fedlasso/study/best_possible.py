"""Oracle discoveries: the largest power any method can expect at a false discovery rate.

The oracle knows the fraction of nonzero effects, the range of their sizes and every site's noise,
but not which columns have an effect. Gibbs sampling gives their posterior probabilities.
"""

import math
from collections.abc import Sequence

import numpy as np

from fedlasso.numerics.machine import Array, compiled
from fedlasso.numerics.spike_slab import set_effect
from fedlasso.study.replicate_data import SampleArrays, noise_of
from fedlasso.study.scenario import Scenario

# Draws per chain, of which the first BURN_IN are discarded, and chains that are averaged.
DRAWS = 1500
BURN_IN = 300
CHAINS = 3
BISECTIONS = 50
# Beyond so many standard errors from zero an effect is certain: its densities underflow.
CERTAIN = 30.0


def oracle_probabilities(
    scenario: Scenario, truth: Array, samples: Sequence[SampleArrays], seed: int
) -> Array:
    """Return each column's posterior probability of an effect, given the scenario.

    ``samples`` has one entry per site. The true effects determine the noise variance only.
    """
    p = scenario.p
    gram = np.zeros((p, p))
    score = np.zeros(p)
    for j, (X, y) in enumerate(samples):
        variance = noise_of(scenario, j, truth) ** 2
        gram += X.T @ X / variance
        score += X.T @ y / variance
    prior = (scenario.nonzeros / p, *scenario.magnitudes)
    chains = []
    for chain in range(CHAINS):
        rng = np.random.default_rng([seed, chain])
        b = np.zeros(p)
        rest = score.copy()
        total = np.zeros(p)
        for draw in range(DRAWS):
            if draw == BURN_IN:
                total[:] = 0.0
            draw_oracle_effects(gram, b, rest, prior, rng.random((p, 3)), total)
        chains.append(total / (DRAWS - BURN_IN))
    return np.asarray(np.mean(chains, axis=0))


@compiled
def draw_oracle_effects(
    gram: Array, b: Array, rest: Array, prior: tuple[float, float, float], u: Array, total: Array
) -> None:
    """Draw every effect given the others, and add its probability of being nonzero to `total`.

    `prior` holds the fraction of nonzero effects and the range of their uniform sizes, `u` uniform
    random numbers (p, 3). `rest` is X'(y - Xb) over the noise variance, and is kept up to date.
    """
    fraction, smallest, largest = prior
    for k in range(b.size):
        root = math.sqrt(gram[k, k])
        # The estimate of this effect given the others, and its ranges, in standard errors.
        centre = (rest[k] + gram[k, k] * b[k]) / root
        above = normal_probability(smallest * root - centre, largest * root - centre)
        below = normal_probability(-largest * root - centre, -smallest * root - centre)
        density = (above + below) / (2.0 * (largest - smallest) * root)
        none = math.exp(-centre * centre / 2.0) / math.sqrt(2.0 * math.pi)
        if abs(centre) > CERTAIN:
            probability = 1.0
            positive = centre > 0
        else:
            probability = fraction * density / (fraction * density + (1.0 - fraction) * none)
            positive = u[k, 1] * (above + below) < above
        total[k] += probability
        new = 0.0
        if u[k, 0] < probability:
            low, high = (smallest, largest) if positive else (-largest, -smallest)
            away = truncated_normal(low * root - centre, high * root - centre, u[k, 2])
            new = (centre + away) / root
        set_effect(gram, b, rest, k, new)


@compiled
def normal_probability(low: float, high: float) -> float:
    """Return the probability that a standard normal number lies in a range."""
    if low + high < 0:
        low, high = -high, -low
    return 0.5 * (math.erfc(low / math.sqrt(2.0)) - math.erfc(high / math.sqrt(2.0)))


@compiled
def truncated_normal(low: float, high: float, u: float) -> float:
    """Return a quantile of the normal truncated to a range, from its end nearer to zero."""
    flipped = low + high < 0
    if flipped:
        low, high = -high, -low
    beyond = math.erfc(low / math.sqrt(2.0))
    target = beyond - u * (beyond - math.erfc(high / math.sqrt(2.0)))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if math.erfc(middle / math.sqrt(2.0)) > target:
            low = middle
        else:
            high = middle
    root = (low + high) / 2.0
    return -root if flipped else root
