"""Evidence on the training rows of several splits at once, and errors on the rows they hold out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedlasso.errors import CannotFit, FedLassoError, SameResponse
from fedlasso.federation import Federation, metered
from fedlasso.fitting.budget import LAST_TRIPS, Budget
from fedlasso.fitting.evidence.evidence import Evidence, PathPoint, Wanted
from fedlasso.fitting.evidence.gradient_evidence import PLAIN_LASSO, GradientEvidence, make_evidence
from fedlasso.fitting.fold_models import FoldModels
from fedlasso.fitting.rounds import run_together
from fedlasso.fitting.validation import TOO_FEW, Validation, mean_effect, validate
from fedlasso.numerics import Array, Penalty, find_loss
from fedlasso.sites import (
    INTERCEPT,
    Scaling,
    Standardiser,
    Viewed,
    with_shared_intercept,
)

# Vectors that standardising takes, unless means are far from zero, and gradients without which no
# path gets far.
SCALING = 5
FEWEST_GRADIENTS = 10
# Round trips without which no path gets far.
SEARCH_TRIPS = 20


def count_gradients(splits: int) -> int:
    """Return the minimum of vectors of p numbers for a useful path on every split."""
    return splits * (SCALING + FEWEST_GRADIENTS)


def _may_share_scales(federation: Federation, form: Penalty) -> bool:
    """Return whether the rows of splits may have means and scales of all rows.

    Not if an unpenalised column may be constant in them: its coefficient would be arbitrary.
    """
    columns = federation.columns
    free = form.free(len(columns))
    kept = any(own for own, name in zip(free, columns, strict=True) if name != INTERCEPT)
    return not (kept or find_loss(federation.loss).quadratic)


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
    judges : views of the splits without intercepts of the sites' own, where fits have those
    scalings : means and scales of each split's training rows
    """

    def __init__(
        self,
        parts: Mapping[str, GradientEvidence],
        rows: Array,
        each: int,
        exact: bool = False,
        judges: Mapping[str, Viewed] | None = None,
        scalings: Sequence[Scaling] = (),
    ) -> None:
        self.parts = parts
        self.judges = judges or {}
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
        standardiser: Standardiser,
        splits: Sequence[str],
        budget: Budget,
        form: Penalty = PLAIN_LASSO,
    ) -> SplitEvidence:
        """Standardise the training rows of every split, and ask first gradients.

        For least squares and with unpenalised columns they are standardised by themselves,
        otherwise by means and scales of all rows. `form` is the penalty at strength one in the
        units of the sites' columns, and `budget` that of all splits together.
        """
        budget.require_trips(LAST_TRIPS + SEARCH_TRIPS, "choosing a penalty by gradients")
        fewest = count_gradients(len(splits))
        if budget.left < fewest:
            raise FedLassoError(
                f"`uploads` leave {budget.left:.0f} vectors to choose the penalty on {len(splits)} "
                f"splits, and that takes {fewest} or more; give more `uploads`, fewer folds "
                "(`cv`), or a `penalty`"
            )
        before = standardiser.vectors
        shared = _may_share_scales(standardiser.federation, form)
        measured = standardiser.measure(splits, shared)
        budget.spend(standardiser.vectors - before)
        views = {split: view for split, view in measured.items() if isinstance(view, Viewed)}
        effects = {split: view for split, view in views.items() if view.site_effects}
        judges = {split: with_shared_intercept(view) for split, view in effects.items()}
        standardiser.define([*views.values(), *judges.values()])
        # With few rows a fold may be empty.
        used = {s: v for s, v in views.items() if standardiser.scaling(v).held_out[0]}
        if not used:
            alone = [same for same in measured.values() if isinstance(same, SameResponse)]
            raise alone[-1] if alone else CannotFit(f"the rows are {TOO_FEW}")
        each = int(budget.left) // len(used)
        scalings = [standardiser.scaling(view) for view in used.values()]
        parts = {
            split: make_evidence(
                metered(view), budget.part(each), form.scaled(own.factors), own.sizes
            )
            for (split, view), own in zip(used.items(), scalings, strict=True)
        }
        run_together([part.opening() for part in parts.values()])
        rows = np.array([float(own.held_out[0]) for own in scalings])
        return cls(parts, rows, each, judges=judges, scalings=scalings)

    def fit_many(self, wanted: Sequence[Wanted]) -> tuple[PathPoint, ...]:
        """Make one fit on each of several splits, side by side."""
        return run_together([self.parts[one.rows].asking(one) for one in wanted])

    def fold_models(self, fits: Sequence[PathPoint]) -> FoldModels | None:
        """Return one fit per split as models of folds, if the splits are all folds.

        With intercepts of the sites' own, a model has their mean.
        """
        models = []
        for part, scaling, fit in zip(self.parts.values(), self.scalings, fits, strict=True):
            coefficients, intercept = scaling.original(fit.coefficients)
            if part.ledger.site_effects:
                intercept += mean_effect(part.ledger, fit.coefficients)
            models.append((coefficients, intercept))
        return FoldModels.of_splits(self.splits, models)

    def hold_out(self, fits: Sequence[PathPoint]) -> list[Validation]:
        """Return errors of one fit per split on the rows that the split holds out.

        They are those of predictions: with site effects, rows have the mean of the intercepts.
        """
        found = []
        for (split, part), fit in zip(self.parts.items(), fits, strict=True):
            view: Federation = part.ledger
            b = fit.coefficients
            if split in self.judges:
                if view.columns[-1] == INTERCEPT:
                    b = np.append(b[:-1], mean_effect(view, b))
                view = self.judges[split]
            found.append(validate(view, b[:, None], purpose="penalty", exact=self.exact))
        return found
