"""card.html: a model told on one page, from its document alone."""

from __future__ import annotations

import math
from dataclasses import asdict
from html import escape

from fedlasso.models import page
from fedlasso.models.card_assessment import draw_assessment
from fedlasso.models.card_trust import draw_trust
from fedlasso.models.charts import QUIET, Line, bar_chart, line_chart
from fedlasso.models.document import (
    NESTED,
    OWN_COLUMNS,
    THIS_MODEL,
    ComparedModel,
    ExpectedError,
    ModelDocument,
    SiteError,
    pool_error,
)

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
    return page.whole(f"Model of {target}", f"<h1>Model of {escape(target)}</h1>{''.join(parts)}")


def _lead(document: ModelDocument) -> str:
    """What the model is; of what left the sites it says no more than the questions do."""
    name = document.name
    article = "An" if name[0] in "aeiou" else "A"
    own = document.family == document.settings.model_name
    count = len(document.coefficients)
    sites = len(document.sites)
    stayed = " The sites sent no records; what they sent is listed below."
    warnings = page.bullets(document.warnings or ())
    facts = {
        "Training rows": f"{document.rows.training:,}",
        "Columns used": f"{count} of {document.columns:,}",
        **_error_facts(document),
        "Penalty" if own else "Penalty, on the path": f"{document.penalty:.4g}",
        "Most sent by a site": page.bytes_of(document.most_sent),
    }
    cells = "".join(f"<div>{name}<b>{value}</b></div>" for name, value in facts.items())
    return (
        f'<p class="lead">{article} {escape(name)} with {count} of {document.columns} columns, '
        f"fitted across {sites} site{'s' * (sites > 1)}.{stayed if document.revealed else ''}</p>"
        + (f'<div class="warn"><b>Read this first</b>{warnings}</div>' if document.warnings else "")
        + f'<div class="facts">{cells}</div>'
    )


def _reasons(document: ModelDocument) -> str:
    """Why this model, how uploads were planned, and where the error comes from."""
    reasons = [f"{document.why[:1].upper()}{document.why[1:]}."]
    if document.plan:
        reasons.append(f"The plan was {document.plan}.")
    reasons.append(f"The penalty is {document.penalty:.4g}, {document.penalty_words}.")
    if document.error is not None:
        reasons.append(
            f"The error, and with it {_explained(document)}, is on {document.error.rows}."
        )
    return "".join(f"<p>{escape(reason)}</p>" for reason in reasons)


def _error_facts(document: ModelDocument) -> dict[str, str]:
    """The error to expect, as facts of the model."""
    error = document.error
    if error is None:
        return {}
    facts = {document.error_name.capitalize(): _spread(error)}
    if error.r2 is not None:
        name = _explained(document)
        facts[f"{name[:1].upper()}{name[1:]}"] = f"{error.r2:.3f}"
    return facts


def _explained(document: ModelDocument) -> str:
    """What the share of the error that is explained is called on a page."""
    return document.explained_name.replace("^2", "²")


def _spread(error: ExpectedError | ComparedModel) -> str:
    """An error and its standard error."""
    if error.mse is None:
        return "–"
    spread = "" if error.se is None else f" ± {page.number(error.se, 2)}"
    return f"{page.number(error.mse, 4)}{spread}"


