"""What columns hold, on its way between sites and coordinator, and how the sites agree on it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import msgspec

from fedlasso.errors import FedLassoError
from fedlasso.families import FAMILIES
from fedlasso.fitting import Settings
from fedlasso.governance.door_messages import DescribeColumns, FindOthers, Open
from fedlasso.tables import OTHER, Column, Outcome, Schema, agree_levels, union_levels
from fedlasso.tables.columns import ColumnKind

# The columns that a response may have beside its target.
ROLES = ("event", "offset", "weights")


def names_in(schema: Schema) -> tuple[str, ...]:
    """Return the names of a schema's columns."""
    return tuple(column.name for column in schema.columns)


def write_schema(schema: Schema) -> str:
    """Return a schema as the text that travels."""
    return msgspec.json.encode(schema).decode()


def read_outcome_of(asked: DescribeColumns | FindOthers | Open) -> Outcome:
    """Return what is to be explained, as a question says it."""
    if asked.family not in FAMILIES:
        raise FedLassoError(f"no family is called {asked.family!r}; update fedlasso")
    others: dict[str, Any] = {role: getattr(asked, role) or None for role in ROLES}
    return Outcome(asked.target, family=asked.family, **others)


def name_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return the same as the fields of a question, beside the target."""
    return {"family": outcome.family} | {role: getattr(outcome, role) or "" for role in ROLES}


def make_opening(
    fit: str, schema: Schema, settings: Settings, missing: str, **session: Any
) -> Open:
    """Return the question to join a fit; `session` are its fields about the sites, if any."""
    return Open(
        fit,
        schema.target,
        names_in(schema),
        schema=write_schema(schema),
        missing=missing,
        na=schema.na,
        ties=settings.ties,
        intercept=settings.intercept,
        effects=settings.site_effects,
        **name_outcome(schema),
        **{"sites": (), "fingerprints": (), **session},
    )


def read_settings_of(opening: Open) -> Settings:
    """Return the settings that a site must know, as the question to join a fit says them."""
    if opening.ties not in ("efron", "breslow"):
        raise FedLassoError(f"ties are treated in no way called {opening.ties!r}")
    settings = Settings(family=opening.family, ties=cast(Any, opening.ties))
    return replace(settings, intercept=opening.intercept, site_effects=opening.effects)


def read_schema(
    text: str, outcome: Outcome, columns: Sequence[str], na: tuple[str, ...] = ()
) -> Schema:
    """Return the schema in a text that came from elsewhere, if it is about these columns."""
    try:
        schema = msgspec.json.decode(text, type=Schema)
    except (ValueError, RecursionError):
        raise FedLassoError("what the columns hold was told in a way nobody can read") from None
    if names_in(schema) != tuple(columns) or schema != Schema.of(outcome, schema.columns, na):
        raise FedLassoError("what was told is about other columns or codes than those asked for")
    for column in schema.columns:
        levels = column.levels
        if len(set(levels)) < len(levels) or (levels and column.kind != "text"):
            raise FedLassoError(
                f"column {column.name!r}: no {column.kind} column has these {len(levels)} levels"
            )
        # Too many of them are refused in the words that files get.
        agree_levels(column.name, [levels], False)
    return schema


def leave_out(told: Mapping[str, Schema], names: Collection[str]) -> dict[str, Schema]:
    """Return what sites have told without some columns; to leave out all of them is refused."""
    left = {}
    for site, schema in told.items():
        columns = tuple(column for column in schema.columns if column.name not in names)
        if not columns:
            raise FedLassoError("no column is left beside the target; give predictors")
        left[site] = replace(schema, columns=columns)
    return left


def agree_on_columns(
    told: Mapping[str, Schema], min_level: int, find_others: Callable[[Schema], Collection[str]]
) -> Schema:
    """Return one schema for all sites, as `tables.agree` makes one for files.

    `told` is about the same columns in one order. A level of text needs `min_level` rows at some
    site; `find_others` asks the sites which text columns have rows at none of a schema's levels.
    """
    first, *_ = told.values()
    united = []
    for columns in zip(*(schema.columns for schema in told.values()), strict=True):
        kind = _agree_on_kind(dict(zip(told, columns, strict=True)))
        levels = union_levels([column.levels for column in columns])
        united.append(Column(columns[0].name, kind, levels))
    texts = [column for column in united if column.kind == "text"]
    for column in texts:
        # Too many levels are told before more is asked.
        agree_levels(column.name, [column.levels], False, min_level)
    others = find_others(replace(first, columns=tuple(united))) if texts else ()
    agreed = {
        # Sites that pool rare levels tell of them as one.
        c.name: agree_levels(c.name, [c.levels], c.name in others or OTHER in c.levels, min_level)
        for c in texts
    }
    columns = tuple(Column(c.name, c.kind, agreed.get(c.name, ())) for c in united)
    return replace(first, columns=columns)


def _agree_on_kind(theirs: Mapping[str, Column]) -> ColumnKind:
    full = [(site, column) for site, column in theirs.items() if column.kind != "empty"]
    for (one, mine), (other, column) in pairwise(full):
        if mine.kind != column.kind:
            held = f"{mine.kind}s at site {one!r} but {column.kind}s at site {other!r}"
            raise FedLassoError(f"column {column.name!r} holds {held}; make them alike")
    return full[0][1].kind if full else "empty"
