"""What columns hold, on its way between sites and coordinator, and how the sites agree on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast, get_args

import msgspec

from fedlasso.errors import FedLassoError
from fedlasso.governance.messages import DescribeColumns, FindOthers, Open
from fedlasso.models import Settings
from fedlasso.numerics import Family
from fedlasso.tables import OTHER, Column, Outcome, Schema, agree_levels, union_levels
from fedlasso.tables.columns import Kind


def write_schema(schema: Schema) -> str:
    """Return a schema as the text that travels."""
    return msgspec.json.encode(schema).decode()


def read_outcome_of(asked: DescribeColumns | FindOthers | Open) -> Outcome:
    """Return what is to be explained, as a question says it."""
    if asked.family not in get_args(Family):
        raise FedLassoError(f"no family is called {asked.family!r}; update fedlasso")
    return Outcome(
        asked.target,
        family=cast(Family, asked.family),
        event=asked.event or None,
        offset=asked.offset or None,
        weights=asked.weights or None,
    )


def name_outcome(outcome: Outcome) -> dict[str, Any]:
    """Return the same as the fields of a question, beside the target."""
    return {
        "family": outcome.family,
        "event": outcome.event or "",
        "offset": outcome.offset or "",
        "weights": outcome.weights or "",
    }


def name_settings(settings: Settings) -> dict[str, Any]:
    """Return what a site must know of the settings to join a fit, as the fields of `Open`."""
    return {
        "ties": settings.ties,
        "intercept": int(settings.intercept),
        "effects": int(settings.site_effects),
    }


def read_settings_of(opening: Open) -> Settings:
    """Return the settings that a site must know, as the question to join a fit says them."""
    if opening.ties not in ("efron", "breslow"):
        raise FedLassoError(f"ties are treated in no way called {opening.ties!r}")
    return Settings(
        family=cast(Family, opening.family),
        ties=cast(Any, opening.ties),
        intercept=opening.intercept != 0,
        site_effects=opening.effects != 0,
    )


def read_schema(
    text: str, outcome: Outcome, columns: Sequence[str], na: tuple[str, ...] = ()
) -> Schema:
    """Return the schema in a text that came from elsewhere, if it is about these columns."""
    try:
        schema = msgspec.json.decode(text, type=Schema)
    except (ValueError, RecursionError):
        raise FedLassoError("what the columns hold was told in a way nobody can read") from None
    names = tuple(column.name for column in schema.columns)
    if names != tuple(columns) or schema != Schema.of(outcome, schema.columns, na):
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
    told: Mapping[str, Schema],
    min_level: int,
    find_others: Callable[[Schema], Collection[str]],
) -> Schema:
    """Return one schema for all sites, as `tables.agree` makes one for files.

    Parameters
    ----------
    told : what every site has told of the same columns, in one order
    min_level : rows that a level of text needs at some site
    find_others : asks the sites which text columns have rows at none of the levels in a schema
    """
    first, *_ = told.values()
    united = []
    for place, column in enumerate(first.columns):
        theirs = {site: schema.columns[place] for site, schema in told.items()}
        kind = _agree_on_kind(theirs)
        united.append(Column(column.name, kind, union_levels([c.levels for c in theirs.values()])))
    texts = [column for column in united if column.kind == "text"]
    others: Collection[str] = ()
    if texts:
        for column in texts:
            # Too many levels are told before more is asked.
            agree_levels(column.name, [column.levels], False, min_level)
        others = find_others(replace(first, columns=tuple(united)))
    levels = {
        # Sites that pool rare levels tell of them as one.
        c.name: agree_levels(c.name, [c.levels], c.name in others or OTHER in c.levels, min_level)
        for c in texts
    }
    agreed = tuple(Column(c.name, c.kind, levels.get(c.name, ())) for c in united)
    return replace(first, columns=agreed)


def _agree_on_kind(theirs: Mapping[str, Column]) -> Kind:
    full = [(site, column) for site, column in theirs.items() if column.kind != "empty"]
    for (one, mine), (other, column) in pairwise(full):
        if mine.kind != column.kind:
            raise FedLassoError(
                f"column {column.name!r} holds {mine.kind}s at site {one!r} but {column.kind}s at "
                f"site {other!r}; make them alike"
            )
    return full[0][1].kind if full else "empty"
