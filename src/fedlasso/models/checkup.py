"""A check of the sites' tables before a fit: everything to mend, and Table 1 by site."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import InProcess
from fedlasso.fitting.examination.table_one import (
    ColumnSummary,
    Listed,
    TableOne,
    ask_table,
    make_table_one,
)
from fedlasso.fitting.settings import Settings
from fedlasso.models.inputs import FileSource, name_sites
from fedlasso.models.table_one_cells import event_of
from fedlasso.sites import Site
from fedlasso.tables import OTHER, File, Outcome
from fedlasso.tables.held import Held, TableFinding, Tables, align, hold_files, write_options
from fedlasso.tables.outcome_findings import find_coding, find_leaks
from fedlasso.tables.table_problems import (
    FEW,
    filling,
    find_copies,
    find_identifiers,
    find_problems,
)
from fedlasso.tables.targets import order_classes

# Units of one quantity differ by such factors; laboratories report glucose, creatinine and
# cholesterol in mg/dL or in mmol/L.
FACTORS = {
    10.0: "10",
    100.0: "100",
    1000.0: "1000",
    1e6: "a million",
    2.2046: "2.2046 (pounds and kilograms)",
    2.54: "2.54 (centimetres and inches)",
    3.2808: "3.28 (feet and metres)",
    12.0: "12 (months and years)",
    30.44: "30.4 (days and months)",
    365.25: "365.25 (days and years)",
    7.0: "7 (days and weeks)",
    24.0: "24 (hours and days)",
    60.0: "60 (minutes and hours)",
    4.184: "4.184 (kilojoules and kilocalories)",
    18.02: "18 (mg/dL and mmol/L of glucose)",
    88.42: "88.4 (umol/L and mg/dL of creatinine)",
    38.67: "38.7 (mg/dL and mmol/L of cholesterol)",
}
# Mean and SD must both differ by the factor, within this fraction.
NEAR = 0.2
# Celsius of patients, to recognise Fahrenheit.
BODY = (34.0, 42.0)
FAHRENHEIT = "as degrees Fahrenheit are than Celsius"
# A mean of fewer SDs does not show the unit.
CLEAR_MEAN = 0.5
# Options that are offered with a note, and belong to the line to copy too.
CHOICES = ("family", "positive", "categorical")
# Levels of a text column in Table 1; others are pooled.
MAX_SHOWN = 20


@dataclass(frozen=True)
class Checked:
    """Everything found, what must be mended first, and Table 1 if there are common columns."""

    findings: tuple[TableFinding, ...]
    table: TableOne | None
    rows: int = 0

    @property
    def mends(self) -> int:
        return sum(finding.mend for finding in self.findings)

    @property
    def options(self) -> str:
        """The options of ``fedlasso fit`` that deal with what was found, to copy."""
        return write_options(
            (name, value)
            for finding in self.findings
            for name, value in finding.options
            if finding.mend or name in CHOICES
        )


def check_files(source: FileSource, settings: Settings) -> Checked:
    """Return everything that is wrong with files, and Table 1 of what all of them have."""
    named = source.target or source.time
    outcome = source.outcome(settings) if named else None
    findings: list[TableFinding] = []
    files = []
    for path, site in zip(source.files, name_sites(source.files), strict=True):
        codes = (*source.categorical, *([source.target] if source.positive is not None else []))
        try:
            files.append(File(Path(path), source.site_column, site, source.na, codes))
        except FedLassoError as error:
            findings.append(TableFinding(True, (site,), "", str(error)))
    held, unreadable = hold_files(files)
    out = {*source.drop, *filter(None, [source.site_column])}
    names = {site: [name for name in own if name not in out] for site, own in held.items()}
    wanted = () if outcome is None else outcome.names
    aligned, differences = align(names, wanted)
    findings += [*unreadable, *differences]
    if not held:
        # Of columns nothing is known.
        return Checked(tuple(findings), None)
    sites = {s: {c: held[s][own] for c, own in columns.items()} for s, columns in aligned.items()}
    common = tuple(next(iter(sites.values()), {}))
    tables = Tables(sites, common)
    identifiers = list(find_identifiers(files, {*wanted, *out, *settings.keep}))
    findings += identifiers
    left_out = {finding.column for finding in identifiers}
    tables.common = tuple(name for name in common if name not in left_out)
    findings += find_copies(files, tables)
    fills = source.missing == "mean"
    findings += find_problems(tables, wanted, source.min_level, fills)
    if outcome is not None:
        lost = [name for name in outcome.names if name not in common]
        if lost and not any(finding.column in lost for finding in findings):
            findings.append(TableFinding(True, (), lost[0], "is in no file", "name another column"))
        if not lost:
            findings += find_coding(tables, outcome, source.positive)
            findings += find_leaks(tables, outcome)
    table = None
    try:
        table = _describe(tables, outcome, source.positive)
    except FedLassoError as error:
        findings.append(TableFinding(True, (), "", f"Table 1: {error}"))
    if table is not None:
        findings += find_units(table)
    findings.sort(key=lambda finding: not finding.mend)
    rows = sum(len(rows) for file in files for rows in file.groups.values())
    return Checked(tuple(findings), table, rows)


def _describe(tables: Tables, outcome: Outcome | None, positive: str | None) -> TableOne | None:
    """Return Table 1 of the columns that all sites have in one type, the outcome first."""
    first = () if outcome is None else outcome.names
    names = [name for name in first if name in tables.common]
    names += [name for name in tables.common if name not in names]
    listed: list[Listed] = []
    parts: dict[str, list[np.ndarray]] = {site: [] for site in tables.sites}
    classes: dict[str, tuple[str, ...]] = {}
    if outcome is not None and outcome.target in tables.common:
        found = {code for own in tables.at(outcome.target).values() for code in own.codes}
        if len(found) == 2 and found != {"0", "1"}:
            chosen = positive if positive in found else None
            classes[outcome.target] = order_classes(outcome, found, chosen)
            outcome = replace(outcome, classes=classes[outcome.target])
    for name in names:
        held = tables.at(name)
        kind = tables.kind(name)
        if kind is None:
            continue
        levels = classes.get(name) or (_choose_levels(held) if kind == "text" else ())
        listed.append(Listed(name, levels))
        for site, own in held.items():
            parts[site] += _encode(own, levels)
    if not any(parts.values()):
        return None
    sites = [
        Site(site, np.column_stack(own), np.zeros(len(own[0])), raw=True, copy=False)
        for site, own in parts.items()
    ]
    event = None if outcome is None else event_of(outcome)
    return make_table_one(ask_table(InProcess(sites)), listed, event=event)


def _choose_levels(held: dict[str, Held]) -> tuple[str, ...]:
    counts: Counter[str] = sum((own.levels for own in held.values()), Counter())
    shown = sorted(level for level, _ in counts.most_common(MAX_SHOWN))
    return (*shown, OTHER) if len(counts) > MAX_SHOWN else tuple(shown)


def _encode(own: Held, levels: Sequence[str]) -> list[np.ndarray]:
    """Return a column as the numbers of a site: itself, or one column per level but the first."""
    if not levels:
        return [np.where(np.isfinite(own.numbers), own.numbers, np.nan)]
    texts = own.texts
    if own.kind != "text":
        texts = [None if np.isnan(n) else f"{n:.15g}" for n in own.numbers.tolist()]
    known = set(levels)
    coded = [None if t is None else t if t in known else OTHER for t in texts]
    return [
        np.array([np.nan if text is None else float(text == level) for text in coded])
        for level in levels[1:]
    ]


def find_units(table: TableOne) -> list[TableFinding]:
    """Return columns whose mean and SD differ between sites by the factor of two units."""
    return [
        finding
        for column in table.columns
        if column.kind == "number"
        for finding in _find_units(table.sites, column)
    ]


def _find_units(sites: Sequence[str], column: ColumnSummary) -> list[TableFinding]:
    known = [
        (site, own.mean, own.sd)
        for site, own in zip(sites, column.sites, strict=True)
        if own.mean is not None and own.sd and abs(own.mean) > CLEAR_MEAN * own.sd
    ]
    larger: dict[str, dict[str, str]] = {}
    for (one, mean, sd), (other, mean_there, sd_there) in permutations(known, 2):
        ratios = np.maximum([mean / mean_there, sd / sd_there], 1e-9)
        off = {factor: np.abs(np.log(ratios / factor)) for factor in FACTORS}
        # A mean is known far better than an SD: their standard errors, but for the rows.
        errors = np.array([np.hypot(sd / mean, sd_there / mean_there), 1.0])
        nearest = min(FACTORS, key=lambda factor: float(((off[factor] / errors) ** 2).sum()))
        if (off[nearest] < NEAR).all():
            larger.setdefault(one, {})[other] = FACTORS[nearest]
        warmer = abs(mean - (1.8 * mean_there + 32)) < sd < 0.05 * mean
        if warmer and BODY[0] < mean_there < BODY[1] and 1.2 < sd / sd_there < 2.7:
            larger.setdefault(one, {})[other] = FAHRENHEIT
    findings = []
    for one, others in larger.items():
        if any(set(others) < set(theirs) for theirs in larger.values()):
            continue
        # The fewer sites are more likely to have the other unit.
        texts = Counter(others.values())
        text = texts.most_common(1)[0][0]
        there = ", ".join(others)
        how = text if text == FAHRENHEIT else f"by about {text}"
        what = f"is larger here than at {there} {how}"
        findings.append(TableFinding(True, (one,), column.name, what, "use one unit"))
    return findings


def find_in_table(table: TableOne, fills: bool) -> list[TableFinding]:
    """Return what Table 1 alone shows: constant columns, missing values, and units."""
    findings = find_units(table)
    for column in table.columns:
        pooled = column.pooled
        if pooled.sd == 0 or column.levels[1:] == () != column.levels:
            findings.append(TableFinding(False, (), column.name, "is the same in every row"))
        if pooled.missing != 0:
            what = f"is missing in some of {pooled.rows} rows; {FEW}"
            if pooled.missing is not None:
                what = f"is missing in {pooled.missing} of {pooled.rows} rows"
            findings.append(TableFinding(not fills, (), column.name, what, *filling(fills)))
    return findings
