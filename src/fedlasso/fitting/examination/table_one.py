"""Table 1: the rows of every site and of all sites, described column by column."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fedlasso.errors import Refused
from fedlasso.federation import Federation
from fedlasso.federation.fixed_point import prepare_words, total_in_words
from fedlasso.fitting.dialogue import Dialogue, drive
from fedlasso.numerics import Array, find_loss
from fedlasso.sites import SummariseTable, TableSums
from fedlasso.sites.cells import CELL_ROWS, withholds
from fedlasso.sites.standardising import ask_orders, read_orders
from fedlasso.sites.views import ColumnSizes, ColumnSums

# Counts of fewer rows at a site are withheld.
MIN_CELL = CELL_ROWS
# Relative rounding error of sums.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Summary:
    """A column at one site, or pooled; None where a number is withheld because few rows have it.

    `counts` has the rows at each level of a column of levels. Rows without a value are in
    `missing` and in no other number but `rows`; `filled` are the others.
    """

    rows: int
    missing: int | None
    mean: float | None = None
    sd: float | None = None
    counts: tuple[int | None, ...] = ()

    @property
    def filled(self) -> int:
        """Rows with a value; all rows where the number of missing values is withheld."""
        return self.rows - (self.missing or 0)


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
    """Rows, events and columns of every site, the outcome first.

    All of `sites` and `rows` are empty where sites answer only in sums over all of them. `events`
    is None where the outcome has none, or few at some site, or sites are not described; else
    `event` is the column and level that is an event.
    """

    sites: tuple[str, ...]
    rows: tuple[int, ...]
    events: tuple[int, ...] | None
    columns: tuple[ColumnSummary, ...]
    event: tuple[str, str] | None = None


@dataclass(frozen=True, eq=False)
class TableFound:
    """The sums behind Table 1, over all sites and of each, and the centre of their squares."""

    pooled: TableSums
    each: tuple[TableSums, ...]
    means: Array
    y_mean: float


@dataclass(frozen=True)
class Listed:
    """A column to describe, and its levels if it is text; coded in as many columns less one."""

    name: str
    levels: tuple[str, ...] = ()


def ask_table(federation: Federation) -> TableFound:
    """Ask for the sums of Table 1: over all sites, and of each one if the sites allow it."""
    letters, sizes, missing, _ = ask_orders(federation)
    totals = total_in_words(federation, ColumnSums("", letters, missing), sizes)
    holes = 0.0 if totals.missing is None else totals.missing
    means = totals.sums / np.maximum(totals.weight - holes, 1.0)
    centres = find_loss(federation.loss).centres
    y_mean = totals.y_sum / totals.weight if centres else 0.0
    return drive(table_steps(federation, means, y_mean))


def table_steps(federation: Federation, means: Array, y_mean: float) -> Dialogue[TableFound]:
    """Ask for the same, with squares about known means of all rows."""
    (orders,) = yield [federation.prepare(ColumnSizes(), own=True)]
    letters, sizes, _, _ = read_orders(orders, len(federation.columns))
    request = SummariseTable(means, y_mean, letters)
    each: tuple[TableSums, ...] = ()
    # The total is that of masked sites, to the last bit.
    total = prepare_words(federation, request, sizes)
    try:
        each, pooled = yield [federation.prepare(request, own=True), total]
    except Refused:
        (pooled,) = yield [total]
    return TableFound(pooled, each, means, y_mean)


def make_table_one(
    found: TableFound,
    columns: Sequence[Listed],
    outcome: Sequence[tuple[Listed, Literal["y", "time"]]] = (),
    event: tuple[str, str] | None = None,
) -> TableOne:
    """Return Table 1 of the columns of the sites, with the outcome first.

    `outcome` names the response of the sites, and `event` the column and level of an event; a table
    without a response of its own has the outcome's columns among the others.
    """
    described = [_describe(found, listed, source, 1) for listed, source in outcome]
    at = 0
    for listed in columns:
        width = len(listed.levels) - 1 if listed.levels else 1
        described.append(_describe(found, listed, at, width))
        at += width
    events: tuple[int, ...] | None = None
    for column in described:
        if event is not None and column.name == event[0] and event[1] in column.levels:
            place = column.levels.index(event[1])
            counts = [site.counts[place] for site in column.sites]
            known = [count for count in counts if count is not None]
            events = tuple(known) if len(known) == len(counts) > 0 else None
    names = tuple(sums.site for sums in found.each)
    rows = tuple(sums.rows for sums in found.each)
    return TableOne(names, rows, events, tuple(described), None if events is None else event)


def _describe(
    found: TableFound, listed: Listed, source: int | Literal["y", "time"], width: int
) -> ColumnSummary:
    """Summarise the column that is coded in some of the sites' columns, or in the response."""
    pooled, *each = (_Part(sums, found, source, width) for sums in (found.pooled, *found.each))
    levels = listed.levels or (("0", "1") if pooled.binary else ())
    if not levels:
        summaries = [part.describe_numbers() for part in (pooled, *each)]
        if any(0 < s.filled < MIN_CELL for s in summaries[1:]):
            summaries[1:] = [replace(s, mean=None, sd=None) for s in summaries[1:]]
        if 0 < summaries[0].filled < MIN_CELL:
            summaries = [replace(s, mean=None, sd=None) for s in summaries]
        summaries = _withhold_missing(summaries)
        return ColumnSummary(listed.name, "number", (), tuple(summaries[1:]), summaries[0])
    counts = [part.count_levels() for part in (pooled, *each)]
    own = _withhold(counts[1:], counts[0])
    whole = _withhold(counts[:1], counts[0])
    parts = (pooled, *each)
    summaries = [
        Summary(part.rows, part.missing, counts=tuple(counted))
        for part, counted in zip(parts, (*whole, *own), strict=True)
    ]
    summaries = _withhold_missing(summaries)
    return ColumnSummary(listed.name, "levels", levels, tuple(summaries[1:]), summaries[0])


