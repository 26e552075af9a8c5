r"""Responses of other kinds than measurements, at the linear predictors of the scenarios.

The coefficients of a scenario are multiplied by one number, so that their linear predictor

.. math:: \eta = c X \beta^*, \qquad c^2 = \text{snr} \cdot s^2 / \operatorname{Var}(X \beta^*),

has the variance snr s^2 over the rows of all sites. The unit s is the spread of what is random in a
response that is no longer linear:

- *binomial*: 1 with probability 1 / (1 + e^-eta); s = pi / sqrt(3), as in a logistic distribution;
- *poisson*: counts with mean e^eta; s = 1/2, so that they are about one and seldom above twenty;
- *cox*: exponential times with hazard e^eta, censored at random by times with 3/7 of that hazard,
  so that 30% are; s = pi / sqrt(6), as in the logarithm of an exponential time.

Columns, their correlations and scales are the scenario's; its noise multipliers have no counterpart
and are left out. There is no intercept, as in the paper.
"""

from dataclasses import replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.numerics import Array
from fedlasso.study.draws import Draw, signal_variance
from fedlasso.study.scenario import Scenario

# How each family's linear predictor spreads at a signal-to-noise ratio of one.
UNITS: dict[str, float] = {
    "binomial": float(np.pi / np.sqrt(3)),
    "poisson": 0.5,
    "cox": float(np.pi / np.sqrt(6)),
}
CENSORED = 0.3


def draw_family(scenario: Scenario, family: str, seed: int, number: int) -> Draw:
    """Draw one replicate; it depends on study seed, scenario, family and number only."""
    if scenario.deviations:
        raise FedLassoError(
            f"scenario {scenario.name!r} has deviations, and the study of families draws every "
            "site from one truth; leave them out"
        )
    named = replace(scenario, name=f"{scenario.name}, {family}")
    rng = named.generator(seed, number)
    draw = scenario.draw(rng)
    truth = scale_truth(scenario, family, draw.truth) * draw.truth

    def respond(samples: tuple[tuple[Array, Array], ...]) -> tuple[tuple[Array, Array], ...]:
        return tuple((X, draw_responses(family, X @ truth, rng)) for X, _ in samples)

    return Draw(
        truth,
        respond(draw.training),
        respond(draw.penalty_validation),
        respond(draw.candidate_validation),
        respond(draw.test),
    )


def scale_truth(scenario: Scenario, family: str, truth: Array) -> float:
    """Return what coefficients are multiplied by."""
    sites = len(scenario.sizes)
    rhos = np.resize(scenario.correlations, sites)
    scales = np.resize(scenario.scales, sites)
    variances = [s**2 * signal_variance(truth, r) for r, s in zip(rhos, scales, strict=True)]
    variance = float(np.average(variances, weights=scenario.sizes))
    if variance == 0.0:
        return 1.0
    return UNITS[family] * float(np.sqrt(scenario.snr / variance))


def draw_responses(family: str, eta: Array, rng: np.random.Generator) -> Array:
    """Draw one response per linear predictor; a censored time has a minus sign."""
    if family == "binomial":
        return np.asarray(rng.random(len(eta)) < 1 / (1 + np.exp(-eta)), dtype=np.float64)
    if family == "poisson":
        return np.asarray(rng.poisson(np.exp(eta)), dtype=np.float64)
    hazard = np.exp(eta)
    event = rng.exponential(1 / hazard)
    censoring = rng.exponential((1 - CENSORED) / CENSORED / hazard)
    return np.where(event <= censoring, event, -censoring)
