"""Columns that alone predict an outcome almost perfectly, so that they may contain it."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics import Array
from fedlasso.tables.columns import Encoded
from fedlasso.tables.targets import Outcome

# A column that alone explains so much of the outcome, or orders it so well, may contain it.
LEAK = 0.99
# Fewest rows of a leak.
MIN_ROWS = 20
# Before a fit, columns that some rows of each site do not suggest are passed over.
SOME_ROWS = 1000
SUGGESTED = 0.95
MOST_COLUMNS = 2000

Pairs = Sequence[tuple[Array, Array]]


def find_leak(pairs: Pairs, outcome: str, text: bool = False) -> str | None:
    """Return how well a column predicts the outcome, if nearly perfectly, at all sites or pooled.

    `pairs` are its values and those of the outcome by site; those of a text are places.
    """
    found = _measure(pairs, text)
    if found < LEAK:
        return None
    known = np.unique(np.concatenate([y for _, y in pairs]))
    measure = "AUROC" if (~np.isnan(known)).sum() == 2 else "R^2"
    return f"{outcome!r} almost perfectly ({measure} {found:.3f})"


def leaks_in(
    parts: Sequence[Encoded], columns: Sequence[str], outcome: Outcome
) -> Iterator[tuple[str, str]]:
    """Yield columns of the sites' records that may contain the outcome, and a warning of each."""
    family = outcome.response_family
    for role, name in outcome.roles.items():
        if role not in family.roles:
            continue
        responses = [part.response.y for part in parts]
        if family.loss.survival:
            read = np.abs if role == "time" else family.loss.disclosed_response
            responses = [read(y) for y in responses]
        if np.ptp(np.concatenate(responses)) == 0:
            continue
        chosen = [_choose_rows(y) for y in responses]
        for k, column in enumerate(columns[:MOST_COLUMNS]):
            pairs = [(part.X[:, k], y) for part, y in zip(parts, responses, strict=True)]
            some = [(x[few], y[few]) for (x, y), few in zip(pairs, chosen, strict=True)]
            if _measure(some) >= SUGGESTED and (found := find_leak(pairs, name)) is not None:
                yield (
                    column,
                    f"{column!r} alone predicts {found}; --drop it unless it is known before the "
                    "outcome",
                )


def _choose_rows(y: Array) -> NDArray[np.int64]:
    """Return rows at even ranks of the outcome, and those of the largest, such as rare events."""
    order = np.argsort(y, kind="stable")
    step = max(len(y) // SOME_ROWS, 1)
    return np.unique(np.concatenate([order[::step], order[-SOME_ROWS:]]))


def _measure(pairs: Pairs, text: bool = False) -> float:
    """Return the least measure of all sites, or for numbers that of all rows if it is larger."""
    measured = [_predicts(x, y, text) for x, y in pairs]
    least = min((own for own in measured if own is not None), default=0.0)
    if text:
        return least
    x, y = map(np.concatenate, zip(*pairs, strict=True))
    pooled = _predicts(x, y)
    return max(least, pooled or 0.0)


def _predicts(x: Array, y: Array, text: bool = False) -> float | None:
    """Return the AUROC of a column for two classes, either way, else R^2; None for few rows."""
    filled = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[filled], y[filled]
    if len(x) < MIN_ROWS or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    values, place = np.unique(x, return_inverse=True)
    if text:
        # The mean outcome of a level takes its place.
        counts = np.bincount(place)
        x = (np.bincount(place, y) / counts)[place]
        if len(values) > len(x) / 2:
            return None
    if len(np.unique(y)) > 2:
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.nan_to_num(np.corrcoef(x, y)[0, 1] ** 2))
    return _auroc(x, y == y.max())


def _auroc(x: Array, event: NDArray[np.bool_]) -> float:
    values, place = np.unique(x, return_inverse=True)
    events = np.bincount(place, event, len(values))
    others = np.bincount(place, ~event, len(values))
    below = np.cumsum(others) - others
    area = float(events @ (below + others / 2)) / float(events.sum() * others.sum())
    return max(area, 1 - area)
