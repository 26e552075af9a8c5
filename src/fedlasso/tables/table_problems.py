"""What is wrong with the sites' tables, all at once: types, levels, missing values, copies."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import combinations

import numpy as np

from fedlasso.numerics import Array
from fedlasso.sites.cells import CELL_ROWS, level_rows, withholds
from fedlasso.tables.copies import compare_files
from fedlasso.tables.files import File
from fedlasso.tables.held import Held, Options, TableFinding, Tables, found_identifier
from fedlasso.tables.text_columns import MAX_LEVELS, OTHER

# Numbers and texts that often mean a missing value.
CODES = (-9, -99, -999, -9999, 9, 99, 999, 9999)
TEXT_CODES = ("?", ".", "-", "--", "*", "na", "n/a", "n.a.", "unknown", "unk", "missing", "nk")
# A number with few values may be a code of categories.
FEW_VALUES = 8
# Fraction of different rows from which rows that two sites share are no coincidence.
MOSTLY_DIFFERENT = 0.9
MIN_SHARED = 3
FEW = f"numbers withheld, because fewer than {CELL_ROWS} rows of some site lack it"


def find_problems(
    tables: Tables, outcome: Collection[str], min_level: int, fills: bool
) -> Iterator[TableFinding]:
    """Yield findings about the columns that every site has; `fills` if missing values are."""
    for name in tables.common:
        held = tables.at(name)
        if tables.kind(name) is None:
            by_kind: dict[str, list[str]] = {}
            for site, own in held.items():
                by_kind.setdefault(f"{own.kind}s", []).append(site)
            kinds = " but ".join(f"{kind} at {', '.join(at)}" for kind, at in by_kind.items())
            drop = () if name in outcome else (("drop", name),)
            remedy = "use one type, or leave it out" if drop else "use one type"
            yield TableFinding(True, (), name, f"holds {kinds}", remedy, drop)
            continue
        yield from _find_missing(name, held, name in outcome, fills)
        if name not in outcome:
            yield from _find_constants(name, held)
        if tables.kind(name) == "text":
            yield from _find_levels(name, held, min_level, name in outcome)
        elif name not in outcome:
            yield from _find_categories(name, held)


def filling(fills: bool) -> tuple[str, Options]:
    """Return what to do with missing values of a column, and the option for it."""
    if fills:
        return "a fit replaces them by the mean", ()
    return "fill them, or replace them by the mean", (("missing", "mean"),)


def _find_missing(
    name: str, held: dict[str, Held], outcome: bool, fills: bool
) -> Iterator[TableFinding]:
    gaps = {site: own.missing for site, own in held.items() if own.missing}
    if gaps:
        # As in Table 1, which stands below the findings.
        if withholds(gaps.values()):
            what = f"is missing at {', '.join(gaps)}; {FEW}"
        else:
            what = f"is missing: {', '.join(f'{n} at {site}' for site, n in gaps.items())}"
        remedy, options = filling(fills)
        if outcome:
            remedy, options = "remove those rows", ()
        yield TableFinding(outcome or not fills, (), name, what, remedy, options)
    for site, own in held.items():
        if own.strays:
            some = ", ".join(map(repr, list(own.strays)[:3]))
            what = f"holds {some} among numbers"
            codes = [text for text in own.strays if "," not in text]
            comma = len(codes) < len(own.strays)
            named: Options = () if comma else tuple(("na", text) for text in codes[:3])
            remedy = "use a decimal point" if comma else "correct it, or name it as missing"
            yield TableFinding(True, (site,), name, what, remedy, named)
    for site, own in held.items():
        others = np.concatenate([each.numbers for each in held.values()])
        found = [*_number_codes(own.numbers, others), *_text_codes(own)]
        if found:
            what = f"holds {', '.join(found)}, which may mean a missing value"
            named = tuple(("na", code) for code in found)
            yield TableFinding(True, (site,), name, what, "name it as missing if it does", named)


def _number_codes(own: Array, everywhere: Array) -> list[str]:
    """Return codes of missing values: numbers apart from all others."""
    values = np.unique(everywhere[~np.isnan(everywhere)])
    others = values[~np.isin(values, CODES)]
    if others.size < 2:
        return []
    low, high = others[0], others[-1]
    apart = [c for c in CODES if (c < 0 <= low) or (c > high and c - high >= high - low)]
    return [str(code) for code in apart if (own == code).any()]


def _text_codes(own: Held) -> list[str]:
    return [text for text in own.levels if text.strip().lower() in TEXT_CODES]


def _find_constants(name: str, held: dict[str, Held]) -> Iterator[TableFinding]:
    values = {site: own.codes for site, own in held.items()}
    everywhere = {code for codes in values.values() for code in codes}
    if len(everywhere) == 1:
        what = f"is {next(iter(everywhere))!r} in every row of all sites"
        yield TableFinding(False, (), name, what, "a fit leaves it out", (("drop", name),))
        return
    for site, codes in values.items():
        if len(codes) == 1:
            yield TableFinding(False, (site,), name, f"is {codes[0]!r} in every row there")


def _find_levels(
    name: str, held: dict[str, Held], min_level: int, outcome: bool
) -> Iterator[TableFinding]:
    per_site = {site: own.levels for site, own in held.items()}
    spelled: dict[str, set[str]] = {}
    for levels in per_site.values():
        for level in levels:
            spelled.setdefault(" ".join(level.lower().split()), set()).add(level)
    alike = sorted(
        level for variants in spelled.values() if len(variants) > 1 for level in variants
    )
    if alike:
        where = [f"{level!r} at {_list(per_site, level)}" for level in alike]
        what = f"has levels that differ only in case or blanks: {'; '.join(where)}"
        yield TableFinding(True, (), name, what, "spell them alike")
    if outcome:
        return
    drop = (("drop", name),)
    fewest = level_rows(min_level)
    common = {v for levels in per_site.values() for v, n in levels.items() if n >= fewest}
    rare = sorted({v for levels in per_site.values() for v in levels} - common)
    if not common or len(common) > MAX_LEVELS:
        how = f"{len(common)} levels have {fewest} rows or more at some site"
        yield TableFinding(True, (), name, how, "group them, or leave the column out", drop)
    elif rare:
        some = ", ".join(map(repr, rare[:3])) + (" ..." if len(rare) > 3 else "")
        who = "a level has" if len(rare) == 1 else f"{len(rare)} levels have"
        what = f"{who} fewer than {fewest} rows at every site ({some})"
        remedy = f"a fit pools them as {OTHER!r}; group them yourself"
        yield TableFinding(False, (), name, what, remedy)
    for level in sorted(common.difference(alike)):
        if len(sites := [s for s, levels in per_site.items() if level in levels]) < len(held):
            yield TableFinding(False, tuple(sites), name, f"only here it has the level {level!r}")


def _list(per_site: dict[str, Counter[str]], level: str) -> str:
    return ", ".join(site for site, levels in per_site.items() if level in levels)


def _find_categories(name: str, held: dict[str, Held]) -> Iterator[TableFinding]:
    numbers = np.concatenate([own.numbers for own in held.values()])
    values = np.unique(numbers[~np.isnan(numbers)])
    whole = bool((values == np.rint(values)).all())
    if whole and 2 < values.size <= FEW_VALUES and values[0] in (0, 1) and values[-1] < 10:
        listed = ", ".join(f"{value:g}" for value in values)
        what = f"holds only {listed}"
        remedy = "if these are codes and not amounts, make them levels"
        yield TableFinding(False, (), name, what, remedy, (("categorical", name),))


def find_identifiers(files: Iterable[File], wanted: Collection[str]) -> Iterator[TableFinding]:
    """Yield columns that a fit leaves out because they identify the rows."""
    found: dict[str, list[str]] = {}
    for file in files:
        for name in file.identifiers:
            if name not in wanted:
                found.setdefault(name, []).extend(file.groups)
    for name, sites in found.items():
        yield found_identifier(name, sites)


def find_copies(files: Iterable[File], tables: Tables) -> Iterator[TableFinding]:
    """Yield files that are the same, and rows that several sites have."""
    copies = set()
    for file, second in combinations(files, 2):
        if same := compare_files(file.path, second.path):
            pair = (*file.groups, *second.groups)
            copies.add(pair)
            yield TableFinding(True, pair, "", f"the files {same}", "give every site's file once")
    names = [name for name in tables.common if tables.kind(name) is not None]
    rows = {site: _list_rows(columns, names) for site, columns in tables.sites.items()}
    for one, other in combinations(rows, 2):
        shared = len(set(rows[one]) & set(rows[other]))
        different = min(len(set(own)) / max(len(own), 1) for own in (rows[one], rows[other]))
        if (one, other) not in copies and shared >= MIN_SHARED and different > MOSTLY_DIFFERENT:
            what = f"{shared} rows are the same at both"
            yield TableFinding(True, (one, other), "", what, "remove them at one site")


def _list_rows(columns: dict[str, Held], names: list[str]) -> list[tuple[object, ...]]:
    # Missing values are equal to each other.
    parts = [
        np.nan_to_num(own.numbers, nan=-np.pi).tolist() if own.kind != "text" else own.texts
        for own in (columns[name] for name in names)
    ]
    return list(zip(*parts, strict=True))
