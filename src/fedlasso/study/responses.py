r"""Responses of other kinds than measurements, at the linear predictors of the scenarios.

The coefficients of a scenario are multiplied by one number, so that their linear predictor

.. math:: \eta = c X \beta^*, \qquad c^2 = \text{snr} \cdot s^2 / \operatorname{Var}(X \beta^*),

has the variance snr s^2 over the rows of all sites. The unit s is the spread of what is random in a
response that is no longer linear, which every family states as its `unit`.

Columns, their correlations and scales are the scenario's; its noise multipliers have no counterpart
and are left out. There is no intercept, as in the paper.
"""

from dataclasses import replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.families import FAMILIES, find_family
from fedlasso.numerics import Array
from fedlasso.study.replicate_data import ReplicateData, signal_variance
from fedlasso.study.scenario import Scenario

# How each family's linear predictor spreads at a signal-to-noise ratio of one.
UNITS = {name: own.unit for name, own in FAMILIES.items() if own.unit is not None}


def draw_family(scenario: Scenario, family: str, seed: int, number: int) -> ReplicateData:
    """Draw one replicate; it depends on study seed, scenario, family and number only."""
    if scenario.deviations:
        raise FedLassoError(
            f"scenario {scenario.name!r} has deviations, and the study of families draws every "
            "site from one truth; leave them out"
        )
    rng = replace(scenario, name=f"{scenario.name}, {family}").generator(seed, number)
    draw = scenario.draw(rng)
    truth = scale_truth(scenario, family, draw.truth) * draw.truth
    respond = find_family(family).draw
    kinds = (draw.training, draw.penalty_validation, draw.candidate_validation, draw.test)
    return ReplicateData(
        truth, *(tuple((X, respond(X @ truth, rng)) for X, _ in kind) for kind in kinds)
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
