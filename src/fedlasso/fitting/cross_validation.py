"""The penalty by held-out error: one holdout or k folds, every error a pooled sum."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.federation.messages import add_up
from fedlasso.fitting.goals import PATIENCE, TOL, GoalFit
from fedlasso.fitting.session import PathPoint, Session
from fedlasso.fitting.tuning import Rule, Validation, pool_errors
from fedlasso.numerics import L1, Array
from fedlasso.sites import ValidationErrors, standardise

PENALTIES = 30
RATIO = 0.003


@dataclass(frozen=True, eq=False)
class Curve:
    """Held-out error along the penalty path, for which each site sent so many vectors.

    Coefficients are p by L, on the standardised scale, of the first split.
    """

    penalties: Array
    coefficients: Array
    validation: Validation
    chosen: int
    sent: int = 0

    @property
    def lam(self) -> float:
        """The chosen penalty."""
        return float(self.penalties[self.chosen])

    @classmethod
    def of_goal(cls, fit: GoalFit) -> Self:
        """Return the Lasso path of a fit by goal; its best penalty weighted the other families."""
        points = [point for point, _ in fit.explored]
        errors = np.array([error for _, error in fit.explored])
        active = np.array([float(point.active) for point in points])
        return cls(
            np.array([point.lam for point in points]),
            np.column_stack([point.coefficients for point in points]),
            Validation(errors, np.full(errors.shape, np.nan), active),
            int(errors.argmin()),
        )


def cross_validate(
    federation: Federation, splits: Sequence[str], uploads: int, rule: Rule, **scaling: bool
) -> Curve:
    """Walk down the penalties on every split at once, until the pooled error has long been rising.

    Each split has its own means and scales, as `scaling` asks for, so no held-out row takes part in
    its own prediction.
    """
    ledger = metered(federation)
    standardised = [standardise(ledger, split, **scaling) for split in splits]
    sent = sum(found.vectors for _, found in standardised)
    each = (uploads - sent) // len(splits)
    if each < 2:
        raise FedLassoError(
            f"too few uploads to choose the penalty on {len(splits)} splits; "
            f"give at least {sent + 10 * len(splits)}, or a penalty"
        )
    sessions = [Session(view, each) for view, _ in standardised]
    largest = max(session.largest_penalty for session in sessions)
    grid = largest * np.logspace(0.0, np.log10(RATIO), PENALTIES)
    points: list[list[PathPoint]] = []
    errors: list[Validation] = []
    for lam in grid:
        starts = [point.coefficients for point in points[-1]] if points else [None] * len(splits)
        fits = [
            session.fit(L1(float(lam)), start, TOL)
            for session, start in zip(sessions, starts, strict=True)
        ]
        if not all(point.certificate.relative_gap <= TOL for point in fits) and points:
            break
        points.append(fits)
        # Every split's model is judged on the rows that it has not seen, over all splits.
        sums = [
            session.ledger.total(ValidationErrors(point.coefficients[:, None], "penalty"))
            for session, point in zip(sessions, fits, strict=True)
        ]
        active = np.array([np.mean([point.active for point in fits])])
        errors.append(pool_errors(add_up(tuple(sums)), active))
        error = [float(validation.error[0]) for validation in errors]
        if min(error) < min(error[-PATIENCE:]):
            break
    validation = Validation(
        *(np.array([getattr(e, name)[0] for e in errors]) for name in ("error", "se", "active"))
    )
    return Curve(
        grid[: len(points)],
        np.column_stack([fits[0].coefficients for fits in points]),
        validation,
        validation.select(rule),
        sent + max(session.spent for session in sessions) * len(sessions),
    )
