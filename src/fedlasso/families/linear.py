"""Any number, by least squares."""

from collections.abc import Mapping

import numpy as np

from fedlasso.families.family import Family
from fedlasso.numerics import Array, find_loss


class Linear(Family):
    """Numbers whose noise has one variance, which the residuals estimate."""

    name = "linear"
    summary = "any number"
    loss = find_loss("quadratic")
    effect = "How much {target} changes with a column."
    error = "error"
    error_name = "mean squared error"
    explained_name = "R^2"
    measures = ("calibration", "calibration groups")
    dispersion = (0.0, np.inf)

    def check_sites(self, responses: Mapping[str, Array], names: Mapping[str, str]) -> list[str]:
        notices = super().check_sites(responses, names)
        if all(np.isin(y, (0, 1)).all() for y in responses.values()):
            notices.append(f"warning: {warn_binary(names['target'])}")
        return notices


def warn_binary(target: str) -> str:
    """Return the warning about a linear model of zeros and ones."""
    return (
        f"the target {target!r} is 0 or 1: this is a linear model of those numbers, and its "
        "predictions are not probabilities; use --family binomial"
    )
