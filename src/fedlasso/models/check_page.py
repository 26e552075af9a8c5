"""A check of tables for the reader: on the terminal, as a page, and as CSV."""

from collections.abc import Sequence

from fedlasso import html
from fedlasso.csv_text import write_csv
from fedlasso.models.checkup import Checked
from fedlasso.models.table_one_cells import WITHHELD, table_cells
from fedlasso.tables.held import write_options

# Rows of Table 1 on the terminal.
TERMINAL_ROWS = 60
TITLE = "Are these tables ready for a fit?"


def summarise(checked: Checked) -> str:
    """Return the number of problems as a sentence."""
    notes = len(checked.findings) - checked.mends
    if not checked.findings:
        return "Nothing to mend."
    mends = f"{checked.mends} problem{'s' * (checked.mends != 1)} to mend"
    return f"{mends}, {notes} note{'s' * (notes != 1)}."


def describe_check(checked: Checked) -> str:
    """Return findings, the options that deal with them, and Table 1 as text."""
    lines = [summarise(checked)]
    lines += [f"{'MEND' if f.mend else 'note'}  {f}" for f in checked.findings]
    if checked.options:
        lines.append(f"Add to fedlasso fit, if you agree: {checked.options}")
    if checked.table is not None:
        heads, rows = table_cells(checked.table)
        lines += ["", "Table 1: mean (SD) or n (%)", *_columns([heads, *rows[:TERMINAL_ROWS]])]
        if len(rows) > TERMINAL_ROWS:
            lines.append(f"... and {len(rows) - TERMINAL_ROWS} more lines; --out writes all")
        if any("–" in row for row in rows):
            lines.append(WITHHELD)
    return "\n".join(lines)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        f"  {row[0]:{widths[0]}}  " + "  ".join(map(str.rjust, row[1:], widths[1:])) for row in rows
    ]


def draw_check(checked: Checked) -> str:
    """Return the check as a page."""
    parts = [f"<h1>{TITLE}</h1>", f'<p class="lead">{summarise(checked)}</p>']
    mends = [str(finding) for finding in checked.findings if finding.mend]
    notes = [str(finding) for finding in checked.findings if not finding.mend]
    if mends:
        parts.append(f'<div class="warn">{html.bullets(mends)}</div>')
    if checked.options:
        parts.append("<p>Add to <code>fedlasso fit</code>, if you agree:</p>")
        parts.append(f"<p><code>{html.escape(checked.options)}</code></p>")
    if notes:
        parts.append(html.section("Notes", "A fit goes on with these.", html.bullets(notes)))
    if checked.table is not None:
        heads, rows = table_cells(checked.table)
        note = "Mean (SD) or n (%) of the rows with a value."
        if any("–" in row for row in rows):
            note += f" {WITHHELD}."
        parts.append(html.section("Table 1", note, html.text_table(heads, rows)))
    return html.page(TITLE, "card", "".join(parts))


def write_findings_csv(checked: Checked) -> str:
    """Return the findings as CSV."""
    rows: list[list[object]] = [["mend", "sites", "column", "finding", "remedy", "options"]]
    for f in checked.findings:
        given = write_options(f.options)
        rows.append([f.mend, " ".join(f.sites), f.column, f.what, f.remedy, given])
    return write_csv(rows)
