"""card.html: a model told on one page, from its document alone."""

import math
from dataclasses import asdict

from fedlasso import html
from fedlasso.families import FAMILIES
from fedlasso.fitting.examination.comparison import (
    OWN_COLUMNS,
    THIS_MODEL,
    ComparedModel,
    SiteError,
    pool_error,
)
from fedlasso.html import escape
from fedlasso.models.card_assessment import draw_assessment
from fedlasso.models.card_trust import draw_trust
from fedlasso.models.charts import QUIET, ChartLine, bar_chart, line_chart
from fedlasso.models.document import NESTED, ExpectedError, ModelDocument
from fedlasso.models.numbers import bytes_of, number, percent

_SHOWN = 30
_X_TITLE = "penalty (smaller to the right)"
_KINDS = {"scaling": "means and scales", "training": "gradients or models"}


def draw_card(document: ModelDocument) -> str:
    """Return the card as HTML."""
    title = f"Model of {document.schema.target}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _lead(document),
        _certificate(document),
        _reasons(document),
        _coefficients(document),
        draw_trust(document.trust, document.ratio),
        _curve(document),
        _path(document),
        draw_assessment(document.assessment, document.not_assessed),
        _site_errors(document),
        _comparison(document),
        _stability(document),
        _sent(document),
        _settings(document),
    ]
    return html.page(title, "card", "".join(parts))


def _lead(document: ModelDocument) -> str:
    """What the model is; of what left the sites it says no more than the questions do."""
    name = document.name
    article = "An" if name[0] in "aeiou" else "A"
    own = document.family == document.settings.model_name
    count = len(document.coefficients)
    sites = len(document.sites)
    stayed = " The sites sent no records; what they sent is listed below."
    warnings = html.bullets(document.warnings or ())
    facts = {
        "Training rows": f"{document.rows.training:,}",
        "Columns used": f"{count} of {document.columns:,}",
        **_error_facts(document),
        "Penalty" if own else "Penalty, on the path": f"{document.penalty:.4g}",
        "Most sent by a site": bytes_of(document.most_sent),
    }
    first = f'<div class="warn"><b>Read this first</b>{warnings}</div>' if document.warnings else ""
    return (
        f'<p class="lead">{article} {escape(name)} with {count} of {document.columns} columns, '
        f"fitted across {sites} site{'s' * (sites > 1)}.{stayed if document.revealed else ''}</p>"
        f"{first}{html.facts(facts.items())}"
    )


def _reasons(document: ModelDocument) -> str:
    """Why this model, how uploads were planned, and where the error comes from."""
    reasons = [f"{_capital(document.why)}."]
    if document.plan:
        reasons.append(f"The plan was {document.plan}.")
    reasons.append(f"The penalty is {document.penalty:.4g}, {document.penalty_words}.")
    if document.error is not None:
        explained = _explained(document)
        reasons.append(f"The error, and with it {explained}, is on {document.error.rows}.")
    return "".join(f"<p>{escape(reason)}</p>" for reason in reasons)


def _error_facts(document: ModelDocument) -> dict[str, str]:
    error = document.error
    if error is None:
        return {}
    facts = {document.settings.response_family.error_name.capitalize(): _spread(error)}
    if error.r2 is not None:
        facts[_capital(_explained(document))] = f"{error.r2:.3f}"
    return facts


def _explained(document: ModelDocument) -> str:
    return document.settings.response_family.explained_name.replace("^2", "²")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _spread(error: ExpectedError | ComparedModel) -> str:
    if error.mse is None:
        return "–"
    spread = "" if error.se is None else f" ± {number(error.se, 2)}"
    return f"{number(error.mse, 4)}{spread}"


def _certificate(document: ModelDocument) -> str:
    certificate = document.certificate
    bound = (
        f"The objective is that of the {escape(document.name)}, with the penalties and the columns "
        "that were chosen for it. The bound is a duality gap, computed from sums over the sites; "
        "it holds whatever the records are."
    )
    # How a fit ended is part of the warnings where uploads ended too early.
    known = math.isfinite(certificate.relative_gap)
    ended = known or certificate.stationary is not None
    how = document.status_text if ended and document.status not in ("CHOSEN", "CUT") else ""
    return (
        "<h2>Certificate: how far from the pooled answer</h2>"
        f'<p class="lead">This model is <b>{certificate}</b>.</p>'
        f'<p class="soft">{bound if known else ""} {escape(how)}</p>'
    )


