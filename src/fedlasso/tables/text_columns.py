"""Text columns: numbers with stray texts among them, and the levels that all sites agree on.

A site discloses the levels that it has often enough. The agreed levels are those that any site
discloses; rows at other levels are pooled in one more. Files and networks follow the same rule.
"""

import re
import shlex
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Literal

from fedlasso.errors import FedLassoError
from fedlasso.federation.ledger import Notify
from fedlasso.sites.cells import LEVEL_ROWS, level_rows
from fedlasso.tables.files import File
from fedlasso.tables.values import Values

TextKind = Literal["text", "mixed", "numbers"]
# A number with either decimal mark: the wrong one makes a column text.
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*", re.ASCII)
# Fraction of numbers, among values or distinct values, from which the other texts are mistakes.
_MOSTLY_NUMBERS = 0.5
# The level of rows whose own level is rare everywhere.
OTHER = "(other)"
# By default, a level with fewer rows at every site is rare.
MIN_LEVEL = LEVEL_ROWS
# A text column with more levels is probably an identifier.
MAX_LEVELS = 200


def classify_texts(file: File, name: str, values: Values) -> tuple[TextKind, str]:
    """Return whether a text column holds text, text with some numbers (and where), or numbers.

    Numbers with a few texts among them are refused: those are missing values or mistakes.
    """
    texts = values.texts()
    counts = texts.counts()
    numeric = {level for level in counts if _NUMBER.fullmatch(level)}
    numbers = sum(counts[level] for level in numeric)
    filled = sum(counts.values())
    if numbers == 0:
        return "text", ""
    if numbers == filled:
        comma = {level for level in counts if "," in level}
        stray = comma or {level for level in counts if "." in level}
        # Parquet and Excel may hold numbers as text, on purpose.
        if not file.by_text and not comma:
            return "numbers", ""
    else:
        stray = counts.keys() - numeric
    if max(numbers / filled, len(numeric) / len(counts)) < _MOSTLY_NUMBERS:
        row, found = _first(texts, numeric)
        return "mixed", f"{numbers} of {filled} rows, {found!r} in row {row + 1}"
    row, found = _first(texts, stray)
    if numbers == filled:
        remedy = "use a decimal point in all numbers, or a comma with semicolons between columns"
    else:
        remedy = "correct it, or rename the numbers if all values are levels"
        if "," not in found:
            remedy = f"use --na {shlex.quote(found)} if it means a missing value, {remedy}"
    raise FedLassoError(
        f"{file.path}: column {name!r} holds {found!r} in row {row + 1} among numbers; {remedy}"
    )


def _first(texts: Values, levels: Collection[str]) -> tuple[int, str]:
    """Return the first row with one of these levels, and which one it is."""
    row = int((texts.places_in(tuple(levels)) >= 0).argmax())
    return row, texts.levels[texts.data[row]]


def common_levels(values: Values, min_level: int = MIN_LEVEL) -> tuple[str, ...]:
    """Return the levels with at least `min_level` rows at one site, sorted."""
    return tuple(sorted(level for level, rows in values.counts().items() if rows >= min_level))


def count_others(values: Values, levels: Sequence[str]) -> int:
    """Return how many rows are at none of these levels; missing values do not count."""
    return sum(rows for level, rows in values.counts().items() if level not in levels)


def union_levels(per_site: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the common levels of all sites, sorted; each site then reports others."""
    return tuple(sorted({level for levels in per_site for level in levels}))


def agree_levels(
    name: str, per_site: Sequence[Sequence[str]], others: bool, min_level: int = MIN_LEVEL
) -> tuple[str, ...]:
    """Return the levels of a text column at every site: sorted, and `OTHER` last.

    `per_site` has the `common_levels` of each site, in any order; `others` is whether any site has
    rows at none of them.
    """
    levels = tuple(level for level in union_levels(per_site) if level != OTHER)
    if others and not levels:
        raise FedLassoError(
            f"text column {name!r}: no level has {level_rows(min_level)} rows or more at any site; "
            "group the levels, lower --min-level, or --drop it if it identifies rows"
        )
    if len(levels) > MAX_LEVELS:
        raise FedLassoError(
            f"text column {name!r} has {len(levels)} levels; group them, raise --min-level, or "
            "--drop it if it identifies rows"
        )
    if others or any(OTHER in own for own in per_site):
        return (*levels, OTHER)
    return levels


def put_in_order(levels: Sequence[str], order: Sequence[str]) -> tuple[str, ...]:
    """Return levels in a given order; those that it lacks come last, as `OTHER` does."""
    places = {level: k for k, level in enumerate(order)}
    return tuple(sorted(levels, key=lambda level: places.get(level, len(places))))


def read_levels(
    files: Sequence[File], names: Sequence[str], min_level: int, notify: Notify
) -> dict[str, tuple[str, ...]]:
    """Return the agreed levels of the text columns of these names, over all sites in files."""
    if min_level < 1:
        raise FedLassoError(f"--min-level is {min_level}; give a whole number, 1 or more")
    fewest = level_rows(min_level)
    common: dict[str, list[tuple[str, ...]]] = {name: [] for name in names}
    for file in files:
        for name, values in file.columns(names):
            parts = [values.take(rows) for rows in file.groups.values()]
            common[name] += [common_levels(part, fewest) for part in parts]
    rare: dict[str, list[str]] = {name: [] for name in names}
    others = dict.fromkeys(names, False)
    for file in files:
        for name, values in file.columns(names):
            count = count_others(values, union_levels(common[name]))
            others[name] |= count > 0
            if 2 * count > len(values):
                rare[name].append(f"{file.path}: column {name!r}: {count} of {len(values)} rows")
    agreed = {name: agree_levels(name, common[name], others[name], min_level) for name in names}
    for where in chain.from_iterable(rare.values()):
        notify(f"warning: {where} have levels with fewer than {fewest} rows, now {OTHER!r}")
    return agreed
