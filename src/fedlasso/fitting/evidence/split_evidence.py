"""Evidence on the training rows of several splits at once, and errors on the rows they hold out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedlasso.errors import CannotFit, FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.evidence.evidence import Evidence, PathPoint, Wanted
from fedlasso.fitting.evidence.gradient_evidence import GradientEvidence
from fedlasso.fitting.evidence.opening import PLAIN, open_within
from fedlasso.fitting.rounds import run_together
from fedlasso.fitting.validation import Validation, validate
from fedlasso.numerics import Array, Penalty
from fedlasso.sites import standardise

# Vectors that standardising takes on every split, and gradients without which no path gets far.
SCALING = 4
FEWEST = 10


def count_gradients(splits: int) -> int:
    """Return the fewest vectors of p numbers with which a path on every split is worth starting."""
    return splits * (SCALING + FEWEST)


class SplitEvidence(Evidence):
    """Gradients on the training rows of several splits.

    Sharing the directions of one split with the others was tried: a direction then costs a vector
    from every fold, and a path took three times the uploads.

    Attributes
    ----------
    parts : evidence on each split's training rows, by the split's name
    rows : array of the rows that each split holds out
    each : vectors of p numbers that each site may send for one split
    exact : whether errors are asked for with their fourth powers, as the paper does
    """

    def __init__(
        self, parts: Mapping[str, GradientEvidence], rows: Array, each: int, exact: bool = False
    ) -> None:
        self.parts = parts
        self.rows = rows
        self.each = each
        self.exact = exact

    @classmethod
    def open(
        cls,
        federation: Federation,
        splits: Sequence[str],
        budget: Budget,
        form: Penalty = PLAIN,
        **scaling: bool,
    ) -> SplitEvidence:
        """Standardise the training rows of every split by themselves, and ask first gradients.

        Parameters
        ----------
        federation : the sites
        splits : names of the splits
        budget : what each site may send for all splits together
        form : the penalty but for its strength, in the units of the sites' columns
        scaling : how rows are standardised; no held-out row takes part in its own prediction
        """
        least = count_gradients(len(splits))
        if budget.left < least:
            raise FedLassoError(
                f"uploads leave {budget.left:.0f} vectors to choose the penalty on {len(splits)} "
                f"splits, and that takes {least} or more; give more uploads, fewer folds, or a "
                "penalty"
            )
        ledger = metered(federation)
        standardised = [standardise(ledger, split, **scaling) for split in splits]
        for _, found in standardised:
            budget.spend(found.vectors)
        each = int(budget.left) // len(splits)
        # Bounds are those of coefficients on the original scale.
        parts = {
            split: open_within(view, budget.part(each), form.scaled(found.factors))
            for split, (view, found) in zip(splits, standardised, strict=True)
        }
        rows = np.array([float(found.held_out[0]) for _, found in standardised])
        if not rows.all():
            raise CannotFit(
                "too few rows to hold any out; give a penalty, a larger validation share or more "
                "rows"
            )
        return cls(parts, rows, each)

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self.parts)

    @property
    def path_tol(self) -> float:
        """Relative gap of the fits on a path."""
        return next(iter(self.parts.values())).path_tol

    @property
    def path_penalties(self) -> int:
        """How many penalties there are down to the end of the grid."""
        return next(iter(self.parts.values())).path_penalties

    def fit_many(self, wanted: Sequence[Wanted]) -> tuple[PathPoint, ...]:
        """Make one fit on each of several splits, side by side."""
        return run_together([self.parts[one.rows].asking(one) for one in wanted])

    def hold_out(self, fits: Sequence[PathPoint]) -> list[Validation]:
        """Return errors of one fit per split on the rows that the split holds out."""
        return [
            validate(part.ledger, fit.coefficients[:, None], purpose="penalty", exact=self.exact)
            for part, fit in zip(self.parts.values(), fits, strict=True)
        ]
