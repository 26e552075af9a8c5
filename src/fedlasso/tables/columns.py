"""The schema that sites agree on, and the encoding of files by it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from itertools import permutations
from types import MappingProxyType
from typing import Literal

import msgspec
import numpy as np

from fedlasso.errors import FedLassoError, QuotesRecords
from fedlasso.federation.ledger import Notify
from fedlasso.numerics import Array
from fedlasso.sites import check_size, check_two_rows
from fedlasso.tables.files import File, columns_of
from fedlasso.tables.formula import FormulaTerms, Knots, apply_formula, resolve_formula
from fedlasso.tables.targets import (
    TWO_CLASSES,
    Outcome,
    Responses,
    check_responses,
    find_classes,
)
from fedlasso.tables.text_columns import (
    MIN_LEVEL,
    OTHER,
    classify_texts,
    put_in_order,
    read_levels,
)
from fedlasso.tables.values import NUMBERS, Values, make_numbers, to_float

ColumnKind = Literal["number", "text", "empty"]


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column of numbers, or of text with its levels; empty if every value is missing."""

    name: str
    kind: ColumnKind
    levels: tuple[str, ...] = ()

    @property
    def encoded(self) -> tuple[str, ...]:
        """Names of its columns in X: text has one per level except the first, the reference."""
        if self.kind != "text":
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels[1:])


