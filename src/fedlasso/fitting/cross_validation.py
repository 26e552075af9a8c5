"""The penalty by held-out error: one holdout or k folds, every error a pooled sum."""

from collections.abc import Sequence

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.federation.messages import add_up
from fedlasso.fitting.goals import PATIENCE, SMALLEST_RATIO, TOL
from fedlasso.fitting.session import PathPoint, Session
from fedlasso.fitting.tuning import Curve, Rule, Validation, pool_errors
from fedlasso.numerics import L1
from fedlasso.sites import ValidationErrors, standardise

PENALTIES = 30
RATIO = 0.003
# Vectors that standardising takes on every split, and gradients without which no path gets far.
SCALING = 3
FEWEST = 10


def cross_validate(
    federation: Federation, splits: Sequence[str], uploads: int, rule: Rule, **scaling: bool
) -> Curve:
    """Walk down the penalties on every split at once, until the pooled error has long been rising.

    Each split has its own means and scales, as `scaling` asks for, so no held-out row takes part in
    its own prediction.
    """
    ledger = metered(federation)
    least = count_gradients(len(splits))
    if uploads < least:
        raise FedLassoError(
            f"uploads leave {uploads} vectors to choose the penalty on {len(splits)} splits, and "
            f"that takes {least} or more; give more uploads, fewer folds, or a penalty"
        )
    standardised = [standardise(ledger, split, **scaling) for split in splits]
    sent = sum(found.vectors for _, found in standardised)
    each = (uploads - sent) // len(splits)
    sessions = [Session(view, each) for view, _ in standardised]
    largest = max(session.largest_penalty for session in sessions)
    step = RATIO ** (1 / (PENALTIES - 1))
    lam = largest
    penalties: list[float] = []
    cut = False
    points: list[list[PathPoint]] = []
    errors: list[Validation] = []
    while True:
        starts = [point.coefficients for point in points[-1]] if points else [None] * len(splits)
        fits = [
            session.fit(L1(lam), start, TOL)
            for session, start in zip(sessions, starts, strict=True)
        ]
        if not all(point.certificate.relative_gap <= TOL for point in fits) and points:
            cut = True
            break
        points.append(fits)
        penalties.append(lam)
        # Every split's model is judged on the rows that it has not seen, over all splits.
        sums = [
            session.ledger.total(ValidationErrors(point.coefficients[:, None], "penalty"))
            for session, point in zip(sessions, fits, strict=True)
        ]
        active = np.array([np.mean([point.active for point in fits])])
        errors.append(pool_errors(add_up(tuple(sums)), active))
        error = [float(validation.error[0]) for validation in errors]
        if min(error) < min(error[-PATIENCE:]) or lam <= SMALLEST_RATIO * largest:
            break
        lam *= step
    validation = Validation(
        *(np.array([getattr(e, name)[0] for e in errors]) for name in ("error", "se", "active"))
    )
    return Curve(
        np.array(penalties),
        np.column_stack([fits[0].coefficients for fits in points]),
        validation,
        validation.select(rule),
        sent + max(session.spent for session in sessions) * len(sessions),
        cut,
    )


def count_gradients(splits: int) -> int:
    """Return the fewest vectors of p numbers with which a path on every split is worth starting."""
    return splits * (SCALING + FEWEST)
