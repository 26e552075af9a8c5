"""How an outcome is coded at every site, and columns that give it away."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics import Array
from fedlasso.tables.held import Held, TableFinding, Tables
from fedlasso.tables.targets import OF_CLASSES, Outcome, order_classes

# A column that alone explains so much of the outcome, or orders it so well, may contain it.
LEAK = 0.99
# Fewest rows of a leak.
MIN_ROWS = 20


def find_coding(tables: Tables, outcome: Outcome, positive: str | None) -> Iterator[TableFinding]:
    """Yield what a target of two values stands for, and whether sites code it alike."""
    name = outcome.target
    held = tables.at(name)
    codes = {site: own.codes for site, own in held.items()}
    found = sorted({code for own in codes.values() for code in own})
    takes = outcome.response_family.takes_classes
    binary = len(found) == 2 or takes
    if binary and tables.kind(name) is not None:
        alike = {own for own in codes.values() if len(own) == 2}
        if len(alike) > 1:
            coded = ", ".join(f"{'/'.join(own)} at {site}" for site, own in codes.items())
            yield TableFinding(True, (), name, f"is coded differently: {coded}", "code it alike")
        elif len(found) == 2:
            yield _find_classes(name, found, outcome, positive, tables.kind(name) == "text")
        else:
            what = f"has {len(found)} values, but two classes are needed"
            yield TableFinding(True, (), name, what, "group them, or choose another --family")
    for site, own in codes.items():
        if len(own) == 1:
            yield TableFinding(False, (site,), name, f"is {own[0]!r} in every row there")


def _find_classes(
    name: str, found: list[str], outcome: Outcome, positive: str | None, text: bool
) -> TableFinding:
    zero, one = order_classes(outcome, found, positive if positive in found else None)
    takes = outcome.response_family.takes_classes
    family = () if takes else (("family", OF_CLASSES),)
    what = f"has two classes: {one!r} is 1 and {zero!r} is 0"
    if found == ["0", "1"] and not text:
        remedy = "" if takes else "a linear model of it has no probabilities"
        return TableFinding(False, (), name, what, remedy, family)
    mend = positive is None and not text
    return TableFinding(mend, (), name, what, "name the event", (*family, ("positive", one)))


def find_leaks(tables: Tables, outcome: Outcome) -> Iterator[TableFinding]:
    """Yield columns that alone predict the outcome almost perfectly, at all sites or pooled."""
    for role, name in outcome.roles.items():
        if role not in outcome.response_family.roles or tables.kind(name) is None:
            continue
        response = {site: _to_numbers(own) for site, own in tables.at(name).items()}
        whole = np.concatenate(list(response.values()))
        if len(np.unique(whole[~np.isnan(whole)])) < 2:
            continue
        for other in tables.common:
            if other in outcome.names or tables.kind(other) not in ("number", "text"):
                continue
            held = tables.at(other)
            pairs = [(_to_numbers(own), response[site]) for site, own in held.items()]
            pooled = np.concatenate([x for x, _ in pairs])
            measured = [_predicts(x, y, tables.kind(other) == "text") for x, y in pairs]
            known = [own for own in measured if own is not None]
            if tables.kind(other) == "number":
                best = _predicts(pooled, whole, False)
                known = [max(min(known, default=0.0), best or 0.0)]
            if known and min(known) >= LEAK:
                measure = "AUROC" if len(np.unique(whole[~np.isnan(whole)])) == 2 else "R^2"
                what = f"alone predicts {name!r} almost perfectly ({measure} {min(known):.3f})"
                remedy = "leave it out unless it is known before the outcome"
                yield TableFinding(True, (), other, what, remedy, (("drop", other),))


def _to_numbers(own: Held) -> Array:
    """Return numbers, or the places of texts in alphabetical order."""
    if own.kind != "text":
        return own.numbers
    place = {level: float(k) for k, level in enumerate(sorted(own.levels))}
    return np.array([np.nan if text is None else place[text] for text in own.texts])


def _predicts(x: Array, y: Array, text: bool) -> float | None:
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