@dataclass(frozen=True)
class Schema(Outcome):
    """An outcome and its predictors, which every site has; `na` means missing in files.

    With a `formula` the columns of X are derived from the predictors.
    """

    columns: tuple[Column, ...]
    na: tuple[str, ...] = ()
    formula: FormulaTerms | None = None

    @classmethod
    def of(cls, outcome: Outcome, columns: Iterable[Column], na: tuple[str, ...] = ()) -> Schema:
        own = {field.name: getattr(outcome, field.name) for field in fields(Outcome)}
        return cls(columns=tuple(columns), na=na, **own)

    @property
    def encoded(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        if self.formula is not None:
            return self.formula.names
        return self.plainly_encoded

    @property
    def plainly_encoded(self) -> tuple[str, ...]:
        """The same without a formula."""
        return tuple(name for column in self.columns for name in column.encoded)

    def with_formula(self, text: str, knots: Knots) -> Schema:
        """Return the schema with columns derived by the right side of a formula."""
        return replace(self, formula=resolve_formula(text, self.columns, knots))

    def encode_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of X for names, of a text column or of one level, ``ward=west``.

        A term of a formula may also have other spaces, or be named by its only variable.
        """
        known: dict[str, tuple[str, ...]] = {name: (name,) for name in self.encoded}
        if self.formula is None:
            known |= {column.name: column.encoded for column in self.columns}
        else:
            known |= self.formula.terms
            known = self.formula.by_variable | known
        spaceless = {name.replace(" ", ""): name for name in known}
        names = [own if own in known else spaceless.get(own.replace(" ", ""), own) for own in names]
        for name in names:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else columns_of(self.encoded)
                raise FedLassoError(f"no predictor is called {name!r}; {hint}")
        return tuple(dict.fromkeys(own for name in names for own in known[name]))


@dataclass(frozen=True, eq=False)
class Encoded:
    """One site's records: X in Fortran order with NaN for missing values, and their counts."""

    site: str
    X: Array
    response: Responses
    missing: dict[str, int] = field(default_factory=dict)

    @property
    def gaps(self) -> str:
        """Text that says where values are missing."""
        some = [f"{name} {count}" for name, count in list(self.missing.items())[:8]]
        more = f", +{len(self.missing) - 8}" if len(self.missing) > 8 else ""
        return f"site {self.site!r}: {', '.join(some)}{more}"


def agree(
    files: Sequence[File],
    outcome: Outcome,
    leave_out: Sequence[str] = (),
    min_level: int = MIN_LEVEL,
    notify: Notify = lambda text: None,
    *,
    positive: str | None = None,
    named: Collection[str] = (),
    orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Schema:
    """Return one schema for all files, in the first one's order; refuse different names.

    Text levels with fewer than `min_level` rows at every site are pooled. `positive` is the text of
    the target that is 1. Columns that identify the rows are left out, unless they are `named`.
    Levels are sorted, unless `orders` has an order for their column. `notify` receives what is left
    out or looks like a mistake.
    """
    out = {*leave_out, *_find_identifiers(files, {*outcome.names, *leave_out, *named}, notify)}
    described = [(file, _describe(file, outcome, out, notify)) for file in files]
    first, merged = described[0]
    for file, theirs in described[1:]:
        for (has, these), (lacks, those) in permutations([(first, merged), (file, theirs)]):
            if lacking := [name for name in these if name not in those]:
                more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
                raise FedLassoError(
                    f"{lacks.path} lacks the column {lacking[0]!r}{more} that {has.path} has; "
                    "give every site the same columns, or --drop it"
                )
        for name, column in theirs.items():
            mine = merged[name]
            if mine.kind == "empty":
                merged[name] = column
            elif column.kind not in ("empty", mine.kind):
                raise FedLassoError(
                    f"column {name!r} holds {mine.kind}s in {first.path} but {column.kind}s in "
                    f"{file.path}; use one type"
                )
    if merged[outcome.target].kind == "text":
        outcome = find_classes(outcome, files, positive, notify)
    columns = [column for name, column in merged.items() if name not in outcome.names]
    texts = [column.name for column in columns if column.kind == "text"]
    levels = read_levels(files, texts, min_level, notify)
    levels |= {name: put_in_order(levels[name], orders[name]) for name in {*levels} & {*orders}}
    for name, own in levels.items():
        if len(own) == 1:
            held = f"holds {own[0]!r} in every row of all sites"
            notify(f"notice: text column {name!r} {held}; it is left out")
    agreed = [Column(c.name, c.kind, levels.get(c.name, ())) for c in columns]
    return Schema.of(outcome, agreed, files[0].na)


def _find_identifiers(files: Sequence[File], wanted: Collection[str], notify: Notify) -> set[str]:
    """Return columns to leave out everywhere, since they identify the rows of some file."""
    for file in files:
        if file.unnamed:
            some = "a column" if file.unnamed == 1 else f"{file.unnamed} columns"
            notify(f"notice: {file.path}: left out {some} without a name")
    found = {name for file in files for name in file.identifiers if name not in wanted}
    for name in sorted(found):
        notify(identifier_notice(name))
    return found


def identifier_notice(name: str) -> str:
    """Return the notice that a column is left out because it identifies the rows."""
    remedy = "if it is a measurement, name it in --keep"
    return f"notice: column {name!r} identifies the rows, so it is left out; {remedy}"


def _describe(
    file: File, outcome: Outcome, leave_out: Collection[str], notify: Notify
) -> dict[str, Column]:
    """Return the columns of a file by name, those of the outcome first."""
    own = outcome.names
    for name in own:
        if name not in file.names:
            raise FedLassoError(f"{file.path} has no column {name!r}; {columns_of(file.names)}")
    names = [*own, *(n for n in file.names if n not in own and n not in leave_out)]
    if len(names) == len(own):
        raise FedLassoError(f"{file.path} has no column besides the target; add predictors")
    found = {name: Column(name, kind_of(file, name)) for name in names}
    for role, name in outcome.roles.items():
        # The classes of a text target are counted over all files.
        classes = role == "target" and outcome.response_family.takes_classes
        if found[name].kind == "text" and not classes and role != "cluster":
            ((_, values),) = file.columns([name])
            held = values.filled.texts().to_list()
            stray = next((text for text in held if to_float(text) is None), "")
            column = f"the {role}{' column' if role != 'target' else ''} {name!r}"
            two = role == "target" and len(set(held)) == 2
            remedy = f"; {TWO_CLASSES}" if two else ""
            raise FedLassoError(f"{file.path}: {column} is not numeric: it holds {stray!r}{remedy}")
    names = [name for name in names if name not in own]
    texts = [name for name in names if found[name].kind == "text" and name not in file.categorical]
    for name, values in file.columns(texts):
        kind, where = classify_texts(file, name, values)
        if kind == "mixed":
            notify(
                f"warning: {file.path}: text column {name!r} holds numbers ({where}), which become "
                "levels; correct them, or use --na if they mean missing values"
            )
        # Codes of missing values, now named, were why these numbers are stored as text.
        if kind == "numbers" and file.na:
            found[name] = Column(name, "number")
    return found


def kind_of(file: File, name: str) -> ColumnKind:
    """Return whether a column of a file holds numbers or text."""
    kind = file.types[name]
    if name in file.categorical and kind != "empty":
        return "text"
    if kind in NUMBERS:
        return "number"
    if kind == "empty":
        return "empty"
    if kind == "text":
        return "text"
    raise FedLassoError(
        f"{file.path}: column {name!r} holds {kind}; convert it to numbers or text, or --drop it"
    )


def encode_file(file: File, schema: Schema) -> tuple[Encoded, ...]:
    """Return the records of each site in a file, with columns matched by name."""
    for name, rows in file.groups.items():
        check_two_rows(name, len(rows))
    whole = read_outcome(file, schema)
    responses = []
    for site, rows in file.groups.items():
        own = {name: numbers[rows] for name, numbers in whole.items()}
        responses.append(check_responses(site, schema, own))
        for name, numbers in own.items():
            check_size(f"site {site!r}: column {name!r}", numbers)
    sites = _encode(file, schema, responses)
    file.forget()
    return sites


def encode_rows(file: File, schema: Schema) -> Array:
    """Return X for prediction; new levels are `OTHER`, or refused if the model lacks that."""
    for column in schema.columns:
        if column.name not in file.names:
            raise FedLassoError(f"{file.path} lacks the column {column.name!r} of the model")
    (site,) = _encode(file, schema, [Responses(np.empty(0))])
    return site.X


def read_outcome(file: File, outcome: Outcome) -> dict[str, Array]:
    """Return the columns of an outcome as numbers, with NaN for missing values."""
    numbers = {}
    for name, values in file.columns(outcome.names):
        if name == outcome.cluster:
            numbers[name] = _number_labels(values)
            continue
        is_text = name == outcome.target and outcome.classes
        column = Column(name, "text", outcome.classes) if is_text else Column(name, "number")
        (numbers[name],) = _encode_column(file, column, values)
    return numbers


def _number_labels(values: Values) -> Array:
    """Return a number for each different value, with NaN for missing ones."""
    _, labels = np.unique(values.data, return_inverse=True)
    return make_numbers(labels, values.missing).numbers()


def _encode(file: File, schema: Schema, responses: Sequence[Responses]) -> tuple[Encoded, ...]:
    width = len(schema.plainly_encoded)
    sites = tuple(
        Encoded(site, np.empty((len(rows), width), order="F"), response)
        for (site, rows), response in zip(file.groups.items(), responses, strict=True)
    )
    known = {column.name: column for column in schema.columns}
    at = 0
    for name, values in file.columns(list(known)):
        for numbers in _encode_column(file, known[name], values):
            for site, rows in zip(sites, file.groups.values(), strict=True):
                own = site.X[:, at] = numbers[rows]
                where = f"site {site.site!r}: column {name!r}"
                if infinite := int(np.isinf(own).sum()):
                    what = "infinite values; correct or remove them"
                    raise QuotesRecords(f"{where} has {infinite} {what}", f"{where} has {what}")
                check_size(where, own)
                if missing := int(np.isnan(own).sum()):
                    site.missing[name] = missing
            at += 1
    if schema.formula is None:
        return sites
    formula, columns = schema.formula, schema.columns
    return tuple(replace(site, X=apply_formula(formula, columns, site.X)) for site in sites)


def to_numbers(column: Values, file: File | None = None, name: str = "") -> Array:
    """Return a column as numbers, with NaN for a missing value."""
    try:
        return column.numbers()
    except ValueError:
        where = f"{file.path if file else 'the table'}: column {name!r}"
        raise FedLassoError(f"{where} is not numeric, but it was in the fit") from None


def _encode_column(file: File, column: Column, values: Values) -> Iterator[Array]:
    if column.kind != "text":
        yield to_numbers(values, file, column.name)
        return
    places = values.places_in(column.levels)
    unseen = (places < 0) & ~values.missing
    if OTHER in column.levels:
        places[unseen] = column.levels.index(OTHER)
    elif unseen.any():
        row = int(unseen.argmax())
        raise FedLassoError(
            f"{file.path}: column {column.name!r} holds {values.texts().to_list()[row]!r} in row "
            f"{row + 1}, a level that the model does not know; it knows "
            + ", ".join(map(repr, column.levels[:6]))
        )
    codes = make_numbers(places, values.missing).numbers()
    for k in range(1, len(column.levels)):
        yield np.where(np.isnan(codes), np.nan, codes == k)
