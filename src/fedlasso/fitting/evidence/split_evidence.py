"""Evidence on the training rows of several splits at once, and errors on the rows they hold out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedlasso.errors import CannotFit, FedLassoError, SameResponse
from fedlasso.federation import Federation, metered
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.evidence.evidence import Evidence, PathPoint, Wanted
from fedlasso.fitting.evidence.gradient_evidence import PLAIN_LASSO, GradientEvidence, open_within
from fedlasso.fitting.fold_models import FoldModels
from fedlasso.fitting.rounds import run_together
from fedlasso.fitting.validation import TOO_FEW, Validation, validate
from fedlasso.numerics import Array, Penalty
from fedlasso.sites import EffectAt, Scaling, all_folds, standardise

# Vectors that standardising takes, at most, and gradients without which no path gets far.
SCALING = 4
FEWEST_GRADIENTS = 10


def count_gradients(splits: int) -> int:
    """Return the minimum of vectors of p numbers for a useful path on every split."""
    return splits * (SCALING + FEWEST_GRADIENTS)


class SplitEvidence(Evidence):
    """Gradients on the training rows of several splits.

    Using the directions of one split for the others was tried: a direction then costs a vector
    from every fold, and a path took three times the uploads.

    Attributes
    ----------
    parts : evidence on each split's training rows, by the split's name
    rows : array of the rows that each split holds out
    each : vectors of p numbers that each site may send for one split
    exact : whether standard errors come from fourth powers of errors, as in the paper
    scalings : means and scales of each split's training rows
    """

    def __init__(
        self,
        parts: Mapping[str, GradientEvidence],
        rows: Array,
        each: int,
        exact: bool = False,
        scalings: Sequence[Scaling] = (),
    ) -> None:
        self.parts = parts
        self.rows = rows
        self.each = each
        self.exact = exact
        self.scalings = scalings
        self.splits = tuple(parts)
        first = parts[self.splits[0]]
        self.path_tol = first.path_tol
        self.path_penalties = first.path_penalties

    @classmethod
    def open(
        cls,
        federation: Federation,
        splits: Sequence[str],
        budget: Budget,
        form: Penalty = PLAIN_LASSO,
        **scaling: bool,
    ) -> SplitEvidence:
        """Standardise the training rows of every split by themselves, and ask first gradients.

        `form` is the penalty at strength one in the units of the sites' columns, and `budget` that
        of all splits together.
        """
        fewest = count_gradients(len(splits))
        if budget.left < fewest:
            raise FedLassoError(
                f"uploads leave {budget.left:.0f} vectors to choose the penalty on {len(splits)} "
                f"splits, and that takes {fewest} or more; give more uploads, fewer folds, or a "
                "penalty"
            )
        ledger = metered(federation)
        used = {}
        alone = None
        for split in splits:
            try:
                view, own = standardise(ledger, split, **scaling)
            except SameResponse as same:
                # All rows of a rare class may be in one fold.
                alone = same
                budget.spend(SCALING // 2)
                continue
            budget.spend(own.vectors)
            # With few rows a fold may be empty.
            if own.held_out[0]:
                used[split] = (view, own)
        if not used:
            raise alone or CannotFit(f"the rows are {TOO_FEW}")
        each = int(budget.left) // len(used)
        parts = {
            split: open_within(view, budget.part(each), form.scaled(own.factors))
            for split, (view, own) in used.items()
        }
        rows = np.array([float(own.held_out[0]) for _, own in used.values()])
        return cls(parts, rows, each, scalings=[own for _, own in used.values()])

    def fit_many(self, wanted: Sequence[Wanted]) -> tuple[PathPoint, ...]:
        """Make one fit on each of several splits, side by side."""
        return run_together([self.parts[one.rows].asking(one) for one in wanted])

    def fold_models(self, fits: Sequence[PathPoint]) -> FoldModels | None:
        """Return one fit per split as models of folds, if the splits are all folds.

        With intercepts of the sites' own, a model has their mean.
        """
        first, *_ = (*self.splits[0].split(), "")
        if first != "fold":
            return None
        _, _, _, count, seed = self.splits[0].split()
        if int(count) != len(self.splits):
            return None
        models = []
        for part, scaling, fit in zip(self.parts.values(), self.scalings, fits, strict=True):
            coefficients, intercept = scaling.original(fit.coefficients)
            if part.ledger.site_effects:
                sent = part.ledger.total(EffectAt(fit.coefficients))
                intercept += sent.effects / sent.weight if sent.weight else 0.0
            models.append((coefficients, intercept))
        return FoldModels.of(all_folds(int(count), int(seed)), models)

    def hold_out(self, fits: Sequence[PathPoint]) -> list[Validation]:
        """Return errors of one fit per split on the rows that the split holds out."""
        return [
            validate(part.ledger, fit.coefficients[:, None], purpose="penalty", exact=self.exact)
            for part, fit in zip(self.parts.values(), fits, strict=True)
        ]
