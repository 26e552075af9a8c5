"""A metric from outside the package, in a module that worker processes can import."""

import numpy as np

from fedlasso.numerics import Array
from fedlasso.study.outcomes import Trial


def count_wrong_signs(b: Array, trial: Trial) -> float:
    """How many coefficients have the opposite sign of the truth."""
    return float((np.sign(b) * np.sign(trial.draw.truth) < 0).sum())
