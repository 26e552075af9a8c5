"""Counts, by Poisson regression."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedlasso.families.family import Family
from fedlasso.numerics import Array, find_loss


class Poisson(Family):
    """Counts with a log link; they may vary more than their mean, and never less."""

    name = "poisson"
    prefix = "Poisson "
    summary = "counts"
    loss = find_loss("poisson")
    ratio = "rate ratio"
    effect = "How much the logarithm of the rate of {target} changes with a column."
    dispersion = (1.0, np.inf)
    constant = "is zero in every row"
    # Counts are about one then, and seldom above twenty.
    unit = 0.5

    def link(self, mean: float) -> float:
        with np.errstate(divide="ignore"):
            return float(np.log(mean))

    def find_problems(self, role: str, numbers: Array) -> Iterator[tuple[Any, str]]:
        yield numbers < 0, "is negative in {rows}; counts begin at zero: correct them"

    def draw(self, eta: Array, rng: np.random.Generator) -> Array:
        return np.asarray(rng.poisson(np.exp(eta)), dtype=np.float64)
