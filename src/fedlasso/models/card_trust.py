"""The card's part on how sure columns are: discoveries and intervals as a forest plot."""

from collections.abc import Sequence

import numpy as np

from fedlasso import html
from fedlasso.html import escape
from fedlasso.models.inference_document import ColumnEstimate, TrustDocument, tell_chance
from fedlasso.models.numbers import number, p_value, ratio_of

_SHOWN = 30
# Sites whose own estimates are drawn below a column's.
MOST_SITES = 12
# Intervals of sites are drawn whole up to so many times the longest of all sites together.
MOST_REACH = 3.0
WIDTH = 200
# A space at which no line is broken.
SPACE = "\N{NO-BREAK SPACE}"
PROMISE = (
    "The promise is about the average over many studies like this one, not about each list. It "
    "rests on rows that are independent of each other and alike in noise, and on a model that "
    "holds. Chances are by Bayes' rule: before the rows were seen, any number of columns might "
    "have had an effect, few rather than many, each clear of zero. Effects that are hardly any are "
    "mostly not found, and of columns that stand for one another none may be."
)
SUPPOSED = (
    "Chances are by Bayes' rule, from all rows: before these were seen, any number of columns "
    "might have had an effect, few rather than many, each clear of zero. That the same rows picked "
    "the columns is allowed for."
)
EFFECTS = (
    "Estimates are of the effect, with all other columns held fixed, if there is one; an interval "
    "that reaches zero says that there may be none."
)
DEBIASED = (
    "Estimates are of each column with all others held fixed, without the Lasso's shrinkage, so "
    "they differ from the model's own coefficients. p-values are adjusted by Holm's method for the "
    "columns listed here."
)


def draw_trust(trust: TrustDocument | None, ratio: str | None) -> str:
    """Return what is known of how sure columns are."""
    if trust is None:
        return ""
    drawn = []
    if trust.rate is not None:
        found = f"<b>{escape(trust.words)}</b> {trust.tests} columns might have been found."
        drawn.append(("Discoveries", f"{found} {PROMISE} {EFFECTS}", trust.found))
    if trust.selected:
        note = f"Of the columns that the model uses. {SUPPOSED} {EFFECTS}"
        drawn.append(("How sure the model's columns are", note, trust.selected))
    if trust.named:
        note = f"Of the columns that were asked for. {DEBIASED}"
        drawn.append(("Intervals", note, trust.named))
    parts = [
        html.section(title, f"{note}{_name_sites(rows)}", _forest(rows, trust.level, ratio))
        for title, note, rows in drawn
    ]
    if trust.worth is not None:
        rows = [[site, number(worth, 3)] for site, worth in trust.worth.items()]
        note = (
            "Sites differ in noise, so a row counts by the inverse of the variance of its site's "
            "noise, in the model, its certificate and its intervals."
        )
        table = html.text_table(["site", "what a row is worth"], rows)
        parts.append(html.section("Weights of the sites", note, table))
    if trust.notes:
        parts.append(html.bullets(trust.notes))
    return "".join(parts)


def _name_sites(rows: Sequence[ColumnEstimate]) -> str:
    """Which sites the small marks are of, where there are any."""
    drawn = (site.site for row in rows[:_SHOWN] for site in row.sites[:MOST_SITES])
    names = ", ".join(dict.fromkeys(drawn))
    if not names:
        return ""
    return (
        " Grey marks below an estimate are those of single sites, from their rows alone: from top "
        f"to bottom {escape(names)}."
    )


def _forest(rows: Sequence[ColumnEstimate], level: float, ratio: str | None) -> str:
    """A table with every column's interval drawn on one scale, sites' own below it."""
    if not rows:
        return ""
    shown = rows[:_SHOWN]
    reach = _reach([row for row in shown if row.error > 0])
    sureness = "adjusted p" if shown[0].chance is None else "chance of an effect"
    head = ["", "in standard errors", "estimate", f"{level:.0%} interval", sureness]
    if ratio is not None:
        head.append(f"{ratio} per SD")
    by_site = any(row.sites for row in shown)
    if by_site:
        head.append("sites differ: p, I²")
    said = html.name_cells(head)
    said[1] = ' class="bar"'
    cells = []
    for row in shown:
        texts = [
            number(row.value, 3),
            _range(number(row.low, 3), number(row.high, 3)),
            p_value(row.adjusted) if row.chance is None else tell_chance(row.chance),
        ]
        if ratio is not None:
            with np.errstate(over="ignore"):
                ends = np.exp(row.scale * np.array([row.value, row.low, row.high]))
            ratios = [ratio_of(float(end), 3) for end in ends]
            texts.append(f"{ratios[0]} ({_range(*ratios[1:])})")
        if by_site:
            texts.append(_unlike(row))
        cells.append([html.breakable(row.name), _draw(row, reach), *map(escape, texts)])
    more = len(rows) - len(shown)
    rest = f'<p class="soft">{more} more are in model.json.</p>' if more else ""
    drawn = html.table(head, cells, attributes=said, kind="bars forest wide")
    return f"{html.scrolled(drawn)}{rest}"


def _range(low: str, high: str) -> str:
    """The ends of an interval, which stay on one line."""
    return f"{low}{SPACE}to{SPACE}{high}"


def _reach(rows: Sequence[ColumnEstimate]) -> float:
    """Standard errors from zero to the end of the drawing.

    It holds every interval, and those of sites unless one site is far more uncertain than all.
    """
    own = max((max(abs(row.low), abs(row.high)) / row.error for row in rows), default=1.0)
    sites = (
        max(abs(site.low), abs(site.high)) / row.error
        for row in rows
        for site in row.sites[:MOST_SITES]
    )
    return max(own, min(max(sites, default=0.0), MOST_REACH * own))


def _unlike(row: ColumnEstimate) -> str:
    """The test of whether sites differ, where they tell their own estimates."""
    if row.unlike is None or row.share_unlike is None:
        return "–"
    return f"{p_value(row.unlike)}, {row.share_unlike:.0%}"


def _draw(row: ColumnEstimate, reach: float) -> str:
    """An interval in units of its standard error, with sites' own below it."""

    def at(value: float) -> float:
        share = value / (row.error * reach) if row.error > 0 else 0.0
        # The largest mark is not cut at the edge.
        return WIDTH / 2 + (WIDTH / 2 - 5) * max(-1.0, min(1.0, share))

    sites = row.sites[:MOST_SITES]
    height = 12 + 6 * len(sites)
    parts = [
        f'<line class="zero" x1="{WIDTH / 2}" x2="{WIDTH / 2}" y1="0" y2="{height}"/>',
        f'<g class="c0"><line x1="{at(row.low):.1f}" x2="{at(row.high):.1f}" y1="6" y2="6" '
        f'stroke-width="2"/><circle cx="{at(row.value):.1f}" cy="6" r="4"/></g>',
    ]
    for i, site in enumerate(sites):
        y = 15 + 6 * i
        title = f"<title>{escape(site.site)}: {number(site.value, 3)}</title>"
        parts.append(
            f'<g class="c7">{title}<line x1="{at(site.low):.1f}" x2="{at(site.high):.1f}" '
            f'y1="{y}" y2="{y}"/><circle cx="{at(site.value):.1f}" cy="{y}" r="2"/></g>'
        )
    label = f"{row.name}: {number(row.value, 3)}, {number(row.low, 3)} to {number(row.high, 3)}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
