"""Section of the card on participants: Table 1, by site and over all sites."""

from collections.abc import Iterator

from fedlasso import html
from fedlasso.fitting.examination.table_one import Summary, TableOne
from fedlasso.models.document import ModelDocument
from fedlasso.models.numbers import number

# More sites are summarised by their range.
SITES_SHOWN = 6
# More columns are in the CSV file alone.
COLUMNS_SHOWN = 60


def draw_participants(document: ModelDocument) -> str:
    """Return Table 1; nothing if it was not measured."""
    table = document.table_one
    if table is None:
        return ""
    few = len(table.sites) <= SITES_SHOWN
    head = ["", *(table.sites if few else ("range over the sites",)), "all sites"]
    rows = [line if few else _by_range(line) for line in describe(table, COLUMNS_SHOWN)]
    note = "Mean (SD) of numbers and rows (%) of levels; – where too few rows have a value."
    if not few or len(table.columns) > COLUMNS_SHOWN:
        note += " Every site and column is in table1.csv."
    return html.section("Table 1: participants", note, html.text_table(head, rows, kind="table1"))


def describe(table: TableOne, most: int | None = None) -> Iterator[list[str]]:
    """Yield the lines of Table 1: a name, a text for every site, and one for all sites."""
    yield ["rows", *(f"{rows:,}" for rows in table.rows), f"{sum(table.rows):,}"]
    if table.events is not None:
        counts = [own.counts[k] if k < len(own.counts) else None for own in summaries]
        texts = [
            _count(n, own.rows - own.missing) for n, own in zip(counts, summaries, strict=True)
        ]
        yield [f"{column.name} = {level}", *texts]
    if any(summary.missing for summary in summaries):
        yield [f"{column.name} missing", *(_count(s.missing, s.rows) for s in summaries)]


def _mean(summary: Summary) -> str:
    if summary.mean is None:
        return "–"
    return number(summary.mean) + ("" if summary.sd is None else f" ({number(summary.sd)})")


def _count(count: int | None, rows: int) -> str:
    if count is None:
        return "–"
    return f"{count:,} ({count / rows:.0%})" if rows else f"{count:,}"


def _by_range(line: list[str]) -> list[str]:
    """Return a line with the lowest and the highest site instead of all."""
    known = [text for text in line[1:-1] if text != "–"]
    by_size = sorted(known, key=lambda text: float(text.split(" ")[0].replace(",", "")))
    ends = f"{by_size[0]} to {by_size[-1]}" if by_size else "–"
    return [line[0], ends, line[-1]]
