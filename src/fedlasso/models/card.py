"""card.html: a model told on one page, from its document alone."""

from __future__ import annotations

from dataclasses import asdict
from html import escape

from fedlasso.models import page
from fedlasso.models.document import ModelDocument

_SHOWN = 30
_X_TITLE = "penalty (smaller to the right)"
_KINDS = {"scaling": "means and scales", "training": "gradients or models"}


def draw_card(document: ModelDocument) -> str:
    """Return the card as HTML."""
    target = document.schema.target
    parts = [
        _lead(document),
        _certificate(document),
        _reasons(document),
        _coefficients(document),
        _curve(document),
        _path(document),
        _comparison(document),
        _stability(document),
        _sent(document),
        _settings(document),
    ]
    return page.whole(f"Model of {target}", f"<h1>Model of {escape(target)}</h1>{''.join(parts)}")


def _lead(document: ModelDocument) -> str:
    """What the model is; of what left the sites it says no more than the questions do."""
    chosen = document.status in ("CHOSEN", "CUT")
    family = document.procedure if chosen else "Lasso"
    article = "An" if family[0] in "aeiou" else "A"
    count = len(document.coefficients)
    sites = len(document.sites)
    stayed = " The sites sent no records; what they sent is listed below."
    warnings = page.bullets(document.warnings or ())
    facts = {
        "Training rows": f"{document.rows.training:,}",
        "Columns used": f"{count} of {document.columns:,}",
        **_error_facts(document),
        "Penalty, on the path" if chosen else "Penalty": page.number(document.penalty),
        "Most sent by a site": page.bytes_of(document.most_sent),
    }
    cells = "".join(f"<div>{name}<b>{value}</b></div>" for name, value in facts.items())
    return (
        f'<p class="lead">{article} {escape(family)} with {count} of {document.columns} columns, '
        f"fitted across {sites} site{'s' * (sites > 1)}.{stayed if document.revealed else ''}</p>"
        + (f'<div class="warn"><b>Read this first</b>{warnings}</div>' if document.warnings else "")
        + f'<div class="facts">{cells}</div>'
    )


def _reasons(document: ModelDocument) -> str:
    """Why this model, how uploads were planned, and where the error comes from."""
    reasons = [f"{document.why}."]
    if document.plan:
        reasons.append(f"The plan was {document.plan}.")
    if document.error is not None:
        reasons.append(f"The error is on {document.error.rows}.")
    return "".join(f"<p>{escape(reason)}</p>" for reason in reasons)


def _error_facts(document: ModelDocument) -> dict[str, str]:
    """The error to expect, as facts of the model."""
    error = document.error
    if error is None:
        return {}
    spread = "" if error.se is None else f" ± {page.number(error.se, 2)}"
    facts = {"Mean squared error": f"{page.number(error.mse, 4)}{spread}"}
    if error.r2 is not None:
        facts["R²"] = f"{error.r2:.2f}"
    return facts


def _certificate(document: ModelDocument) -> str:
    return (
        "<h2>How far from the pooled answer</h2>"
        f'<p class="lead">This model is <b>{document.certificate}</b>.</p>'
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
    bars = [(row.name, row.standardised, f"{row.value:.4g}") for row in rows[:_SHOWN]]
    note = (
        f"Bars: change of {escape(document.schema.target)} for one standard deviation of the "
        f"column. Numbers: for one unit of it. Intercept {document.intercept:.6g}."
    )
    if len(rows) > _SHOWN:
        note += f" The {len(rows) - _SHOWN} smaller ones are in coefficients.csv."
    return page.section("Coefficients", note, page.bar_chart(bars))


def _curve(document: ModelDocument) -> str:
    curve = document.curve
    if not curve:
        return ""
    line = page.Line(curve.penalties, curve.mse, "held-out error", 0, curve.se, dots=True)
    mark = document.penalty
    chart = page.line_chart([line], _X_TITLE, "mean squared error", reverse=True, mark=mark)
    note = (
        "Pooled over the sites' held-out rows, which stayed where they are. The dashed line is the "
        f"penalty chosen on this path, with {curve.active[curve.chosen]:.3g} columns."
    )
    return page.section("Held-out error", note, chart)


def _path(document: ModelDocument) -> str:
    path = document.path
    if not path or not path.names:
        return ""
    lines = [
        page.Line(path.penalties, values, name if i < 12 else "", i)
        for i, (name, values) in enumerate(zip(path.names, path.coefficients, strict=True))
    ]
    mark = document.penalty if document.curve else None
    title = "standardised coefficient"
    chart = page.line_chart(lines, _X_TITLE, title, reverse=True, mark=mark, legend=True)
    note = f"Coefficients as the penalty falls; the largest {len(lines)}."
    return page.section("Path", note, chart)


def _comparison(document: ModelDocument) -> str:
    title = "Compared with averaging and with each site alone"
    if not document.comparison:
        why = document.not_compared
        return page.section(title, f"Left out: {escape(why)}.", "") if why else ""
    cells = [
        [
            row.name,
            "–"
            if row.mse is None
            else f"{page.number(row.mse, 4)} ± {page.number(row.se or 0.0, 2)}",
            str(row.active),
            "–" if row.above is None else f"{100 * row.above:.3g}%",
            page.bytes_of(row.sent) if row.sent else "nothing",
        ]
        for row in document.comparison
    ]
    head = ["", "held-out error", "columns", "objective above the pooled Lasso's", "sent by a site"]
    note = (
        "All trained on the same rows and judged on the same held-out rows of all sites (± one "
        "standard error). Each site alone chose its own penalty where it could. The objective is "
        "the pooled Lasso's at the penalty of the path; an adaptive or refitted model is not its "
        "minimum. What this model sent includes standardising and tuning."
    )
    return page.section(title, note, page.table(head, cells, own=0))


def _stability(document: ModelDocument) -> str:
    if not document.stability:
        return ""
    bars = [
        (row.name + ("" if row.selected else " (not used)"), row.share, f"{row.share:.0%}")
        for row in document.stability[:_SHOWN]
    ]
    note = "Share of random halves of the rows, at the same penalty, that select each column."
    title = "Would other rows select the same columns?"
    return page.section(title, note, page.bar_chart(bars))


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
        cells.append([site.name, f"{site.rows:,}", *map(page.bytes_of, counts)])
    parts = [page.table(head, cells)]
    if document.revealed is not None:
        # What the questions that were really asked say that they reveal.
        fit = document.revealed.fit
        card = [text for text in document.revealed.card if text not in fit]
        for title, texts in (("for the fit", fit), ("for this card as well", card)):
            if texts:
                parts.append(f"<p>What a site's answers reveal, {title}:</p>{page.bullets(texts)}")
    note = (
        "Counted from the messages, eight bytes per number; what was asked for this card is "
        "counted apart."
    )
    return page.section("What each site sent", note, "".join(parts))


def _settings(document: ModelDocument) -> str:
    settings = asdict(document.settings) | {"procedure": document.procedure}
    if document.settings.cv is not None:
        settings["validation"] = None
    settings |= {"missing values": document.missing, "fedlasso": document.fedlasso}
    rows = [[name, str(value)] for name, value in settings.items() if value is not None]
    return f"<h2>Settings</h2>{page.table(['setting', 'value'], rows)}"
