"""What the columns are, agreed across sites: names, kinds, and the levels of text columns.

A description holds no record; it and the agreed schema travel as JSON, so sites in one process and
sites on a network agree in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedlasso.errors import FedLassoError
from fedlasso.tables.files import File, columns_of

Kind = Literal["number", "text", "empty"]
# A text column with more levels is a name of rows rather than a measurement.
LEVELS = 200


@dataclass(frozen=True)
class Column:
    """One column: numbers, or text with its levels; empty when every value is missing."""

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()

    @property
    def encoded(self) -> tuple[str, ...]:
        """Names of its columns in X: text has one a level but the first, which is the baseline."""
        if self.kind != "text":
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels[1:])


@dataclass(frozen=True)
class Description:
    """The columns of one file."""

    source: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Schema:
    """The columns that every site has, in one order."""

    target: str
    columns: tuple[Column, ...]

    @property
    def encoded(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return tuple(name for column in self.columns for name in column.encoded)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        columns = [
            {"name": c.name, "kind": c.kind} | ({"levels": list(c.levels)} if c.levels else {})
            for c in self.columns
        ]
        return {"target": self.target, "columns": columns}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Schema:
        """The same back."""
        columns = (
            Column(c["name"], c["kind"], tuple(c.get("levels", ()))) for c in values["columns"]
        )
        return cls(values["target"], tuple(columns))


def describe(file: File, target: str, leave_out: Sequence[str] = ()) -> Description:
    """Kinds and levels of a file's columns, the target first."""
    if target not in file.names:
        raise FedLassoError(f"{file.path} has no column {target!r}; {columns_of(file.names)}")
    names = [target, *(n for n in file.names if n not in (target, *leave_out))]
    if len(names) == 1:
        raise FedLassoError(f"{file.path} has no column beside the target; give predictors")
    kinds = {name: kind_of(file, name) for name in names}
    if kinds[target] == "text":
        ((_, column),) = file.columns([target])
        raise FedLassoError(
            f"{file.path}: the target {target!r} is not numeric: it holds {_first_text(column)!r}"
        )
    texts = [name for name in names if kinds[name] == "text"]
    levels = {name: _levels(column) for name, column in file.columns(texts)}
    for name, found in levels.items():
        if len(found) > LEVELS:
            raise FedLassoError(
                f"{file.path}: text column {name!r} has {len(found)} levels; group them, or --drop "
                "it if it names rows"
            )
    return Description(str(file.path), tuple(Column(n, kinds[n], levels.get(n, ())) for n in names))


def agree(descriptions: Sequence[Description]) -> Schema:
    """One schema for all sites, in the first one's order; any difference in names is refused."""
    first = descriptions[0]
    merged = {c.name: c for c in first.columns}
    for other in descriptions[1:]:
        theirs = {c.name: c for c in other.columns}
        for a, b, here in ((first, theirs, other), (other, merged, first)):
            lacking = [c.name for c in a.columns if c.name not in b]
            if lacking:
                more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
                raise FedLassoError(
                    f"{here.source} lacks the column {lacking[0]!r}{more} that {a.source} has; "
                    "give every site the same columns, or --drop it"
                )
        for name, column in theirs.items():
            merged[name] = _merge(merged[name], column, first.source, other.source)
    target, *columns = merged.values()
    return Schema(target.name, tuple(columns))


def _merge(a: Column, b: Column, one: str, two: str) -> Column:
    if "empty" in (a.kind, b.kind):
        return a if b.kind == "empty" else b
    if a.kind != b.kind:
        raise FedLassoError(
            f"column {a.name!r} holds {a.kind}s in {one} but {b.kind}s in {two}; make them alike"
        )
    return Column(a.name, a.kind, tuple(sorted({*a.levels, *b.levels})))


def kind_of(file: File, name: str) -> Kind:
    """What a column of a file holds."""
    import pyarrow.types as types

    kind = file.schema.field(name).type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind):
        return "empty"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return "number"
    if types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    raise FedLassoError(
        f"{file.path}: column {name!r} holds {kind}; turn it into numbers or text, or --drop it"
    )


def _levels(column: Any) -> tuple[str, ...]:
    return tuple(sorted(str(v) for v in column.unique().to_pylist() if v is not None))


def _first_text(column: Any) -> str:
    def numeric(text: str) -> bool:
        try:
            float(text)
        except ValueError:
            return False
        return True

    return next((str(v) for v in column.to_pylist() if v is not None and not numeric(str(v))), "")
