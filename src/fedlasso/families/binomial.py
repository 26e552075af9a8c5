"""Yes or no, by logistic regression."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fedlasso.families.family import Family
from fedlasso.numerics import Array, find_loss


class Binomial(Family):
    """Responses that are 0 or 1, or one of two texts."""

    name = "binomial"
    prefix = "binomial "
    summary = "yes or no, by logistic regression"
    loss = find_loss("binomial")
    takes_classes = True
    ratio = "odds ratio"
    effect = "How much the log-odds of {target} change with a column."
    measures = ("auroc", "calibration", "calibration groups")
    constant = "holds one class in every row"
    # The standard deviation of a logistic distribution.
    unit = float(np.pi / np.sqrt(3))

    def link(self, mean: float) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(mean) - np.log1p(-mean))

    def attenuation(self, variance: float) -> float:
        # Averaging a probability over an unobserved normal part of the linear predictor divides
        # effects by about this (MacKay 1992).
        return float(np.sqrt(1 + np.pi * variance / 8))

    def find_problems(self, role: str, numbers: Array) -> Iterator[tuple[Any, str]]:
        what = "is neither 0 nor 1 in {rows}; code it as 0 and 1, or choose another --family"
        yield (numbers != 0) & (numbers != 1), what

    def check_sites(self, responses: Mapping[str, Array], names: Mapping[str, str]) -> list[str]:
        return super().check_sites(responses, names) + [
            f"notice: site {site!r}: the target {names['target']!r} is {y[0]:g} in every row"
            for site, y in responses.items()
            if (y == y[0]).all()
        ]

    def draw(self, eta: Array, rng: np.random.Generator) -> Array:
        return np.asarray(rng.random(len(eta)) < 1 / (1 + np.exp(-eta)), dtype=np.float64)
