"""Sections of the card on prediction: measures with intervals, by site, and their charts."""

from collections.abc import Callable, Sequence

from fedlasso import html
from fedlasso.fitting.examination.assessment import Assessment, Measure, SiteAssessment
from fedlasso.fitting.examination.comparison import ALL_SITES
from fedlasso.html import escape
from fedlasso.models.document import ModelDocument
from fedlasso.models.numbers import NO_BREAK, capital, interval_of, number
from fedlasso.models.plots import plot_calibration, plot_roc, plot_survival
from fedlasso.models.svg import SQUARE, WIDE, draw_svg


def headline(document: ModelDocument) -> dict[str, str]:
    """Return the measures that answer how well a model predicts, by name."""
    found = document.assessment
    if found is None:
        return {}
    facts = {
        name: interval_of(read(found), digits)
        for name, (read, digits) in _measures(document).items()
        if read(found) is not None
    }
    # Discoveries were refitted, and some fits end far from the optimum, which was assessed.
    of = "" if document.error is not None else f" of the {document.settings.model_name}"
    return {f"{capital(name)}{of}": value.replace(NO_BREAK, " ") for name, value in facts.items()}


def draw_performance(document: ModelDocument) -> str:
    """Return the section on predictive performance, or why there is none."""
    title = "Predictive performance"
    found = document.assessment
    if found is None:
        return html.left_out(title, document.not_assessed)
    body = _charts(document, found)
    rows = [_row(document, ALL_SITES, found)]
    rows += [_row(document, site.name, site) for site in found.sites]
    body += _table(document, rows, own=0)
    if found.left_out:
        body += (
            "<h3>Leaving one site out</h3><p class='soft'>Each model was fitted without the site, "
            "and assessed on all of its rows: what to expect at a new site.</p>"
        )
        rows = [_row(document, site.name, site) for site in found.left_out]
        body += _table(document, rows)
    note = f"{found.how} Measures with their 95% intervals."
    return html.section(title, escape(note), body)


def _measures(
    document: ModelDocument,
) -> dict[str, tuple[Callable[[Assessment | SiteAssessment], Measure | None], int]]:
    """Return names of measures, how to read each, and its digits."""
    explained = document.settings.response_family.explained_name.replace("^2", "²")
    return {
        "AUROC": (lambda one: one.auroc, 3),
        "concordance": (lambda one: one.concordance, 3),
        explained: (lambda one: one.explained, 3),
        "calibration slope": (lambda one: one.calibration and one.calibration.slope, 2),
        "calibration intercept": (lambda one: one.calibration and one.calibration.intercept, 2),
    }


def _row(document: ModelDocument, name: str, found: Assessment | SiteAssessment) -> dict[str, str]:
    """Return a row of the table by its heads; a measure that is nowhere known has no column."""
    cells = {"": name, "rows": f"{found.rows:,}" if found.rows else "–"}
    pairs = getattr(found, "pairs", None)
    cells["comparable pairs"] = "–" if pairs is None else f"{pairs:,}"
    cells |= {
        head: interval_of(read(found), digits)
        for head, (read, digits) in _measures(document).items()
    }
    error_name = document.settings.response_family.error_name
    cells[error_name] = "–" if found.error is None else number(found.error.value, 4)
    return cells


def _table(document: ModelDocument, rows: Sequence[dict[str, str]], own: int | None = None) -> str:
    heads = [head for head in rows[0] if any(row[head] != "–" for row in rows)]
    return html.text_table(heads, [[row[head] for head in heads] for row in rows], own, "measures")


def _charts(document: ModelDocument, found: Assessment) -> str:
    parts = []
    if len(found.roc) > 1:
        one = f" of {document.positive}" if document.positive else ""
        chart = draw_svg(lambda ax: plot_roc(found, ax), f"ROC curve{one}", SQUARE)
        parts.append(_titled(f"ROC curve{one}", f"AUROC {interval_of(found.auroc)}", chart))
    if len(found.groups) > 1:
        chart = draw_svg(lambda ax: plot_calibration(found, ax), "Calibration plot", SQUARE)
        note = "mean responses with 95% intervals, in groups of the predicted response at each site"
        parts.append(_titled("Calibration", note, chart))
    if found.curves:
        size = (WIDE[0], WIDE[1] + 1.5)
        chart = draw_svg(lambda ax: plot_survival(found, ax), "Kaplan-Meier curves", size)
        note = (
            "by thirds of the predicted risk at each site, with 95% bands; a curve ends where few "
            "rows are at risk"
        )
        parts.append(_titled("Kaplan-Meier curves", note, chart))
    return f'<div class="pair">{"".join(parts)}</div>' if any(parts) else ""


def _titled(title: str, note: str, chart: str) -> str:
    return f"<div><p><b>{escape(title)}</b>: {escape(note)}</p>{chart}</div>" if chart else ""
