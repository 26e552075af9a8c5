"""card.html: a fitted model on one page, from its document alone."""

import math
from dataclasses import asdict

from fedlasso import html
from fedlasso.html import escape
from fedlasso.models.card_examination import draw_examination
from fedlasso.models.card_inference import draw_trust
from fedlasso.models.charts import QUIET, ROWS_SHOWN, ChartLine, bar_chart, line_chart
from fedlasso.models.document import SENT, ModelDocument
from fedlasso.models.numbers import bytes_of, with_error

_X_TITLE = "penalty λ (smaller to the right)"
_KINDS = {
    "scaling": "means and scales",
    "moments": "second moments",
    "training": "gradients or models",
}


def draw_card(document: ModelDocument) -> str:
    """Return the card as HTML."""
    title = f"Model of {document.schema.target}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _lead(document),
        _certificate(document),
        _reasons(document),
        _coefficients(document),
        draw_trust(document.trust, document.ratio, document.settings.response_family.assumption),
        _curve(document),
        _path(document),
        draw_examination(document),
        _sent(document),
        _settings(document),
    ]
    return html.page(title, "card", "".join(parts))


def _lead(document: ModelDocument) -> str:
    name = document.name
    article = "An" if name[0] in "aeiou" else "A"
    own = document.family == document.settings.model_name
    count = len(document.coefficients)
    sites = len(document.sites)
    sent = " The sites sent no records; what they sent is listed below." * bool(document.revealed)
    facts = {"Training rows": f"{document.rows.training:,}"}
    facts["Columns used"] = f"{count} of {document.columns:,}"
    if error := document.error:
        error_name = document.settings.response_family.error_name
        facts[error_name.capitalize()] = with_error(error.mse, error.se)
        if error.r2 is not None:
            facts[_capital(_explained(document))] = f"{error.r2:.3f}"
    facts["Penalty λ" if own else "Penalty λ of the Lasso path"] = f"{document.penalty:.4g}"
    facts["Most sent by a site"] = document.most_sent_text
    warnings = html.bullets(document.warnings or ())
    first = f'<div class="warn"><b>Read this first</b>{warnings}</div>' if document.warnings else ""
    return (
        f'<p class="lead">{article} {escape(name)} with {count} of {document.columns} columns, '
        f"fitted across {sites} site{'s' * (sites > 1)}.{sent}</p>"
        f"{first}{html.facts(facts.items())}"
    )


def _explained(document: ModelDocument) -> str:
    return document.settings.response_family.explained_name.replace("^2", "²")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _certificate(document: ModelDocument) -> str:
    certificate = document.certificate
    bound = (
        f"The objective is that of the {escape(document.name)} with its chosen penalties and "
        "columns. The bound, a duality gap computed from sums over the sites, holds for any data."
    )
    # That uploads ended too early is among the warnings.
    known = math.isfinite(certificate.relative_gap)
    ended = known or certificate.stationary is not None
    status = document.status_text if ended and document.status not in ("CHOSEN", "CUT") else ""
    return (
        "<h2>Certificate: distance from the pooled optimum</h2>"
        f'<p class="lead">This model is <b>{certificate}</b>.</p>'
        f'<p class="soft">{bound if known else ""} {escape(status)}</p>'
    )


def _reasons(document: ModelDocument) -> str:
    reasons = [f"{_capital(document.why)}."]
    if document.plan:
        reasons.append(f"Plan: {document.plan}.")
    reasons.append(f"Penalty λ = {document.penalty:.4g}, {document.penalty_text}.")
    if error := document.error:
        reasons.append(f"The error and {_explained(document)} were measured on {error.rows}.")
    return "".join(f"<p>{escape(reason)}</p>" for reason in reasons)


def _coefficients(document: ModelDocument) -> str:
    rows = document.coefficients
    if not rows:
        what = "the mean" if document.ratio is None else "the same for all"
        text = f"No column is used: the model predicts {what}, {document.intercept:.6g}."
        return f"<h2>Coefficients</h2><p>{text}</p>"
    note = _coefficient_note(document)
    heads, lines = document.coefficient_table(ROWS_SHOWN)
    head = ["", heads[0], *heads]
    frequencies = {row.name: f"{row.share:.0%}" for row in document.stability or ()}
    if frequencies:
        head.append("selection frequency")
        lines = [[*texts, frequencies[row.name]] for row, texts in zip(rows, lines, strict=False)]
    scaled = document.settings.standardise
    bars: list[tuple[str, float, *tuple[str, ...]]] = [
        (row.name, row.standardised if scaled else row.value, *texts)
        for row, texts in zip(rows, lines, strict=False)
    ]
    if len(rows) > ROWS_SHOWN:
        note += f" The {len(rows) - ROWS_SHOWN} smaller ones are in coefficients.csv."
    return html.section("Coefficients", note, bar_chart(bars, head))


