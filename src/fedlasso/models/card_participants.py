"""Section of the card on participants: Table 1, by site and over all sites."""

from fedlasso import html
from fedlasso.models.document import ModelDocument
from fedlasso.models.table_one_cells import WITHHELD, table_cells

# More sites are summarised by their range.
SITES_SHOWN = 6
# More rows are in the CSV file alone.
ROWS_SHOWN = 80


def draw_participants(document: ModelDocument) -> str:
    """Return Table 1; nothing if it was not measured."""
    table = document.table_one
    if table is None:
        return ""
    head, rows = table_cells(table)
    few = len(table.sites) <= SITES_SHOWN
    if not few:
        head = ["", "range over the sites", "all sites"]
        rows = [_by_range(row) for row in rows]
    note = "Mean (SD) of numbers, and rows (%) of levels."
    if any("–" in row for row in rows):
        note += f" {WITHHELD}."
    if not few or len(rows) > ROWS_SHOWN:
        note += " Every site and column is in table1.csv."
    shown = html.text_table(head, rows[:ROWS_SHOWN], kind="table1")
    return html.section("Table 1: participants", note, shown)


def _by_range(row: list[str]) -> list[str]:
    """Return a row with the lowest and the highest site instead of all."""
    known = [text for text in row[1:-1] if text != "–"]
    by_size = sorted(known, key=lambda text: float(text.split(" ")[0].replace(",", "")))
    ends = f"{by_size[0]} to {by_size[-1]}" if by_size else "–"
    return [row[0], ends, row[-1]]
