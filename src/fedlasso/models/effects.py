"""Every column's coefficient, estimate with interval and selection frequency, in one row."""

from dataclasses import dataclass

import numpy as np

from fedlasso.models.document import Coefficient, ModelDocument
from fedlasso.models.inference_document import ColumnEstimate


@dataclass(frozen=True)
class Effect:
    """A column of the model, or one whose interval was requested.

    `estimate` is the debiased estimate or the posterior, `frequency` the fraction of random halves
    of the rows that select the column; None where it was not measured.
    """

    name: str
    coefficient: Coefficient | None = None
    estimate: ColumnEstimate | None = None
    frequency: float | None = None

    def interval(self, per_sd: bool) -> tuple[float, float, float] | None:
        """Return the estimate and its interval, per SD or per unit of the column.

        Both are zero if the interval is zero alone: the estimate is of an effect, if there is one.
        """
        if (found := self.estimate) is None:
            return None
        if found.zero_alone:
            return 0.0, 0.0, 0.0
        by = found.scale if per_sd else 1.0
        return by * found.value, by * found.low, by * found.high


def effects_of(document: ModelDocument) -> list[Effect]:
    """Return the columns of the model, largest first, then other columns with an estimate."""
    trust = document.trust
    # An interval that was requested by name comes before a discovery's.
    groups = () if trust is None else (trust.selected, trust.found, trust.named)
    estimates = {row.name: row for rows in groups for row in rows}
    frequencies = {row.name: row.share for row in document.stability or ()}
    used = {row.name: row for row in document.coefficients}
    names = dict.fromkeys([*used, *estimates])
    return [Effect(k, used.get(k), estimates.get(k), frequencies.get(k)) for k in names]


def exponentiate(*values: float) -> tuple[float, ...]:
    """Return ratios of coefficients; those beyond the range of numbers are infinite."""
    with np.errstate(over="ignore"):
        return tuple(np.exp(values).tolist())