def _coefficient_note(document: ModelDocument) -> str:
    settings = document.settings
    family = settings.response_family
    note = family.effect.format(target=escape(document.schema.target))
    if family.intercept:
        note += f" Intercept {document.intercept:.6g}"
        note += ", the mean over the sites." if document.site_effects else "."
    if settings.keep:
        note += f" Never penalised: {escape(', '.join(settings.keep))}."
    if settings.bounds:
        note += f" {escape(_capital(document.bounds_text))}."
    if settings.standardise:
        note += " Bars and their order are per standard deviation (SD) of the column."
    return note


def _curve(document: ModelDocument) -> str:
    curve = document.curve
    if not curve:
        return ""
    line = ChartLine(curve.penalties, curve.mse, "held-out error", 0, curve.se, dots=True)
    y_title = document.settings.response_family.error_name
    chart = line_chart([line], _X_TITLE, y_title, reverse=True, mark=document.penalty)
    if not chart:
        return ""
    # Over several splits the count is a mean.
    active = f"{curve.active[curve.chosen]:.3g}"
    mean = "" if float(active).is_integer() else " on average over the folds"
    count = len(document.coefficients)
    also = "as many as this model" if active == f"{count}" else f"and this model has {count}"
    note = (
        "Error of the Lasso on held-out rows, pooled over the sites; the rows did not leave them. "
        f"The dashed line is the chosen penalty: the Lasso has {active} "
        f"column{'s' * (active != '1')} there{mean}, {also}."
    )
    return html.section("Held-out error", note, chart)


def _path(document: ModelDocument) -> str:
    path = document.path
    if not path or not path.names:
        return ""
    lines = [
        ChartLine(path.penalties, values, name, i, quiet=i >= QUIET)
        for i, (name, values) in enumerate(zip(path.names, path.coefficients, strict=True))
    ]
    mark = document.penalty if document.curve else None
    title = "standardised coefficient" if document.settings.standardise else "coefficient"
    chart = line_chart(lines, _X_TITLE, title, reverse=True, mark=mark, legend=True)
    if not chart:
        return ""
    grey = ", the smaller ones in grey" if len(lines) > QUIET else ""
    note = (
        f"The {len(lines)} largest coefficients of the Lasso as the penalty decreases{grey}. The "
        "legend lists them as they end on the right, from top to bottom."
    )
    return html.section("Coefficient path", note, chart)


def _sent(document: ModelDocument) -> str:
    extra = document.examination_sent or {}
    head = ["site", "rows", *_KINDS.values(), "other", *SENT[: 3 if extra else 1]]
    cells = []
    for site in document.sites:
        total = site.sent_in_all
        vectors = [site.sent.get(kind, 0) for kind in _KINDS]
        counts = [*vectors, total - sum(vectors), total]
        own = extra.get(site.name, 0)
        counts += [own, total + own] if extra else []
        cells.append([site.name, f"{site.rows:,}", *map(bytes_of, counts)])
    parts = [html.text_table(head, cells)]
    if document.revealed is not None:
        fit = document.revealed.fit
        card = [text for text in document.revealed.card if text not in fit]
        for title, texts in (("for the fit", fit), ("for this card as well", card)):
            if texts:
                parts.append(f"<p>What each site disclosed {title}:</p>{html.bullets(texts)}")
    note = "Counted from the messages, at eight bytes per number; this card is counted separately."
    return html.section("What each site sent", note, "".join(parts))


def _settings(document: ModelDocument) -> str:
    settings = document.settings
    values = asdict(settings) | {"procedure": document.procedure}
    for name in ("keep", "intervals", "bounds"):
        values[name] = ", ".join(values[name]) or None
    values |= {"missing values": document.missing, "fedlasso": document.fedlasso}
    unused = {**settings.without_effect, "validation": settings.cv}
    rows = [
        [name.replace("_", " "), ("no", "yes")[value] if isinstance(value, bool) else str(value)]
        for name, value in values.items()
        if value is not None and not unused.get(name)
    ]
    return f"<h2>Settings</h2>{html.text_table(['setting', 'value'], rows)}"
