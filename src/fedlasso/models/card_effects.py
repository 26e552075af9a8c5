"""Sections of the card on effects: one table of coefficients and estimates, and a forest plot."""

from fedlasso import html
from fedlasso.html import escape
from fedlasso.models.document import ModelDocument
from fedlasso.models.effects import Effect, effects_of, exponentiate
from fedlasso.models.inference_document import TrustDocument
from fedlasso.models.numbers import (
    NO_BREAK,
    capital,
    number,
    p_value,
    percent_of,
    ratio_of,
    some_of,
)
from fedlasso.models.plots import SITES_DRAWN, plot_forest
from fedlasso.models.svg import WIDE, draw_svg

# Rows of a table on the card, and of a forest plot.
ROWS_SHOWN = 40
# Names of a group's columns that are shown.
GROUP_SHOWN = 30
RATE_NOTE = (
    "This is a Bayesian false discovery rate, calibrated by simulation: an average over many "
    "studies like this one, not a bound for each list."
)
MISSED_NOTE = (
    "Very small effects are usually missed, and of highly correlated columns possibly all."
)
GROUPS_NOTE = (
    "The rows show that one or more columns of each group have an effect, but not which: all pairs "
    "of columns of a group are correlated by at least 0.9. A group counts as one discovery, which "
    "is false if none of its columns has an effect. Its most probable column represents it in the "
    "model, and other columns of the group would do about as well."
)
POSTERIOR_NOTE = (
    "P(effect) is the posterior probability of an effect; the prior favours few effects, each "
    "clearly different from zero. An estimate is the expected effect if there is one, with all "
    "other columns held fixed and without the Lasso's shrinkage, so it differs from the model's "
    "coefficient; an interval that includes zero (a ratio of one) means that there may be none, "
    "and one of zero alone that there most probably is none. "
    "Selection by the same rows is accounted for."
)
DEBIASED_NOTE = (
    "Estimates with a p-value are debiased: with all other columns held fixed and without the "
    "Lasso's shrinkage, so they differ from the model's coefficients. p-values are adjusted for "
    "the columns with an interval by Holm's method."
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


def draw_effects(document: ModelDocument) -> str:
    """Return the table of all effects with its forest plot, and what the numbers assume."""
    trust = document.trust
    effects = effects_of(document)
    parts = []
    if trust is not None and trust.summary:
        about = MISSED_NOTE if trust.marks else f"{RATE_NOTE} {MISSED_NOTE}"
        tested = f"<b>{escape(trust.summary)}</b> {trust.tests} columns were tested. {about}"
        parts.append(f"<p>{tested}</p>")
    if trust is not None and trust.marks:
        parts.append(html.bullets(trust.marks))
    if effects:
        parts += [
            table_of_effects(document, effects[:ROWS_SHOWN]),
            _forest(document, effects[:ROWS_SHOWN]),
        ]
    if len(effects) > ROWS_SHOWN:
        more = len(effects) - ROWS_SHOWN
        parts.append(f'<p class="soft">{more} more are in coefficients.csv.</p>')
    if unused := [row for row in document.stability or () if not row.selected]:
        names = some_of([f"{row.name} ({row.share:.0%})" for row in unused])
        parts.append(f"<p>Selected by most random halves, but not used: {escape(names)}.</p>")
    parts.append(f'<p class="soft">{_explain(document, effects)}</p>')
    drawn = html.section("Coefficients", _note(document), "".join(parts))
    return drawn if trust is None else drawn + _draw_trust(document, trust)


def _note(document: ModelDocument) -> str:
    settings = document.settings
    family = settings.response_family
    if not document.coefficients:
        what = "the mean" if document.ratio is None else "the same for all"
        note = f"No column is used: the model predicts {what}, {document.intercept:.6g}."
    else:
        note = family.effect.format(target=escape(document.schema.target))
        if document.ratio is not None:
            note += f" Ratios are of {escape(document.ratio_subject)}."
        if family.intercept:
            note += f" Intercept {document.intercept:.6g}"
            note += ", the mean over the sites." if document.site_effects else "."
    if settings.keep:
        note += f" Never penalised: {escape(', '.join(settings.keep))}."
    if settings.groups:
        note += f" Selected together: {escape(document.groups_text)}."
    if settings.bounds:
        note += f" {escape(capital(document.bounds_text))}."
    return note


def _explain(document: ModelDocument, effects: list[Effect]) -> str:
    """Return how the estimates and frequencies of the table were computed."""
    estimates = [effect.estimate for effect in effects if effect.estimate is not None]
    notes = []
    if any(row.probability is not None for row in estimates):
        notes.append(POSTERIOR_NOTE)
    if any(row.probability is None for row in estimates):
        notes.append(DEBIASED_NOTE)
    if document.stability:
        notes.append("Selection frequency: fraction of random halves of the rows that select it.")
    return " ".join(notes)


def table_of_effects(document: ModelDocument, effects: list[Effect]) -> str:
    """Return the effects as a table, in the order of the forest plot."""
    estimated = any(effect.estimate is not None for effect in effects)
    scales = document.scales
    head = [f"coefficient {unit}" if estimated else unit for unit in scales]
    ratio = document.ratio_name
    if estimated:
        assert document.trust is not None
        level = f"{document.trust.level:.0%} interval"
        head += [f"{ratio or 'estimate'} {unit} ({level})" for unit in scales]
        kinds = {effect.estimate.evidence_name for effect in effects if effect.estimate is not None}
        head.append(" or ".join(sorted(kinds, reverse=True)))
    elif ratio is not None:
        head += [f"{ratio} {unit}" for unit in scales]
    frequencies = any(effect.frequency is not None for effect in effects)
    by_site = any(effect.estimate is not None and effect.estimate.sites for effect in effects)
    head += ["selection frequency"] * frequencies + ["I² (p of Q)"] * by_site
    rows = []
    for effect in effects:
        row = effect.coefficient
        values = [0.0] * len(scales) if row is None else [row.per(unit) for unit in scales]
        cells = ["0" if row is None else number(value, 4) for value in values]
        if estimated:
            cells += [_interval(effect, unit, ratio) for unit in scales]
            cells.append("–" if (own := effect.estimate) is None else own.short_evidence)
        elif ratio is not None:
            cells += [ratio_of(value) for value in exponentiate(*values)]
        if frequencies:
            cells.append(percent_of(effect.frequency))
        if by_site:
            cells.append(_heterogeneity(effect))
        rows.append([effect.name, *cells])
    return html.text_table(["", *head], rows, kind="effects")


def _interval(effect: Effect, unit: str, ratio: str | None) -> str:
    if (found := effect.interval(unit == "per SD")) is None:
        return "–"
    if effect.estimate is not None and effect.estimate.zero_alone:
        return "1 alone" if ratio else "0 alone"
    shown = [ratio_of(v, 3) for v in exponentiate(*found)] if ratio else [number(v) for v in found]
    return f"{shown[0]} ({NO_BREAK.join([shown[1], 'to', shown[2]])})"


def _heterogeneity(effect: Effect) -> str:
    own = effect.estimate
    if own is None or own.heterogeneity is None or own.i_squared is None:
        return "–"
    return f"{own.i_squared:.0%}{NO_BREAK}({p_value(own.heterogeneity)})"


def _forest(document: ModelDocument, effects: list[Effect]) -> str:
    per_sd = "per SD" in document.scales
    estimates = [effect.estimate for effect in effects if effect.estimate is not None]
    sites = [site.site for row in estimates for site in row.sites[:SITES_DRAWN]]
    height = 0.9 + 0.27 * len(effects) + 0.09 * len(sites)
    what = f"Forest plot of {document.ratio_name or 'effects'}"
    chart = draw_svg(
        lambda ax: plot_forest(effects, document.ratio_name, per_sd, ax), what, (WIDE[0], height)
    )
    if not chart:
        return ""
    note = "Squares: estimates with their intervals. " * bool(estimates)
    if not estimates:
        none = "Penalised coefficients have no intervals"
        if document.penalty == 0:
            none = "No intervals were requested"
        note = f"{none}; fit with --interval to estimate some. "
    elif len(estimates) < len(effects):
        note += "Hollow: penalised coefficients, which have no interval. "
    if sites:
        names = ", ".join(dict.fromkeys(sites))
        note += f"Grey: estimates of each site alone, from top to bottom {names}."
    return f"<p><b>Forest plot</b>. {escape(note)}</p>{chart}"


def _draw_trust(document: ModelDocument, trust: TrustDocument) -> str:
    """Return discovered groups, columns without an interval, weights and assumptions."""
    parts = []
    if trust.groups:
        rows = [
            [some_of(group.names, GROUP_SHOWN), group.main, group.evidence]
            for group in trust.groups
        ]
        head = ["one or more of", "in the model", "P(effect)"]
        parts.append(html.section("Discovered groups", GROUPS_NOTE, html.text_table(head, rows)))
    if trust.not_identified:
        parts.append(html.bullets(trust.without_interval))
    if trust.site_weights is not None:
        weights = [[site, number(weight, 3)] for site, weight in trust.site_weights.items()]
        table = html.text_table(["site", "weight of a row"], weights)
        note = WEIGHTS_NOTE + WEIGHTED[trust.weighted_model]
        parts.append(html.section("Site weights", note, table))
    if trust.other_notes:
        parts.append(html.bullets(trust.other_notes))
    if trust.rate is not None or trust.selected or trust.named or trust.not_identified:
        note = "Intervals, probabilities and rates hold only if these do; the fit cannot check all."
        assumption = document.settings.response_family.assumption
        assumed = [*ASSUMPTIONS, assumption] if assumption else ASSUMPTIONS
        parts.append(html.section("Assumptions", note, html.bullets(assumed)))
    return "".join(parts)
