"""Sections of the card that `examine` measures: held-out rows, sites, other models, other rows."""

import math

from fedlasso import html
from fedlasso.fitting.examination.assessment import Assessment, Calibration, Measure
from fedlasso.fitting.examination.comparison import OWN_COLUMNS, THIS_MODEL, SiteError, pool_error
from fedlasso.html import escape
from fedlasso.models.charts import ROWS_SHOWN, ChartLine, bar_chart, line_chart
from fedlasso.models.document import NESTED, ModelDocument
from fedlasso.models.numbers import bytes_of, number, percent, with_error


def draw_examination(document: ModelDocument) -> str:
    """Return the sections, each with a reason where a site refused it."""
    sections = (_assessment, _site_errors, _comparison, _stability)
    return "".join(draw(document) for draw in sections)


def _assessment(document: ModelDocument) -> str:
    title = "Predictive performance"
    found = document.assessment
    if found is None:
        return html.left_out(title, document.not_assessed)
    values = (found.explained, found.auroc, found.concordance)
    measured = zip(("Deviance explained", "AUROC", "Concordance"), values, strict=True)
    facts = {name: _measure(value, 3) for name, value in measured if value is not None}
    if found.calibration is not None:
        titles = ("Calibration intercept (ideal: 0)", "Calibration slope (ideal: 1)")
        facts |= zip(titles, _calibration(found.calibration), strict=True)
    return html.section(
        title, escape(found.how), html.facts(facts.items()) + _charts(found) + _sites(found)
    )


def _charts(found: Assessment) -> str:
    parts = []
    if len(found.groups) > 1:
        expected = [group.expected for group in found.groups]
        observed = [group.observed for group in found.groups]
        ends = [min(expected + observed), max(expected + observed)]
        groups = ChartLine(expected, observed, "groups of rows", 0, dots=True)
        lines = [groups, ChartLine(ends, ends, "perfect calibration", 7)]
        parts.append("<p>Calibration, in groups of rows with similar predictions:</p>")
        parts.append(line_chart(lines, "mean prediction", "mean response", log=False, legend=True))
    if found.curves:
        lines = [ChartLine(c.times, c.shares, c.name, k) for k, c in enumerate(found.curves)]
        parts.append("<p>Kaplan-Meier curves by predicted risk:</p>")
        parts.append(line_chart(lines, "time", "proportion event-free", log=False, legend=True))
    return "".join(parts)


def _sites(found: Assessment) -> str:
    if not found.sites:
        return ""
    if found.concordance is not None:
        head = ["site", "comparable pairs", "concordance"]
        cells = [
            [s.name, "–" if s.pairs is None else f"{s.pairs:,}", _measure(s.concordance, 3)]
            for s in found.sites
        ]
    else:
        head = ["site", "AUROC", "calibration intercept", "calibration slope"]
        cells = [[s.name, _measure(s.auroc, 3), *_calibration(s.calibration)] for s in found.sites]
    return html.text_table(head, cells)


def _measure(found: Measure | None, digits: int) -> str:
    if found is None:
        return "–"
    text = f"{found.value:.{digits}f}"
    if found.low is None or found.high is None:
        return text
    return f"{text} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def _calibration(found: Calibration | None) -> list[str]:
    return ["–", "–"] if found is None else [_measure(found.intercept, 2), _measure(found.slope, 2)]


def _site_errors(document: ModelDocument) -> str:
    title = "Error per site"
    errors = document.site_errors
    if not errors:
        return html.left_out(title, document.no_site_errors)
    pooled = pool_error(errors)
    everywhere = SiteError("all sites", sum(error.rows for error in errors), pooled)
    family = document.settings.response_family
    cells = []
    for error in (*errors, everywhere):
        root = [number(math.sqrt(error.mse), 4)] if family.quadratic else []
        times = f"{error.mse / pooled:.2f}" if pooled > 0 else "–"
        cells.append([error.name, f"{error.rows:,}", number(error.mse, 4), *root, times])
    head = ["site", "rows", family.error_name, *["RMSE"] * family.quadratic, "ratio to all sites"]
    note = "On the training rows; new rows have larger errors. A high ratio means a bad fit there."
    return html.section(title, note, html.text_table(head, cells, own=len(errors)))


def _comparison(document: ModelDocument) -> str:
    title = "Compared with averaging and with each site alone"
    if not document.comparison:
        return html.left_out(title, document.not_compared)
    cells = []
    for row in document.comparison:
        above = "–" if row.above is None else percent(row.above)
        sent = bytes_of(row.sent) if row.sent else "nothing"
        cells.append([row.name, with_error(row.mse, row.se), str(row.active), above, sent])
    head = ["", "held-out error", "columns", "objective above the pooled Lasso's", "sent by a site"]
    note = _comparison_note(document, document.comparison[0].name)
    if error := document.error:
        expected = f"{with_error(error.mse, error.se)}, on {error.rows}"
        note += escape(f" The expected error of this model itself is {expected}.")
    return html.section(title, note, html.text_table(head, cells, own=0))


def _comparison_note(document: ModelDocument, first: str) -> str:
    """Return what the compared models have seen; `first` is this one, or represents it."""
    note = (
        "All models were fitted to the same training rows, and evaluated on the same held-out rows "
        "of all sites (± one standard error). Each site alone chose its penalty on other held-out "
        "rows, if it had enough. The objective is that of the Lasso on the training rows; its "
        "column is the exact distance to the minimum, not a bound. "
    )
    if first == THIS_MODEL:
        return note + (
            "This model was fitted to the training rows only; held-out rows may have chosen it. "
            "What it sent includes standardisation and tuning."
        )
    note += "This model used all rows, so "
    if first == OWN_COLUMNS:
        return note + (
            "its columns are refitted to the training rows with almost no penalty. This is "
            "slightly optimistic: the held-out rows helped to select them."
        )
    note += "the pooled Lasso on the training rows represents it"
    if document.curve is None:
        return f"{note}, at the given penalty."
    if document.error is not None and document.error.rows == NESTED:
        return f"{note}, at the penalty that all rows chose, the held-out rows included."
    return f"{note}, at this model's penalty, which the held-out rows may have helped to choose."


def _stability(document: ModelDocument) -> str:
    if not document.stability:
        return ""
    bars = [
        (row.name + ("" if row.selected else " (not used)"), row.share, f"{row.share:.0%}")
        for row in document.stability[:ROWS_SHOWN]
    ]
    note = "Percentage of random halves of the rows that select each column at the same penalty."
    title = "Selection frequency: would other rows select the same columns?"
    return html.section(title, note, bar_chart(bars, top=1.0))
