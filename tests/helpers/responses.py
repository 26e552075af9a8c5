"""Responses of every kind, drawn at given linear predictors."""

import numpy as np

from fedlasso.numerics import Array


def draw_response(loss: str, eta: Array, rng: np.random.Generator) -> Array:
    """Draw one response per linear predictor; survival times are tied and a third is censored."""
    if "logistic" in loss or loss == "binomial":
        return np.asarray(rng.random(len(eta)) < 1 / (1 + np.exp(-eta)), dtype=np.float64)
    if loss == "poisson":
        return np.asarray(rng.poisson(np.exp(np.clip(eta, -3, 3))), dtype=np.float64)
    if loss.startswith("cox"):
        times = np.ceil(4 * rng.exponential(np.exp(-np.clip(eta, -3, 3)))) / 4
        return np.copysign(times, np.where(rng.random(len(eta)) < 2 / 3, 1.0, -1.0))
    return eta + rng.standard_normal(len(eta))