def _coefficients(document: ModelDocument) -> str:
    rows = document.coefficients
    if not rows:
        return (
            "<h2>Coefficients</h2><p>No column is used: the model predicts "
            f"{'the mean' if document.ratio is None else 'the same for all'}, "
            f"{document.intercept:.6g}.</p>"
        )
    note = _coefficient_note(document)
    heads, lines = document.coefficient_table(_SHOWN)
    head = ["", heads[0], *heads]
    shares = {row.name: f"{row.share:.0%}" for row in document.stability or ()}
    if shares:
        head.append("halves that select it")
        lines = [[*texts, shares[row.name]] for row, texts in zip(rows, lines, strict=False)]
    scaled = document.settings.standardise
    bars: list[tuple[str, float, *tuple[str, ...]]] = [
        (row.name, row.standardised if scaled else row.value, *texts)
        for row, texts in zip(rows, lines, strict=False)
    ]
    if len(rows) > _SHOWN:
        note += f" The {len(rows) - _SHOWN} smaller ones are in coefficients.csv."
    return html.section("Coefficients", note, bar_chart(bars, head))


def _coefficient_note(document: ModelDocument) -> str:
    """What the coefficients are of, and what belongs to none of them."""
    settings = document.settings
    family = settings.response_family
    note = family.effect.format(target=escape(document.schema.target))
    if family.intercept:
        note += f" Intercept {document.intercept:.6g}"
        note += ", the mean of the sites' own." if settings.site_effects else "."
    if settings.keep:
        note += f" Never penalised: {escape(', '.join(settings.keep))}."
    if settings.bounds:
        note += f" {escape(_capital(document.bounds_words))}."
    if settings.standardise:
        note += " Bars, and their order, are per standard deviation (SD) of the column."
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
    also = "as this model has" if active == f"{count}" else f"and this model has {count}"
    note = (
        "Of the Lasso, pooled over the sites' held-out rows, which stayed where they are. The "
        f"dashed line is the penalty chosen on this path: the Lasso has {active} "
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
    grey = ", of which the smaller ones are grey" if len(lines) > QUIET else ""
    note = (
        f"Coefficients of the Lasso as the penalty falls; the largest {len(lines)}{grey}. Names "
        "are in the order of the right ends, from top to bottom."
    )
    return html.section("Path", note, chart)


def _site_errors(document: ModelDocument) -> str:
    title = "Error per site"
    errors = document.site_errors
    if not errors:
        return html.left_out(title, document.no_site_errors)
    pooled = pool_error(errors)
    everywhere = SiteError("all sites", sum(error.rows for error in errors), pooled)
    rooted = document.ratio is None
    cells = []
    for error in (*errors, everywhere):
        root = [number(math.sqrt(error.mse), 4)] if rooted else []
        times = f"{error.mse / pooled:.2f}" if pooled > 0 else "–"
        cells.append([error.name, f"{error.rows:,}", number(error.mse, 4), *root, times])
    name = document.settings.response_family.error_name
    head = ["site", "rows", name, *["its root"] * rooted, "times that of all sites"]
    note = (
        "On the rows that the model was fitted to, so on new rows expect more. It shows where the "
        "common model fits badly."
    )
    return html.section(title, note, html.text_table(head, cells, own=len(errors)))


def _comparison(document: ModelDocument) -> str:
    title = "Compared with averaging and with each site alone"
    if not document.comparison:
        return html.left_out(title, document.not_compared)
    cells = []
    for row in document.comparison:
        above = "–" if row.above is None else percent(row.above)
        sent = bytes_of(row.sent) if row.sent else "nothing"
        cells.append([row.name, _spread(row), str(row.active), above, sent])
    head = ["", "held-out error", "columns", "objective above the pooled Lasso's", "sent by a site"]
    note = f"{_what_is_compared(document, document.comparison[0].name)} "
    if error := document.error:
        itself = f"The error to expect of this model itself is {_spread(error)}, on {error.rows}."
        note += escape(itself)
    return html.section(title, note, html.text_table(head, cells, own=0))


def _what_is_compared(document: ModelDocument, first: str) -> str:
    """Which rows the compared models have seen, and which not; `first` is this one, or for it."""
    words = (
        "All were trained on the same rows and are judged on the same held-out rows of all sites "
        "(± one standard error), which none of them was fitted to. Each site alone chose its own "
        "penalty on other held-out rows, where it could. The objective is that of the Lasso on the "
        "training rows; its column tells the distance itself, where a certificate tells a bound. "
    )
    if first == THIS_MODEL:
        return words + (
            "This model was fitted to the training rows only, and rows that judge here may have "
            "chosen it. What it sent includes standardising and tuning."
        )
    words += "This model was fitted to all rows, so no row can judge it here: "
    if first == OWN_COLUMNS:
        return words + (
            "its columns, fitted to the training rows nearly without a penalty, stand for it. Rows "
            "that judge here have helped to pick them."
        )
    words += "the pooled Lasso on the training rows stands for it"
    if document.curve is None:
        return f"{words}, at the penalty that was given."
    if document.error is not None and document.error.rows == NESTED:
        return f"{words}, at the penalty that all rows chose, so that penalty has seen them all."
    return f"{words}, at this model's penalty, which rows that judge here may have helped choose."


def _stability(document: ModelDocument) -> str:
    if not document.stability:
        return ""
    bars = [
        (row.name + ("" if row.selected else " (not used)"), row.share, f"{row.share:.0%}")
        for row in document.stability[:_SHOWN]
    ]
    note = "Share of random halves of the rows, at the same penalty, that select each column."
    title = "Would other rows select the same columns?"
    return html.section(title, note, bar_chart(bars, top=1.0))


def _sent(document: ModelDocument) -> str:
    extra = document.examination_sent or {}
    head = ["site", "rows", *_KINDS.values(), "all else", "in all"]
    head += ["for this card"] if extra else []
    cells = []
    for site in document.sites:
        whole = site.sent_in_all
        vectors = [site.sent.get(kind, 0) for kind in _KINDS]
        counts = [*vectors, whole - sum(vectors), whole]
        counts += [extra.get(site.name, 0)] if extra else []
        cells.append([site.name, f"{site.rows:,}", *map(bytes_of, counts)])
    parts = [html.text_table(head, cells)]
    if document.revealed is not None:
        # What the questions that were really asked say that they reveal.
        fit = document.revealed.fit
        card = [text for text in document.revealed.card if text not in fit]
        for title, texts in (("for the fit", fit), ("for this card as well", card)):
            if texts:
                parts.append(f"<p>What a site's answers reveal, {title}:</p>{html.bullets(texts)}")
    note = (
        "Counted from the messages, eight bytes per number; what was asked for this card is "
        "counted apart."
    )
    return html.section("What each site sent", note, "".join(parts))


def _settings(document: ModelDocument) -> str:
    settings = document.settings
    told = asdict(settings) | {"procedure": document.procedure}
    for name in ("keep", "intervals", "bounds"):
        told[name] = ", ".join(told[name]) or None
    told |= {"missing values": document.missing, "fedlasso": document.fedlasso}
    own = settings.response_family.options
    unused = {name: name not in own for family in FAMILIES.values() for name in family.options}
    unused |= {"validation": settings.cv is not None, "epochs": settings.procedure is None}
    unused |= {"fdr": not settings.requested_goal.infers, "level": not settings.infers}
    rows = [
        [name.replace("_", " "), ("no", "yes")[value] if isinstance(value, bool) else str(value)]
        for name, value in told.items()
        if value is not None and not unused.get(name)
    ]
    return f"<h2>Settings</h2>{html.text_table(['setting', 'value'], rows)}"
