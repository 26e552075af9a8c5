"""Prediction errors where the response is known: ranks and deviances."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlasso.families import Family
from fedlasso.numerics import Array, Response, Sample
from fedlasso.sites.ranks import count_pairs


def find_auroc(y: Array, score: Array) -> float | None:
    """Return the area under the ROC curve, or None if all rows are of one class."""
    ones = score[y == 1]
    zeros = np.sort(score[y != 1])
    if not len(ones) or not len(zeros):
        return None
    below = np.searchsorted(zeros, ones, "left") + np.searchsorted(zeros, ones, "right")
    return float(below.mean() / (2 * len(zeros)))


def find_concordance(times: Array, events: Any, risk: Array) -> float:
    """Return Harrell's concordance; ties of risks count half.

    Two rows are comparable if the earlier time is that of an event. Without any such pair it is a
    half.
    """
    signed = np.copysign(times, np.where(events, 1.0, -1.0))
    comparable, concordant = count_pairs(risk, Response.of(signed))
    return concordant / comparable if comparable else 0.5


@dataclass(frozen=True)
class ErrorSummary:
    """Errors of predictions; measures that the family does not have are None.

    `explained` is the fraction of the error of the best constant that the model removes; None if
    the response is constant.
    """

    rows: int
    mse: float | None = None
    deviance: float | None = None
    explained: float | None = None
    auroc: float | None = None
    concordance: float | None = None

    def __str__(self) -> str:
        parts = (
            ("MSE {:.4g}", self.mse),
            ("RMSE {:.4g}", None if self.mse is None else self.mse**0.5),
            ("deviance {:.4g} per row", self.deviance),
            ("deviance explained {:.4g}" if self.mse is None else "R^2 {:.4g}", self.explained),
            ("AUROC {:.4g}", self.auroc),
            ("concordance {:.4g}", self.concordance),
        )
        known = [text.format(value) for text, value in parts if value is not None]
        return ", ".join([f"{self.rows} rows", *known])


def measure_errors(family: Family, response: Response, scores: Array) -> ErrorSummary:
    """Return the errors of linear predictors for encoded responses of a family."""
    loss = family.loss
    rows = len(scores)
    y = response.y
    if "concordance" in family.measures:
        found = find_concordance(response.times, response.events, scores)
        return ErrorSummary(rows, concordance=found)
    error = float(loss.deviance(scores, response).mean())
    mean = float(y.mean())
    constant = np.full(rows, family.link(mean))
    if response.offset.any() and np.isfinite(constant[0]):
        empty = Sample(np.zeros((rows, 1)), response, loss)
        constant = response.offset + empty.effect_at(np.zeros(1))
    # A constant at the limit of a link fits perfectly.
    least = float(loss.deviance(constant, response).mean()) if np.isfinite(constant[0]) else 0.0
    explained = 1 - error / least if least > 0 else None
    if loss.quadratic:
        return ErrorSummary(rows, mse=error, explained=explained)
    auroc = find_auroc(y, scores) if "auroc" in family.measures else None
    return ErrorSummary(rows, deviance=error, explained=explained, auroc=auroc)
