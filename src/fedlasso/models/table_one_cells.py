"""Table 1 of a schema's columns, and its cells for the terminal, pages and CSV."""

from typing import Literal

from fedlasso.csv_text import write_csv
from fedlasso.fitting.examination.table_one import (
    MIN_CELL,
    ColumnSummary,
    Listed,
    Summary,
    TableFound,
    TableOne,
    make_table_one,
)
from fedlasso.models.numbers import number
from fedlasso.tables import Outcome, Schema

WITHHELD = f"– : withheld, because fewer than {MIN_CELL} rows of some site have it"
# A mean of fewer SDs is zero.
ROUNDED = 1e-10
# A level of a response that is 0 or 1.
ONE = "1"


def event_of(outcome: Outcome) -> tuple[str, str] | None:
    """Return the column and the level that is an event, if the outcome has events."""
    if outcome.event is not None:
        return outcome.event, ONE
    if outcome.response_family.takes_classes:
        return outcome.target, outcome.classes[1] if outcome.classes else ONE
    return None


def describe_schema(found: TableFound, schema: Schema) -> TableOne:
    """Return Table 1 of a fit's columns, its outcome first."""
    columns = [Listed(column.name, column.levels) for column in schema.columns]
    if schema.formula is not None:
        columns = [Listed(name) for name in schema.encoded]
    outcome: list[tuple[Listed, Literal["y", "time"]]] = [
        (Listed(schema.target, schema.classes), "y")
    ]
    if schema.event is not None:
        outcome = [(Listed(schema.target), "time"), (Listed(schema.event), "y")]
    return make_table_one(found, columns, outcome, event_of(schema))


def table_cells(table: TableOne) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows of Table 1: mean (SD) or n (%), and missing values where there are."""
    heads = ["", *table.sites, "all sites"]
    pooled = table.columns[0].pooled
    rows = [["rows", *(f"{count:,}" for count in (*table.rows, pooled.rows))]]
    for column in table.columns:
        name, level = table.event or ("", None)
        rows += _column_cells(column, level if name == column.name else None)
    return heads, rows


def _column_cells(column: ColumnSummary, event: str | None) -> list[list[str]]:
    """Return the rows of a column; the level that is an event is marked."""
    parts = (*column.sites, column.pooled)
    if column.kind == "number":
        rows = [[f"{column.name}, mean (SD)", *map(_mean, parts)]]
    else:
        # The first of two numbers is the second one's complement.
        shown = range(int(column.levels == ("0", ONE)), len(column.levels))
        rows = [
            [
                f"{column.name} = {column.levels[k]}{' (event)' * (column.levels[k] == event)}",
                *(_share(part.counts[k], part.filled) for part in parts),
            ]
            for k in shown
        ]
    if any(part.missing != 0 for part in parts):
        missing = [_share(part.missing, part.rows) for part in parts]
        rows.append([f"{column.name}, missing", *missing])
    return rows


def _mean(part: Summary) -> str:
    if part.mean is None:
        return "–"
    # Sums of centred columns are rounded.
    tiny = part.sd is not None and abs(part.mean) < ROUNDED * part.sd
    mean = "0" if tiny else number(part.mean, 4)
    return mean + ("" if part.sd is None else f" ({number(part.sd, 3)})")


def _share(count: int | None, of: int) -> str:
    if count is None:
        return "–"
    return f"{count:,} ({count / of:.0%})" if of else f"{count:,}"


def write_table_csv(table: TableOne) -> str:
    """Return Table 1 as CSV, one line per column, level and site."""
    lines: list[list[object]] = [
        ["column", "level", "site", "rows", "missing", "mean", "sd", "count"]
    ]
    for column in table.columns:
        sites = zip((*table.sites, "all sites"), (*column.sites, column.pooled), strict=True)
        for site, part in sites:
            own = [site, part.rows, part.missing]
            if column.kind == "number":
                lines.append([column.name, "", *own, part.mean, part.sd, ""])
            for level, count in zip(column.levels, part.counts, strict=True):
                lines.append([column.name, level, *own, "", "", count])
    return write_csv(lines)