def _withhold(sites: list[list[int]], pooled: list[int]) -> list[list[int | None]]:
    """Withhold a level at all of these sites where one has few rows of it.

    The smallest other levels go with it, until at least two levels and enough rows of every site
    are withheld together: a single one, or the sum of a few, could be computed from the others.
    """
    hidden = {k for counts in sites for k, count in enumerate(counts) if 0 < count < MIN_CELL}
    others = sorted(set(range(len(pooled))) - hidden, key=lambda k: -pooled[k])

    def exposed() -> bool:
        together = [sum(counts[k] for k in hidden) for counts in sites]
        return len(hidden) == 1 or any(0 < count < MIN_CELL for count in together)

    while hidden and others and exposed():
        hidden.add(others.pop())
    return [[None if k in hidden else n for k, n in enumerate(counts)] for counts in sites]


def _withhold_missing(summaries: list[Summary]) -> list[Summary]:
    """Withhold the numbers of missing values, the pooled one first, where a site has few."""
    if not withholds(summary.missing or 0 for summary in summaries):
        return summaries
    return [replace(s, missing=None) if s.missing else s for s in summaries]


class _Part:
    """The sums of one column at a site, or over all sites."""

    def __init__(
        self, sums: TableSums, found: TableFound, source: int | Literal["y", "time"], width: int
    ) -> None:
        self.rows = sums.rows
        if source == "y":
            entries = [(0.0, sums.y_sum, sums.y_squares, found.y_mean)]
        elif source == "time":
            entries = [(0.0, sums.time_sum, sums.time_squares, 0.0)]
        else:
            own = range(source, source + width)
            numbers = np.array([sums.missing, sums.sums, sums.squares, found.means])
            entries = [(m, s, q, c) for m, s, q, c in numbers[:, own].T.tolist()]
        self._entries = entries
        self.missing = round(entries[0][0]) if entries else 0

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1: then squares about zero are as large as the sum."""
        if len(self._entries) != 1:
            return False
        _, total, squares, centre = self._entries[0]
        filled = self.rows - self.missing
        about_zero = squares + 2 * centre * total - filled * centre**2
        whole = abs(total - round(total)) + abs(about_zero - total) < ROUNDING * max(filled, 1)
        return whole and 0 < round(total) < filled

    def describe_numbers(self) -> Summary:
        _, total, squares, centre = self._entries[0]
        filled = self.rows - self.missing
        mean = total / filled if filled else None
        sd = None
        if mean is not None and filled > 1:
            sd = float(np.sqrt(max(squares - filled * (mean - centre) ** 2, 0.0) / (filled - 1)))
        return Summary(self.rows, self.missing, mean, sd)

    def count_levels(self) -> list[int]:
        counts = [round(total) for _, total, _, _ in self._entries]
        return [self.rows - self.missing - sum(counts), *counts]