def _certificate(document: ModelDocument) -> str:
    certificate = document.certificate
    bound = (
        f"The objective is that of the {escape(document.name)}, with the penalties and the columns "
        "that were chosen for it. The bound is a duality gap, computed from sums over the sites; "
        "it holds whatever the records are."
    )
    # How a fit ended is part of the warnings where uploads ended too early.
    known = math.isfinite(certificate.relative_gap)
    how = document.status_text if known and document.status not in ("CHOSEN", "CUT") else ""
    return (
        "<h2>Certificate: how far from the pooled answer</h2>"
        f'<p class="lead">This model is <b>{document.certificate_words}</b>.</p>'
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
    scaled = document.settings.standardise
    heads, lines = document.coefficient_table(_SHOWN)
    head = ["", heads[0], *heads]
    shares = {row.name: f"{row.share:.0%}" for row in document.stability or ()}
    if shares:
        head.append("halves that select it")
        lines = [[*texts, shares[row.name]] for row, texts in zip(rows, lines, strict=False)]
    bars: list[tuple[str, float, *tuple[str, ...]]] = [
        (row.name, row.standardised if scaled else row.value, *texts)
        for row, texts in zip(rows, lines, strict=False)
    ]
    chart = bar_chart(bars, head)
    if len(rows) > _SHOWN:
        note += f" The {len(rows) - _SHOWN} smaller ones are in coefficients.csv."
    return page.section("Coefficients", note, chart)


def _coefficient_note(document: ModelDocument) -> str:
    """What the coefficients are of, and what belongs to none of them."""
    target = escape(document.schema.target)
    settings = document.settings
    what = {
        "linear": f"How much {target} changes with a column.",
        "binomial": f"How much the log-odds of {target} change with a column.",
        "poisson": f"How much the logarithm of the rate of {target} changes with a column.",
        "cox": "How much the logarithm of the hazard changes with a column.",
    }
    note = what[settings.family]
    if settings.family != "cox":
        note += f" Intercept {document.intercept:.6g}"
        note += ", the mean of the sites' own." if settings.site_effects else "."
    if settings.keep:
        note += f" Never penalised: {escape(', '.join(settings.keep))}."
    if settings.bounds:
        words = document.bounds_words
        note += f" {escape(words[:1].upper() + words[1:])}."
    if settings.standardise:
        note += " Bars, and their order, are per standard deviation (SD) of the column."
    return note


def _curve(document: ModelDocument) -> str:
    curve = document.curve
    if not curve:
        return ""
    line = Line(curve.penalties, curve.mse, "held-out error", 0, curve.se, dots=True)
    mark = document.penalty
    chart = line_chart([line], _X_TITLE, document.error_name, reverse=True, mark=mark)
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
    return page.section("Held-out error", note, chart)


def _path(document: ModelDocument) -> str:
    path = document.path
    if not path or not path.names:
        return ""
    lines = [
        Line(path.penalties, values, name, i, quiet=i >= QUIET)
        for i, (name, values) in enumerate(zip(path.names, path.coefficients, strict=True))
    ]
    mark = document.penalty if document.curve else None
    title = "standardised coefficient" if document.settings.standardise else "coefficient"
    chart = line_chart(lines, _X_TITLE, title, reverse=True, mark=mark, legend=True)
    if not chart:
        return ""
    few = len(lines) <= QUIET
    note = (
        f"Coefficients of the Lasso as the penalty falls; the largest {len(lines)}"
        f"{'' if few else ', of which the smaller ones are grey'}. Names are in the order of the "
        "right ends, from top to bottom."
    )
    return page.section("Path", note, chart)


def _site_errors(document: ModelDocument) -> str:
    title = "Error per site"
    errors = document.site_errors
    if not errors:
        why = document.no_site_errors
        return page.section(title, f"Left out: {escape(why)}.", "") if why else ""
    pooled = pool_error(errors)
    everywhere = SiteError("all sites", sum(error.rows for error in errors), pooled)
    rooted = document.ratio is None
    cells = [
        [
            error.name,
            f"{error.rows:,}",
            page.number(error.mse, 4),
            *([page.number(math.sqrt(error.mse), 4)] if rooted else []),
            f"{error.mse / pooled:.2f}" if pooled > 0 else "–",
        ]
        for error in (*errors, everywhere)
    ]
    root = ["its root"] if rooted else []
    head = ["site", "rows", document.error_name, *root, "times that of all sites"]
    note = (
        "On the rows that the model was fitted to, so on new rows expect more. It shows where the "
        "common model fits badly."
    )
    return page.section(title, note, page.table(head, cells, own=len(errors)))


def _comparison(document: ModelDocument) -> str:
    title = "Compared with averaging and with each site alone"
    if not document.comparison:
        why = document.not_compared
        return page.section(title, f"Left out: {escape(why)}.", "") if why else ""
    cells = [
        [
            row.name,
            _spread(row),
            str(row.active),
            "–" if row.above is None else page.percent(row.above),
            page.bytes_of(row.sent) if row.sent else "nothing",
        ]
        for row in document.comparison
    ]
    head = ["", "held-out error", "columns", "objective above the pooled Lasso's", "sent by a site"]
    note = f"{_what_is_compared(document)} {escape(_own_error(document))}"
    return page.section(title, note, page.table(head, cells, own=0))


def _what_is_compared(document: ModelDocument) -> str:
    """Which rows the compared models have seen, and which not."""
    words = (
        "All were trained on the same rows and are judged on the same held-out rows of all sites "
        "(± one standard error), which none of them was fitted to. Each site alone chose its own "
        "penalty on other held-out rows, where it could. The objective is that of the Lasso on the "
        "training rows; its column tells the distance itself, where a certificate tells a bound. "
    )
    if document.comparison and document.comparison[0].name == THIS_MODEL:
        return words + (
            "This model was fitted to the training rows only, and rows that judge here may have "
            "chosen it. What it sent includes standardising and tuning."
        )
    words += "This model was fitted to all rows, so no row can judge it here: "
    if document.comparison and document.comparison[0].name == OWN_COLUMNS:
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


def _own_error(document: ModelDocument) -> str:
    """The error to expect of the model itself, to be read beside the comparison."""
    error = document.error
    if error is None:
        return ""
    return f"The error to expect of this model itself is {_spread(error)}, on {error.rows}."


def _stability(document: ModelDocument) -> str:
    if not document.stability:
        return ""
    bars = [
        (row.name + ("" if row.selected else " (not used)"), row.share, f"{row.share:.0%}")
        for row in document.stability[:_SHOWN]
    ]
    note = "Share of random halves of the rows, at the same penalty, that select each column."
    title = "Would other rows select the same columns?"
    return page.section(title, note, bar_chart(bars, top=1.0))


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
    if document.settings.procedure is None:
        settings["epochs"] = None
    if document.settings.family != "cox":
        settings["ties"] = None
    settings["keep"] = ", ".join(document.settings.keep) or None
    settings["intervals"] = ", ".join(document.settings.intervals) or None
    settings["bounds"] = ", ".join(document.settings.bounds) or None
    if document.settings.goal != "discoveries":
        settings["fdr"] = None
    if not document.settings.infers:
        settings["level"] = None
    settings |= {"missing values": document.missing, "fedlasso": document.fedlasso}
    rows = [
        [name.replace("_", " "), _setting(value)]
        for name, value in settings.items()
        if value is not None
    ]
    return f"<h2>Settings</h2>{page.table(['setting', 'value'], rows)}"


def _setting(value: object) -> str:
    """A setting for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
