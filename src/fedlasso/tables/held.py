"""The columns of all sites side by side, whatever is wrong with them, and findings about them."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.numerics import Array
from fedlasso.tables.columns import kind_of, to_numbers
from fedlasso.tables.files import File
from fedlasso.tables.values import Values, to_float

Options = tuple[tuple[str, str], ...]
HeldKind = Literal["number", "text", "empty", "other"]
# Fraction of numbers from which other texts in a column are strays.
_MOSTLY_NUMBERS = 0.5


@dataclass(frozen=True)
class TableFinding:
    """Something in the sites' tables that must be mended before a fit, or only noted.

    `options` are those of ``fedlasso fit`` that deal with it, by name.
    """

    mend: bool
    sites: tuple[str, ...]
    column: str
    what: str
    remedy: str = ""
    options: Options = ()

    @property
    def place(self) -> str:
        """The sites and the column, as text."""
        sites = f"site{'s' * (len(self.sites) > 1)} {', '.join(self.sites)}" if self.sites else ""
        column = f"column {self.column!r}" if self.column else ""
        return ", ".join(filter(None, (sites, column))) or "all sites"

    def __str__(self) -> str:
        remedy = f"; {self.remedy}" if self.remedy else ""
        given = f" ({write_options(self.options)})" if self.options else ""
        return f"{self.place}: {self.what}{remedy}{given}"


def found_identifier(name: str, sites: Sequence[str] = ()) -> TableFinding:
    """Return the finding that a column identifies the rows."""
    what = "identifies the rows: every value differs"
    drop = (("drop", name),)
    return TableFinding(False, tuple(sites), name, what, "a fit leaves it out", drop)


def write_options(options: Iterable[tuple[str, str]]) -> str:
    """Return options as they are typed; values of one option are separated by commas."""
    given: dict[str, dict[str, None]] = {}
    for name, value in options:
        given.setdefault(name, {})[value] = None
    # With the equals sign a value may begin with a minus sign.
    return " ".join(f"--{name}={shlex.quote(','.join(own))}" for name, own in given.items())


@dataclass(eq=False)
class Held:
    """One column at one site: its values as numbers or texts, with strays among numbers."""

    name: str
    kind: HeldKind
    numbers: Array = field(default_factory=lambda: np.empty(0))
    texts: Sequence[str | None] = ()
    strays: Counter[str] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        if self.kind == "number":
            return int(np.isnan(self.numbers).sum()) - sum(self.strays.values())
        return sum(text is None for text in self.texts)

    @property
    def levels(self) -> Counter[str]:
        return Counter(text for text in self.texts if text is not None)

    @property
    def codes(self) -> tuple[str, ...]:
        """The different values, as texts."""
        if self.kind == "number":
            found = np.unique(self.numbers[~np.isnan(self.numbers)])
            return tuple(f"{value:.15g}" for value in found)
        return tuple(sorted(self.levels))


@dataclass(eq=False)
class Tables:
    """Columns by site; `common` are the names that every site has, spelled as most sites do."""

    sites: dict[str, dict[str, Held]]
    common: tuple[str, ...] = ()

    def at(self, name: str) -> dict[str, Held]:
        """Return a column at the sites that have it."""
        return {site: columns[name] for site, columns in self.sites.items() if name in columns}

    def kind(self, name: str) -> HeldKind | None:
        """Return what a column holds at all sites; None if that differs."""
        kinds = {held.kind for held in self.at(name).values()} - {"empty"}
        return next(iter(kinds), "empty") if len(kinds) < 2 else None


def hold_files(files: Iterable[File]) -> tuple[dict[str, dict[str, Held]], list[TableFinding]]:
    """Return the columns of every site in files."""
    sites: dict[str, dict[str, Held]] = {}
    findings = []
    for file in files:
        for name, values in file.columns(file.names):
            try:
                kind: HeldKind = kind_of(file, name)
            except FedLassoError:
                kind = "other"
                what = f"holds {values.kind}, which is neither numbers nor text"
                options = (("drop", name),)
                remedy = "convert it, or leave it out"
                findings.append(TableFinding(True, tuple(file.groups), name, what, remedy, options))
            for site, rows in file.groups.items():
                own = sites.setdefault(site, {})
                if kind != "other":
                    own[name] = hold(name, kind, values.take(rows), name in file.categorical)
    return sites, findings


def hold(name: str, kind: HeldKind, values: Values, categorical: bool = False) -> Held:
    """Return a column's values; texts that are mostly numbers are numbers with strays."""
    if kind != "text":
        numbers = to_numbers(values) if kind == "number" else np.full(len(values), np.nan)
        return Held(name, kind, numbers)
    texts = values.texts().to_list()
    filled = [text for text in texts if text is not None]
    read = [to_float(text.replace(",", ".")) for text in filled]
    numeric = sum(number is not None for number in read)
    if categorical or numeric < max(_MOSTLY_NUMBERS * len(filled), 1):
        return Held(name, "text", texts=texts)
    found = [None if text is None else to_float(text) for text in texts]
    numbers = np.array([np.nan if number is None else number for number in found])
    strays = Counter(t for t in filled if to_float(t) is None)
    return Held(name, "number", numbers, strays=strays)


def align(
    named: Mapping[str, Sequence[str]], wanted: Sequence[str]
) -> tuple[dict[str, dict[str, str]], list[TableFinding]]:
    """Return each site's own name of the columns that all have, by common name, and differences.

    Names that differ only in case, blanks or marks between words mean the same column.
    """
    spelled: dict[str, dict[str, str]] = {}
    for site, names in named.items():
        keys = Counter(map(_normalise, names))
        for name in names:
            key = _normalise(name) if keys[_normalise(name)] == 1 else name
            spelled.setdefault(key, {})[site] = name
    findings = []
    aligned: dict[str, dict[str, str]] = {site: {} for site in named}
    for own in spelled.values():
        usual = Counter(own.values())
        common = next((name for name in usual if name in wanted), usual.most_common(1)[0][0])
        for other in usual:
            if other != common:
                sites = tuple(site for site, name in own.items() if name == other)
                what = f"is called {common!r} at other sites"
                findings.append(TableFinding(True, sites, other, what, "rename it"))
        if lacking := [site for site in named if site not in own]:
            what = f"is not at {', '.join(lacking)}"
            drop = () if common in wanted else (("drop", common),)
            remedy = "add it there" + ("" if common in wanted else ", or leave it out")
            findings.append(TableFinding(True, tuple(own), common, what, remedy, drop))
        else:
            for site, name in own.items():
                aligned[site][common] = name
    return aligned, findings


def _normalise(name: str) -> str:
    return re.sub(r"[\s._-]+", "_", name.strip()).lower()
