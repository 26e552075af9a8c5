"""Sections of the card on inference: discoveries and intervals as forest plots."""

from collections.abc import Sequence

import numpy as np

from fedlasso import html
from fedlasso.html import escape
from fedlasso.models.charts import ROWS_SHOWN
from fedlasso.models.inference_document import ColumnEstimate, TrustDocument
from fedlasso.models.numbers import number, p_value, ratio_of, some_of

# Names of a group's columns that are shown.
GROUP_SHOWN = 30
# Sites whose own estimates are drawn below a column's.
SITES_DRAWN = 12
# Sites' intervals are cut at this multiple of the longest pooled interval.
MAX_REACH = 3.0
FOREST_WIDTH = 200
NO_BREAK = "\N{NO-BREAK SPACE}"
RATE_NOTE = (
    "This is a Bayesian false discovery rate, calibrated by simulation: an average over many "
    "studies like this one, not a bound for each list. Very small effects are usually missed, and "
    "of highly correlated columns possibly all."
)
GROUPS_NOTE = (
    "The rows show that one or more columns of each group have an effect, but not which: all pairs "
    "of columns of a group are correlated by at least 0.9. A group counts as one discovery, which "
    "is false if none of its columns has an effect. Its most probable column represents it in the "
    "model, and other columns of the group would do about as well."
)
SELECTION_NOTE = "For the columns of the model; their selection by the same rows is accounted for."
POSTERIOR_NOTE = (
    "P(effect) is the posterior probability of an effect; the prior favours few effects, each "
    "clearly different from zero. An estimate is the expected effect if there is one, with all "
    "other columns held fixed and without the Lasso's shrinkage, so it differs from the model's "
    "coefficient; an interval that includes zero means that there may be none."
)
DEBIASED_NOTE = (
    "For the requested columns. Estimates are debiased: with all other columns held fixed and "
    "without the Lasso's shrinkage, so they differ from the model's coefficients. p-values are "
    "adjusted for the columns listed here by Holm's method."
)
WEIGHTS_NOTE = (
    "Rows are weighted by the inverse of the noise variance about their site's own mean, "
)
WEIGHTED = {True: "in the model, its certificate and its intervals.", False: "in inference only."}


ASSUMPTIONS = (
    "Rows are independent: no patient has several visits, unless clusters of rows were named.",
    "Effects add up on the scale of the linear predictor, and no confounder is missing.",
    "The data identify the columns: of nearly collinear ones, no single effect can be estimated.",
)


def draw_trust(trust: TrustDocument | None, ratio: str | None, assumption: str = "") -> str:
    """Return the sections on discoveries, intervals and site weights, as far as there are any.

    `assumption` is a further one, of the family.
    """
    if trust is None:
        return ""
    sections = []
    if trust.rate is not None:
        tested = f"<b>{escape(trust.summary)}</b> {trust.tests} columns were tested."
        sections.append(("Discoveries", f"{tested} {RATE_NOTE} {POSTERIOR_NOTE}", trust.found))
    if trust.selected:
        note = f"{SELECTION_NOTE} {POSTERIOR_NOTE}"
        sections.append(("Effects of the model's columns", note, trust.selected))
    if trust.named or trust.not_identified:
        sections.append(("Confidence intervals", DEBIASED_NOTE, trust.named))
    parts = [
        html.section(title, f"{note}{_name_sites(rows)}", _forest(rows, trust.level, ratio))
        for title, note, rows in sections
    ]
    if trust.groups:
        rows = [
            [some_of(group.names, GROUP_SHOWN), group.main, group.evidence]
            for group in trust.groups
        ]
        head = ["one or more of", "in the model", "P(effect)"]
        table = html.text_table(head, rows)
        parts.insert(1, html.section("Discovered groups", GROUPS_NOTE, table))
    if trust.not_identified:
        parts.append(html.bullets(trust.without_interval))
    if trust.site_weights is not None:
        weights = [[site, number(weight, 3)] for site, weight in trust.site_weights.items()]
        table = html.text_table(["site", "weight of a row"], weights)
        note = WEIGHTS_NOTE + WEIGHTED[trust.weighted_model]
        parts.append(html.section("Site weights", note, table))
    if trust.notes:
        parts.append(html.bullets(trust.notes))
    if sections:
        note = "Intervals, probabilities and rates hold only if these do; the fit cannot check all."
        assumed = [*ASSUMPTIONS, assumption] if assumption else ASSUMPTIONS
        parts.append(html.section("Assumptions", note, html.bullets(assumed)))
    return "".join(parts)


