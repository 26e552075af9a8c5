"""Schemas of columns: their messages, and how the sites agree on one."""

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
from fedlasso.tables.targets import class_notice, order_classes

# Columns of a response besides its target.
ROLES = ("event", "offset", "weights", "cluster")


def names_in(schema: Schema) -> tuple[str, ...]:
    return tuple(column.name for column in schema.columns)


def write_schema(schema: Schema) -> str:
    """Return a schema as JSON."""
    return msgspec.json.encode(schema).decode()


def read_outcome_of(request: DescribeColumns | FindOthers | Open) -> Outcome:
    """Return the outcome in a question."""
    if request.family not in FAMILIES:
        raise FedLassoError(f"no family is called {request.family!r}; update fedlasso")
    others: dict[str, Any] = {role: getattr(request, role) or None for role in ROLES}
    return Outcome(request.target, family=request.family, **others)


def name_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome's fields in a question, except the target."""
    return {"family": outcome.family} | {role: getattr(outcome, role) or "" for role in ROLES}


def make_opening(
    fit: str, schema: Schema, settings: Settings, missing: str, **session: Any
) -> Open:
    """Return the question to join a fit; `session` contains its fields about the sites."""
    return Open(
        fit,
        schema.target,
        names_in(schema),
        schema=write_schema(schema),
        missing=missing,
        na=schema.na,
        ties=settings.ties,
        intercept=settings.intercept,
        effects=bool(settings.site_effects),
        **name_outcome(schema),
        **{"sites": (), "fingerprints": (), **session},
    )


def read_settings_of(opening: Open) -> Settings:
    """Return the settings that a site needs, from the question to join a fit."""
    if opening.ties not in ("efron", "breslow"):
        raise FedLassoError(f"unknown treatment of ties {opening.ties!r}; update fedlasso")
    settings = Settings(family=opening.family, ties=cast(Any, opening.ties))
    return replace(settings, intercept=opening.intercept, site_effects=opening.effects)


def read_schema(
    text: str, outcome: Outcome, columns: Sequence[str], na: tuple[str, ...] = ()
) -> Schema:
    """Return a schema received as JSON, which must describe these columns."""
    try:
        schema = msgspec.json.decode(text, type=Schema)
    except (ValueError, RecursionError):
        raise FedLassoError("the description of the columns cannot be read") from None
    # The classes of a text target are part of the description.
    outcome = replace(outcome, classes=schema.classes)
    if names_in(schema) != tuple(columns) or schema != Schema.of(outcome, schema.columns, na):
        raise FedLassoError("the description is of other columns or codes than requested")
    if len(schema.classes) > 2 or (schema.classes and not outcome.response_family.takes_classes):
        raise FedLassoError(f"the target {outcome.target!r} holds {len(schema.classes)} texts")
    for column in schema.columns:
        levels = column.levels
        if len(set(levels)) < len(levels) or (levels and column.kind != "text"):
            wrong = f"{len(levels)} levels do not fit a {column.kind} column"
            raise FedLassoError(f"column {column.name!r}: {wrong}")
        # Refuses too many levels, with the message for files.
        agree_levels(column.name, [levels], False)
    return schema


def leave_out(schemas: Mapping[str, Schema], names: Collection[str]) -> dict[str, Schema]:
    """Return the sites' schemas without some columns; at least one must be left."""
    left = {}
    for site, schema in schemas.items():
        columns = tuple(column for column in schema.columns if column.name not in names)
        if not columns:
            raise FedLassoError("no predictors are left; select some with --columns")
        left[site] = replace(schema, columns=columns)
    return left


def agree_on_classes(
    schemas: Mapping[str, Schema], positive: str | None
) -> tuple[dict[str, Schema], str]:
    """Return the sites' schemas with one pair of classes of a text target, and a notice of them."""
    first, *_ = schemas.values()
    found = {text for schema in schemas.values() for text in schema.classes}
    if not found:
        if positive is not None:
            remedy = "only texts have another class that is 1; omit --positive"
            raise FedLassoError(f"the target {first.target!r} holds 0 and 1; {remedy}")
        return dict(schemas), ""
    classes = order_classes(first, found, positive)
    agreed = {site: replace(schema, classes=classes) for site, schema in schemas.items()}
    return agreed, class_notice(agreed[next(iter(agreed))], positive)


def agree_on_columns(
    schemas: Mapping[str, Schema],
    min_level: int,
    find_others: Callable[[Schema], Collection[str]],
) -> Schema:
    """Return one schema for all sites, as `tables.agree` does for files.

    `schemas` have the same columns in the same order. A level of text needs `min_level` rows at
    some site; `find_others` returns the text columns with rows outside a schema's levels.
    """
    first, *_ = schemas.values()
    united = []
    for columns in zip(*(schema.columns for schema in schemas.values()), strict=True):
        kind = _agree_on_kind(dict(zip(schemas, columns, strict=True)))
        levels = union_levels([column.levels for column in columns])
        united.append(Column(columns[0].name, kind, levels))
    texts = [column for column in united if column.kind == "text"]
    for column in texts:
        # Refuse too many levels before asking the sites again.
        agree_levels(column.name, [column.levels], False, min_level)
    others = find_others(replace(first, columns=tuple(united))) if texts else ()
    agreed = {
        # Sites that pool rare levels report them as one.
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
