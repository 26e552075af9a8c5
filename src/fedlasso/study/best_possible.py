"""The most that anybody could find: by how likely columns are to somebody who knows nearly all.

Whoever draws the data knows what share of the columns has an effect, how large effects may be, and
how noisy every site is; only which columns and how large is left to find out. Bayes' rule then
tells how likely columns are, and whoever knows less cannot expect to find more with as few false
ones. Gibbs sampling draws the effects one by one.
"""

import math
from collections.abc import Sequence

import numpy as np

from fedlasso.numerics.machine import Array, compiled
from fedlasso.numerics.spike_slab import set_effect
from fedlasso.study.replicate_data import SampleArrays, noise_of
from fedlasso.study.scenario import Scenario

# Rounds of draws of all effects, the first of which are forgotten; runs that are averaged.
DRAWS = 1500
FORGOTTEN = 300
RUNS = 3
# Halvings that find a draw within a range.
HALVINGS = 50
# Estimates so many standard errors from zero are no chance; beyond, densities are none at all.
SURE = 30.0


def find_chances(
    scenario: Scenario, truth: Array, samples: Sequence[SampleArrays], seed: int
) -> Array:
    """Return how likely columns are to have an effect, for whoever knows the scenario.

    Of the true effects only the size of the noise is used. Samples are those of every site.
    """
    p = scenario.p
    gram = np.zeros((p, p))
    score = np.zeros(p)
    for j, (X, y) in enumerate(samples):
        variance = noise_of(scenario, j, truth) ** 2
        gram += X.T @ X / variance
        score += X.T @ y / variance
    known = (scenario.nonzeros / p, *scenario.magnitudes)
    chances = []
    for run in range(RUNS):
        rng = np.random.default_rng([seed, run])
        b = np.zeros(p)
        rest = score.copy()
        told = np.zeros(p)
        for draw in range(DRAWS):
            if draw == FORGOTTEN:
                told[:] = 0.0
            draw_known_effects(gram, b, rest, *known, rng.random((p, 3)), told)
        chances.append(told / (DRAWS - FORGOTTEN))
    return np.asarray(np.mean(chances, axis=0))


@compiled
def draw_known_effects(
    gram: Array,
    b: Array,
    rest: Array,
    share: float,
    least: float,
    most: float,
    luck: Array,
    told: Array,
) -> None:
    """Draw every effect given the others, and add the chance that there is one up in `told`.

    A share of the effects is not zero, and their sizes are uniform between `least` and `most`.
    `rest` is X'(y - Xb) in units of the noise's variance, and is kept up to date.
    """
    for k in range(b.size):
        root = math.sqrt(gram[k, k])
        # The estimate of this effect given the others, and its ranges, in standard errors.
        centre = (rest[k] + gram[k, k] * b[k]) / root
        above = measure_between(least * root - centre, most * root - centre)
        below = measure_between(-most * root - centre, -least * root - centre)
        density = (above + below) / (2.0 * (most - least) * root)
        none = math.exp(-centre * centre / 2.0) / math.sqrt(2.0 * math.pi)
        if abs(centre) > SURE:
            chance = 1.0
            upwards = centre > 0
        else:
            chance = share * density / (share * density + (1.0 - share) * none)
            upwards = luck[k, 1] * (above + below) < above
        told[k] += chance
        new = 0.0
        if luck[k, 0] < chance:
            low, high = (least, most) if upwards else (-most, -least)
            away = draw_between(low * root - centre, high * root - centre, luck[k, 2])
            new = (centre + away) / root
        set_effect(gram, b, rest, k, new)


@compiled
def measure_between(low: float, high: float) -> float:
    """Return the probability that a standard normal number lies in a range."""
    if low + high < 0:
        low, high = -high, -low
    return 0.5 * (math.erfc(low / math.sqrt(2.0)) - math.erfc(high / math.sqrt(2.0)))


@compiled
def draw_between(low: float, high: float, share: float) -> float:
    """Return the standard normal quantile of a range, counted from its end nearer to zero."""
    flipped = low + high < 0
    if flipped:
        low, high = -high, -low
    beyond = math.erfc(low / math.sqrt(2.0))
    wanted = beyond - share * (beyond - math.erfc(high / math.sqrt(2.0)))
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if math.erfc(middle / math.sqrt(2.0)) > wanted:
            low = middle
        else:
            high = middle
    found = (low + high) / 2.0
    return -found if flipped else found