def _name_sites(rows: Sequence[ColumnEstimate]) -> str:
    drawn = (site.site for row in rows[:ROWS_SHOWN] for site in row.sites[:SITES_DRAWN])
    names = escape(", ".join(dict.fromkeys(drawn)))
    return names and f" Grey: estimates of each site alone, from top to bottom {names}."


def _forest(rows: Sequence[ColumnEstimate], level: float, ratio: str | None) -> str:
    """Return a table with every column's interval drawn on one scale, sites' own below it."""
    if not rows:
        return ""
    shown = rows[:ROWS_SHOWN]
    reach = _reach([row for row in shown if row.error > 0])
    interval = f"{level:.0%} {shown[0].interval_name}"
    evidence = "adjusted p" if shown[0].probability is None else "P(effect)"
    head = ["", "in standard errors", "estimate", interval, evidence]
    if ratio is not None:
        head.append(f"{ratio} per SD")
    by_site = any(row.sites for row in shown)
    if by_site:
        head.append("sites differ: p, I²")
    attributes = html.name_cells(head)
    attributes[1] = ' class="bar"'
    cells = []
    for row in shown:
        ends = _range(number(row.low, 3), number(row.high, 3))
        texts = [number(row.value, 3), ends, row.evidence[1]]
        if ratio is not None:
            with np.errstate(over="ignore"):
                exponents = np.exp(row.scale * np.array([row.value, row.low, row.high]))
            ratios = [ratio_of(float(value), 3) for value in exponents]
            texts.append(f"{ratios[0]} ({_range(*ratios[1:])})")
        if by_site:
            heterogeneity = row.heterogeneity
            texts.append(
                "–" if heterogeneity is None else f"{p_value(heterogeneity)}, {row.i_squared:.0%}"
            )
        cells.append([html.breakable(row.name), _draw(row, reach), *map(escape, texts)])
    more = len(rows) - len(shown)
    rest = f'<p class="soft">{more} more are in model.json.</p>' if more else ""
    drawn = html.table(head, cells, attributes=attributes, kind="bars forest wide")
    return f"{html.scrolled(drawn)}{rest}"


def _range(low: str, high: str) -> str:
    return f"{low}{NO_BREAK}to{NO_BREAK}{high}"


def _reach(rows: Sequence[ColumnEstimate]) -> float:
    """Return half the width of the plot, in standard errors."""
    own = max((max(abs(row.low), abs(row.high)) / row.error for row in rows), default=1.0)
    drawn = ((site, row.error) for row in rows for site in row.sites[:SITES_DRAWN])
    sites = (max(abs(site.low), abs(site.high)) / error for site, error in drawn)
    return max(own, min(max(sites, default=0.0), MAX_REACH * own))


def _draw(row: ColumnEstimate, reach: float) -> str:
    """Draw an interval in units of its standard error, with sites' own below it."""

    def at(value: float) -> float:
        fraction = value / (row.error * reach) if row.error > 0 else 0.0
        # The margin keeps the largest mark inside the plot.
        return FOREST_WIDTH / 2 + (FOREST_WIDTH / 2 - 5) * max(-1.0, min(1.0, fraction))

    sites = row.sites[:SITES_DRAWN]
    height = 12 + 6 * len(sites)
    parts = [
        f'<line class="zero" x1="{at(0.0):.1f}" x2="{at(0.0):.1f}" y1="0" y2="{height}"/>',
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
        f'<svg viewBox="0 0 {FOREST_WIDTH} {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
