"""card.html: a fitted model on one page: the answer, then evidence, then costs and certificate."""

import math
from dataclasses import asdict

from fedlasso import html
from fedlasso.html import escape
from fedlasso.models.about import About, date_of_today, versions
from fedlasso.models.card_effects import draw_effects
from fedlasso.models.card_evidence import draw_evidence
from fedlasso.models.card_participants import draw_participants
from fedlasso.models.card_performance import draw_performance, headline
from fedlasso.models.card_tripod import draw_checklist
from fedlasso.models.document import SENT, ModelDocument
from fedlasso.models.inference_document import is_refitted
from fedlasso.models.numbers import bytes_of, capital, counted, number, ratio_of
from fedlasso.models.svg import NO_CHARTS, can_draw

_KINDS = {
    "scaling": "means and scales",
    "moments": "second moments",
    "training": "gradients or models",
}
# Columns that the first lines name.
STRONGEST = 3


def draw_card(document: ModelDocument, about: About | None = None) -> str:
    """Return the card as HTML, with a title, an author and hashes of the data if given."""
    about = about or About()
    title = about.title or document.title
    parts = [
        f"<h1>{escape(title)}</h1>",
        _byline(about),
        _lead(document),
        draw_effects(document),
        draw_performance(document),
        draw_participants(document),
        draw_evidence(document),
        _sent(document),
        _certificate(document),
        _settings(document),
        _origin(about),
        draw_checklist(document, about),
    ]
    return html.page(title, "card", "".join(parts))


def _byline(about: About) -> str:
    author = f"{escape(about.author)} · " if about.author else ""
    return f'<p class="soft">{author}{date_of_today()} · fedlasso {versions()["fedlasso"]}</p>'


def _lead(document: ModelDocument) -> str:
    name = document.name
    article = "An" if name[0] in "aeiou" else "A"
    count = len(document.coefficients)
    what = document.title.removeprefix("Model of ")
    if document.positive is not None:
        what += f" = {document.positive}"
    rows = counted(document.rows.training, "row")
    if (table := document.table_one) is not None and table.events is not None:
        rows += f" with {counted(sum(table.events), 'event')}"
    words = (
        f"{article} {name} with {count} of {counted(document.columns, 'column')} for {what}, "
        f"fitted to {rows} across {counted(len(document.sites), 'site')}."
    )
    if document.revealed:
        words += " The sites sent no records; what they sent is listed below."
    facts = headline(document)
    if error := document.error:
        family = document.settings.response_family
        facts[capital(family.error_name)] = document.error_text()
        explained = capital(_explained(document))
        if error.r2 is not None and explained not in facts:
            facts[explained] = f"{error.r2:.3f}"
    facts["Columns used"] = f"{count} of {document.columns:,}"
    facts["Training rows"] = f"{document.rows.training:,}"
    warnings = html.bullets(document.warnings or ())
    first = f'<div class="warn"><b>Read this first</b>{warnings}</div>' if document.warnings else ""
    charts = "" if can_draw() else f'<p class="soft">{escape(NO_CHARTS)}</p>'
    return (
        f'<p class="lead">{escape(words)} {escape(_strongest(document))}</p>'
        f"{first}{html.facts(facts.items())}{charts}"
    )


def _strongest(document: ModelDocument) -> str:
    """Return the largest coefficients in a sentence, as ratios if there are any."""
    rows = document.coefficients[:STRONGEST]
    if not rows:
        return ""
    unit = document.scales[0]
    texts = []
    for row in rows:
        ratio = row.ratios[unit == "per SD"]
        per = row.per(unit)
        size = "+" * (per > 0) + number(per, 3) if document.ratio is None else ratio_of(ratio, 3)
        texts.append(f"{row.name} ({size})")
    kind = document.ratio_name or "coefficient"
    if document.ratio is not None and document.penalty > 0 and not is_refitted(document.trust):
        # A penalised ratio is nearer to one than an estimate with an interval.
        kind = f"penalised {kind}"
    return f"Largest effects, by {kind} {unit}: {', '.join(texts)}."


def _explained(document: ModelDocument) -> str:
    return document.settings.response_family.explained_name.replace("^2", "²")


def _certificate(document: ModelDocument) -> str:
    certificate = document.certificate
    bound = (
        f"The objective is that of the {escape(document.name)} at λ = {document.penalty:.4g}, "
        f"{escape(document.penalty_text)}. The bound is a duality gap, computed from sums over the "
        "sites."
    )
    # That uploads ended too early is among the warnings.
    known = math.isfinite(certificate.relative_gap)
    ended = known or certificate.stationary is not None
    status = document.status_text if ended and document.status not in ("CHOSEN", "CUT") else ""
    reasons = [f"{capital(document.why)}."]
    if document.plan:
        reasons.append(f"Plan: {document.plan}.")
    reasons.append(f"Penalty λ = {document.penalty:.4g}, {document.penalty_text}.")
    if error := document.error:
        reasons.append(f"The error and {_explained(document)} were measured on {error.rows}.")
    return (
        "<h2>Certificate: distance from the pooled optimum</h2>"
        f'<p class="lead">This model is <b>{certificate}</b>.</p>'
        f'<p class="soft">{bound if known else ""} {escape(status)}</p>'
        + "".join(f"<p>{escape(reason)}</p>" for reason in reasons)
    )


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
    costs = [f"{capital(what)}: {text}." for what, text in document.cost_texts.items()]
    note = (
        "Counted from the messages, at eight bytes per number. Entries are the rows times the "
        f"columns of all sites. {' '.join(costs)}"
    )
    return html.section("What each site sent", note, "".join(parts))


def _settings(document: ModelDocument) -> str:
    settings = document.settings
    values = asdict(settings) | {"procedure": document.procedure}
    for name in ("keep", "penalty_factors", "intervals", "bounds"):
        values[name] = ", ".join(values[name]) or None
    values["groups"] = ", ".join(map("+".join, settings.groups)) or None
    values |= {"missing values": document.missing}
    unused = {**settings.without_effect, "validation": settings.cv}
    rows = [
        [name.replace("_", " "), ("no", "yes")[value] if isinstance(value, bool) else str(value)]
        for name, value in values.items()
        if value is not None and not unused.get(name)
    ]
    return f"<h2>Settings</h2>{html.text_table(['setting', 'value'], rows)}"


def _origin(about: About) -> str:
    """Return versions, and the hash of each file with data."""
    rows = [[name, version] for name, version in versions().items()]
    rows += [[f"SHA-256 of {name}", digest] for name, digest in about.data.items()]
    return f"<h2>Versions and data</h2>{html.text_table(['', ''], rows, kind='hashes')}"
