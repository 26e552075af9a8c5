"""card.html: a model told on one page, from its document alone."""

from __future__ import annotations

from dataclasses import asdict
from html import escape

from fedlasso.models.charts import Line, bar_chart, line_chart, number
from fedlasso.models.document import ModelDocument
from fedlasso.models.page import bytes_of, facts, page, table, warnings

_SHOWN = 30
_KINDS = {"scaling": "means and scales", "training": "gradients or models"}


def draw_card(document: ModelDocument) -> str:
    """Return the card as HTML."""
    target = document.schema.target
    count = len(document.coefficients)
    chosen = document.status == "CHOSEN"
    body = [
        f"<h1>Model of {escape(target)}</h1>",
        _lead(document, chosen),
        warnings(document.warnings or ()),
        facts(
            [
                ("Training rows", f"{document.rows.training:,}"),
                ("Columns used", f"{count} of {document.columns:,}"),
                ("Penalty, on the path" if chosen else "Penalty", number(document.penalty)),
                ("Most sent by a site", bytes_of(document.most_sent)),
            ]
        ),
        _certificate(document),
        f"<p>{escape(document.why)}.</p>",
        _coefficients(document),
        _curve(document),
        _path(document),
        _comparison(document),
        _stability(document),
        _sent(document),
        _settings(document),
    ]
    return page(f"Model of {target}", "".join(body))


def _lead(document: ModelDocument, chosen: bool) -> str:
    """What the model is; of what left the sites it says no more than the questions do."""
    family = document.procedure if chosen else "Lasso"
    article = "An" if family[0] in "aeiou" else "A"
    sites = len(document.sites)
    stayed = " The sites sent no records; what they sent is listed below."
    return (
        f'<p class="lead">{article} {escape(family)} with {len(document.coefficients)} of '
        f"{document.columns} columns, fitted across {sites} site{'s' * (sites > 1)}."
        f"{stayed if document.revealed else ''}</p>"
    )


def _certificate(document: ModelDocument) -> str:
    return (
        "<h2>How far from the pooled answer</h2>"
        f'<p class="lead">This model is <b>{escape(document.certificate.words)}</b>.</p>'
        '<p class="soft">The bound is a duality gap computed from sums over the sites; it holds '
        "whatever the records are, for the penalties and the columns of the chosen model. "
        f"{escape(document.status_text) if document.status != 'CHOSEN' else ''}</p>"
    )


def _coefficients(document: ModelDocument) -> str:
    rows = document.coefficients
    if not rows:
        return (
            "<h2>Coefficients</h2><p>No column is used: the model predicts the mean, "
            f"{document.intercept:.6g}.</p>"
        )
    shown = rows[:_SHOWN]
    chart = bar_chart(
        [row.name for row in shown],
        [row.standardised for row in shown],
        [f"{row.value:.4g}" for row in shown],
    )
    more = (
        f" The {len(rows) - _SHOWN} smaller ones are in coefficients.csv."
        if len(rows) > _SHOWN
        else ""
    )
    return (
        f'<h2>Coefficients</h2><p class="soft">Bars: change of {escape(document.schema.target)} '
        "for one standard deviation of the column. Numbers: for one unit of it. Intercept "
        f"{document.intercept:.6g}.{more}</p>{chart}"
    )


def _curve(document: ModelDocument) -> str:
    curve = document.curve
    if not curve:
        return ""
    line = Line(curve.penalties, curve.mse, "held-out error", 0, curve.se, dots=True)
    titles = ("penalty (smaller to the right)", "mean squared error")
    chart = line_chart([line], *titles, reverse=True, mark=document.penalty)
    return (
        "<h2>Held-out error</h2><p class='soft'>Pooled over the sites' held-out rows, which stayed "
        "where they are. The dashed line is the penalty chosen on this path, with "
        f"{curve.active[curve.chosen]:.3g} columns.</p>{chart}"
    )


def _path(document: ModelDocument) -> str:
    path = document.path
    if not path or not path.names:
        return ""
    lines = [
        Line(path.penalties, values, name if i < 12 else "", i)
        for i, (name, values) in enumerate(zip(path.names, path.coefficients, strict=True))
    ]
    mark = document.penalty if document.curve else None
    titles = ("penalty (smaller to the right)", "standardised coefficient")
    chart = line_chart(lines, *titles, reverse=True, mark=mark, legend=True)
    return (
        f'<h2>Path</h2><p class="soft">Coefficients as the penalty falls; the largest '
        f"{len(lines)}.</p>{chart}"
    )


def _comparison(document: ModelDocument) -> str:
    rows = document.comparison
    if not rows:
        why = document.not_compared
        title = "<h2>Compared with averaging and with each site alone</h2>"
        return f"{title}<p class='soft'>Left out: {escape(why)}.</p>" if why else ""
    cells = [
        [
            row.name,
            "–" if row.mse is None else f"{number(row.mse, 4)} ± {number(row.se or 0.0, 2)}",
            str(row.active),
            "–" if row.above is None else f"{100 * row.above:.3g}%",
            bytes_of(row.sent) if row.sent else "nothing",
        ]
        for row in rows
    ]
    head = ["", "held-out error", "columns", "objective above the pooled Lasso's", "sent by a site"]
    return (
        "<h2>Compared with averaging and with each site alone</h2><p class='soft'>All trained on "
        "the same rows and judged on the same held-out rows of all sites (± one standard error). "
        "Each site alone chose its own penalty where it could. The objective is the pooled Lasso's "
        "at the penalty of the path; an adaptive or refitted model is not its minimum. What this "
        "model sent includes standardising and tuning.</p>" + table(head, cells, own=0)
    )


def _stability(document: ModelDocument) -> str:
    rows = document.stability
    if not rows:
        return ""
    chart = bar_chart(
        [row.name + ("" if row.selected else " (not used)") for row in rows[:_SHOWN]],
        [row.share for row in rows[:_SHOWN]],
        [f"{row.share:.0%}" for row in rows[:_SHOWN]],
    )
    return (
        "<h2>Would other rows select the same columns?</h2><p class='soft'>Share of random halves "
        f"of the rows, at the same penalty, that select each column.</p>{chart}"
    )


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
    return (
        "<h2>What each site sent</h2><p class='soft'>Counted from the messages, eight bytes per "
        f"number; what was asked for this card is counted apart.</p>{table(head, cells)}"
        f"{_revealed(document)}"
    )


def _revealed(document: ModelDocument) -> str:
    """What the questions that were really asked say that they reveal."""
    if document.revealed is None:
        return ""
    card = [text for text in document.revealed.card if text not in document.revealed.fit]
    parts = []
    for title, texts in (("for the fit", document.revealed.fit), ("for this card as well", card)):
        if texts:
            items = "".join(f"<li>{escape(text)}</li>" for text in texts)
            parts.append(f"<p>What a site's answers reveal, {title}:</p><ul>{items}</ul>")
    return "".join(parts)


def _settings(document: ModelDocument) -> str:
    settings = asdict(document.settings) | {"procedure": document.procedure}
    if document.settings.cv is not None:
        settings["validation"] = None
    settings |= {"missing values": document.missing, "fedlasso": document.fedlasso}
    rows = [[name, str(value)] for name, value in settings.items() if value is not None]
    return f"<h2>Settings</h2>{table(['setting', 'value'], rows)}"
