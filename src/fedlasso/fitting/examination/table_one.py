"""Table 1: the rows of every site and of all sites, described column by column."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Summary:
    """A column at one site, or pooled; None where a number is withheld because few rows have it.

    `counts` has the rows at each level of a column of levels. Rows without a value are in
    `missing` and in no other number but `rows`.
    """

    rows: int
    missing: int
    mean: float | None = None
    sd: float | None = None
    counts: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class ColumnSummary:
    """A column at every site and pooled: mean and SD of numbers, counts of levels."""

    name: str
    kind: Literal["number", "levels"]
    levels: tuple[str, ...]
    sites: tuple[Summary, ...]
    pooled: Summary


@dataclass(frozen=True)
class TableOne:
    """Rows, events and columns of every site, the outcome first."""

    sites: tuple[str, ...]
    rows: tuple[int, ...]
    events: tuple[int, ...] | None
    columns: tuple[ColumnSummary, ...]
