"""How an outcome is coded at every site, and columns that give it away."""

from collections.abc import Iterator

import numpy as np

from fedlasso.numerics import Array
from fedlasso.tables.held import Held, TableFinding, Tables
from fedlasso.tables.leaks import find_leak
from fedlasso.tables.targets import OF_CLASSES, Outcome, order_classes


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
            if (found := find_leak(pairs, name, tables.kind(other) == "text")) is not None:
                what = f"alone predicts {found}"
                remedy = "leave it out unless it is known before the outcome"
                yield TableFinding(True, (), other, what, remedy, (("drop", other),))


def _to_numbers(own: Held) -> Array:
    """Return numbers, or the places of texts in alphabetical order."""
    if own.kind != "text":
        return own.numbers
    place = {level: float(k) for k, level in enumerate(sorted(own.levels))}
    return np.array([np.nan if text is None else place[text] for text in own.texts])
