"""95% intervals of measures of performance."""

import numpy as np
from scipy.special import ndtri

from fedlasso.fitting.examination.assessment import Measure

LEVEL = 0.95
Z = float(ndtri((1 + LEVEL) / 2))


def around(value: float, se: float) -> Measure:
    """Return an estimate with a symmetric interval."""
    return Measure(value, float(value - Z * se), float(value + Z * se))


def half_width(found: Measure | None) -> float | None:
    """Return half the width of an interval, if that is known."""
    if found is None or found.low is None or found.high is None:
        return None
    return (found.high - found.low) / 2


def within_one(value: float, se: float) -> Measure:
    """Return a fraction with an interval on the logit scale; without one at 0 and 1."""
    if not (0 < value < 1 and se > 0):
        return Measure(value)
    ends = np.log(value / (1 - value)) + np.array([-1, 1]) * Z * se / (value * (1 - value))
    low, high = 1 / (1 + np.exp(-ends))
    return Measure(value, float(low), float(high))


def wilson(fraction: float, rows: float) -> tuple[float, float]:
    """Return Wilson's interval of a proportion."""
    middle = fraction + Z**2 / (2 * rows)
    half = Z * np.sqrt(fraction * (1 - fraction) / rows + Z**2 / (4 * rows**2))
    low, high = (np.array([middle - half, middle + half]) / (1 + Z**2 / rows)).tolist()
    return max(low, 0.0), min(high, 1.0)


def greenwood(events: np.ndarray, at_risk: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Kaplan-Meier survival after each interval, with log-log intervals by Greenwood."""
    survival = np.cumprod(1 - events / at_risk)
    left = np.maximum(at_risk - events, 1e-12)
    variance = np.cumsum(events / (at_risk * left))
    inside = (survival > 0) & (survival < 1)
    log = np.log(np.where(inside, survival, 0.5))
    half = np.where(inside, Z * np.sqrt(variance) / np.abs(log), 0.0)
    low = np.where(inside, np.exp(log * np.exp(half)), survival)
    high = np.where(inside, np.exp(log * np.exp(-half)), survival)
    return survival, low, high
