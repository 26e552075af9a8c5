"""The penalty by held-out error: one holdout or k folds, every error a pooled sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation
from fedlasso.fitting import Explorer, PathPoint, Rule, Validation, pool_errors
from fedlasso.fitting.goals import PATIENCE, TOL
from fedlasso.numerics import Array
from fedlasso.sites import ValidationErrors, standardise

PENALTIES, RATIO = 30, 0.003


@dataclass(frozen=True, eq=False)
class Curve:
    """Held-out error along the penalty path.

    Attributes
    ----------
    penalties : array (L,)
    coefficients : array (p, L), on the standardised scale, of the first split
    validation : pooled errors and active counts
    chosen : index of the penalty that was chosen
    sent : vectors of p numbers that each site sent for it
    """

    penalties: Array
    coefficients: Array
    validation: Validation
    chosen: int
    sent: int

    @property
    def lam(self) -> float:
        """The chosen penalty."""
        return float(self.penalties[self.chosen])


def search(
    federation: Federation,
    splits: Sequence[str],
    uploads: int,
    rule: Rule,
    *,
    centre: bool = True,
    scale: bool = True,
) -> Curve:
    """Walk down the penalties on every split at once, until the pooled error has long been rising.

    Each split has its own means and scales, so no held-out row takes part in its own prediction.
    """
    views, sent = [], 0
    for split in splits:
        view, scaling = standardise(federation, split, centre=centre, scale=scale)
        views.append(view)
        sent += scaling.vectors
    each = (uploads - sent) // len(views)
    if each < 2:
        raise FedLassoError(
            f"too few uploads to choose the penalty on {len(views)} splits; "
            f"give at least {sent + 10 * len(views)}, or a penalty"
        )
    explorers = [Explorer(view, each) for view in views]
    largest = max(explorer.largest_penalty for explorer in explorers)
    grid = largest * np.logspace(0.0, np.log10(RATIO), PENALTIES)
    points: list[list[PathPoint]] = []
    errors: list[Validation] = []
    for lam in grid:
        starts = [point.coefficients for point in points[-1]] if points else [None] * len(views)
        fits = [
            explorer.fit(float(lam), start=start, tol=TOL)
            for explorer, start in zip(explorers, starts, strict=True)
        ]
        if not all(point.certificate.relative_gap <= TOL for point in fits) and points:
            break
        replies = [
            reply
            for view, point in zip(views, fits, strict=True)
            for reply in view.ask(ValidationErrors(point.coefficients[:, None], "penalty"))
        ]
        active = np.array([np.mean([point.active for point in fits])])
        points.append(fits)
        errors.append(pool_errors(replies, active))
        mse = [float(e.mse[0]) for e in errors]
        if min(mse) < min(mse[-PATIENCE:]):
            break
    validation = Validation(
        *(np.array([getattr(e, n)[0] for e in errors]) for n in ("mse", "se", "active"))
    )
    return Curve(
        grid[: len(points)],
        np.column_stack([fits[0].coefficients for fits in points]),
        validation,
        validation.select(rule),
        sent + max(explorer.spent for explorer in explorers) * len(explorers),
    )
