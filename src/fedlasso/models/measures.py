"""How good predictions are where the response is known: ranks and deviances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlasso.numerics import Array, Response, Sample, find_loss

# Pairs of rows that are compared at once.
PAIRS = 1 << 22


def find_auroc(y: Array, score: Array) -> float | None:
    """Return how often a row of ones has a larger score than a row of zeros, ties counting half.

    There is none where all rows are of one kind.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.models.measures import find_auroc
    >>> find_auroc(np.array([0.0, 0.0, 1.0]), np.array([0.1, 0.4, 0.4]))
    0.75
    """
    ones = score[y == 1]
    zeros = np.sort(score[y != 1])
    if not len(ones) or not len(zeros):
        return None
    below = np.searchsorted(zeros, ones, "left") + np.searchsorted(zeros, ones, "right")
    return float(below.mean() / (2 * len(zeros)))


def find_concordance(times: Array, events: Any, risk: Array) -> float:
    """Return how often, of two rows, the one with the larger risk has its event first.

    Harrell's: two rows are compared where the earlier time is that of an event; ties of risks
    count half. Without any such pair it is a half.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.models.measures import find_concordance
    >>> find_concordance(np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]) == 1, np.array([3, 1, 2.0]))
    1.0
    """
    dead = np.flatnonzero(events)
    later = np.where(events, times, np.nextafter(times, np.inf))
    pairs = 0
    won = 0.0
    step = max(PAIRS // max(len(times), 1), 1)
    for at in range(0, len(dead), step):
        own = dead[at : at + step]
        compared = later[None, :] > times[own, None]
        pairs += int(compared.sum())
        won += float((compared & (risk[own, None] > risk[None, :])).sum())
        won += float((compared & (risk[own, None] == risk[None, :])).sum()) / 2
    return won / pairs if pairs else 0.5


@dataclass(frozen=True)
class Errors:
    """How far predictions are from what is known; what a kind of response does not have is None.

    Attributes
    ----------
    rows : rows whose response is known
    mse : mean squared error, of numbers
    deviance : per row, of classes and counts
    explained : share of that error that the best constant does not explain; missing where the
        response is constant
    auroc : of classes, how often a row of ones is ranked above a row of zeros
    concordance : of survival times, how often the row of larger risk has its event first
    """

    rows: int
    mse: float | None = None
    deviance: float | None = None
    explained: float | None = None
    auroc: float | None = None
    concordance: float | None = None

    def __str__(self) -> str:
        told = [f"{self.rows} rows"]
        share = "deviance explained"
        if self.mse is not None:
            told += [f"MSE {self.mse:.4g}", f"RMSE {self.mse**0.5:.4g}"]
            share = "R^2"
        if self.deviance is not None:
            told.append(f"deviance {self.deviance:.4g} per row")
        if self.explained is not None:
            told.append(f"{share} {self.explained:.4g}")
        if self.auroc is not None:
            told.append(f"AUROC {self.auroc:.4g}")
        if self.concordance is not None:
            told.append(f"concordance {self.concordance:.4g}")
        return ", ".join(told)


def measure_errors(loss_name: str, response: Response, scores: Array) -> Errors:
    """Return how far linear predictors are from responses that a loss takes.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.models.measures import measure_errors
    >>> from fedlasso.numerics import Response
    >>> str(measure_errors("quadratic", Response.of([1.0, 3.0]), np.array([1.0, 2.0])))
    '2 rows, MSE 0.5, RMSE 0.7071, R^2 0.5'
    """
    loss = find_loss(loss_name)
    rows = len(scores)
    y = response.y
    if not loss.intercept:
        found = find_concordance(response.times, response.events, scores)
        return Errors(rows, concordance=found)
    error = float(loss.deviance(scores, response).mean())
    mean = float(y.mean())
    constant = np.full(rows, _link(loss_name, mean))
    if response.offset.any() and np.isfinite(constant[0]):
        empty = Sample(np.zeros((rows, 1)), response, loss)
        constant = response.offset + empty.effect_at(np.zeros(1))
    # The best constant, once the limits of a link are passed, fits perfectly.
    least = float(loss.deviance(constant, response).mean()) if np.isfinite(constant[0]) else 0.0
    explained = 1 - error / least if least > 0 else None
    if loss.centres:
        return Errors(rows, mse=error, explained=explained)
    auroc = find_auroc(y, scores) if loss_name == "binomial" else None
    return Errors(rows, deviance=error, explained=explained, auroc=auroc)


def _link(loss_name: str, mean: float) -> float:
    """Return the linear predictor at which a row is expected to have this response."""
    with np.errstate(divide="ignore"):
        if loss_name == "binomial":
            return float(np.log(mean) - np.log1p(-mean))
        return float(np.log(mean)) if loss_name == "poisson" else mean
