"""What columns hold, on its way between sites and coordinator, and how the sites agree on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import msgspec

from fedlasso.errors import FedLassoError
from fedlasso.tables import OTHER, Column, Schema, agree_levels, union_levels
from fedlasso.tables.columns import Kind


def write_schema(schema: Schema) -> str:
    """Return a schema as the text that travels."""
    return msgspec.json.encode(schema).decode()


def read_schema(text: str, target: str, columns: Sequence[str], na: tuple[str, ...] = ()) -> Schema:
    """Return the schema in a text that came from elsewhere, if it is about these columns."""
    try:
        schema = msgspec.json.decode(text, type=Schema)
    except (ValueError, RecursionError):
        raise FedLassoError("what the columns hold was told in a way nobody can read") from None
    names = tuple(column.name for column in schema.columns)
    if (schema.target, names, schema.na) != (target, tuple(columns), na):
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
        others = find_others(Schema(first.target, tuple(united), first.na))
    levels = {
        # Sites that pool rare levels tell of them as one.
        c.name: agree_levels(c.name, [c.levels], c.name in others or OTHER in c.levels, min_level)
        for c in texts
    }
    return Schema(
        first.target,
        tuple(Column(c.name, c.kind, levels.get(c.name, ())) for c in united),
        first.na,
    )


def _agree_on_kind(theirs: Mapping[str, Column]) -> Kind:
    full = [(site, column) for site, column in theirs.items() if column.kind != "empty"]
    for (one, mine), (other, column) in pairwise(full):
        if mine.kind != column.kind:
            raise FedLassoError(
                f"column {column.name!r} holds {mine.kind}s at site {one!r} but {column.kind}s at "
                f"site {other!r}; make them alike"
            )
    return full[0][1].kind if full else "empty"
