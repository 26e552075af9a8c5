"""Responses of every kind, drawn at given linear predictors."""

import numpy as np


def draw_response(loss: str, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one response per linear predictor; survival times are tied and a third is censored."""
    if "logistic" in loss or loss == "binomial":
        return (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(np.float64)
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(eta, -3, 3))).astype(np.float64)
    if loss.startswith("cox"):
        times = np.ceil(4 * rng.exponential(np.exp(-np.clip(eta, -3, 3)))) / 4
        return np.copysign(times, np.where(rng.random(len(eta)) < 2 / 3, 1.0, -1.0))
    return eta + rng.standard_normal(len(eta))
