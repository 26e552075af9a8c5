"""A model in a few lines, as the terminal tells it."""

from fedlasso.fitting.result import Status
from fedlasso.models.document import ExpectedError, ModelDocument
from fedlasso.models.inference_document import TrustDocument
from fedlasso.models.numbers import bytes_of, number

_SHOWN = 20


def _error_line(document: ModelDocument, error: ExpectedError) -> str:
    spread = "" if error.se is None else f" ± {number(error.se, 2)}"
    family = document.settings.response_family
    explained = "" if error.r2 is None else f", {family.explained_name} {error.r2:.3f}"
    return f"{family.error_name}: {number(error.mse, 4)}{spread}{explained}, on {error.rows}"


def describe_model(document: ModelDocument) -> str:
    """Return what a model is, in a few lines."""
    rows = document.coefficients
    settings = document.settings
    # That uploads ended too early comes first.
    lines = [document.status_text] if document.status == Status.CUT.name else []
    rounds = f"{document.rounds} round{'s' * (document.rounds != 1)}"
    lines += [
        f"{document.schema.target}: {len(rows)} of {document.columns} columns, "
        f"{document.rows.training} training rows at {len(document.sites)} sites",
        f"penalty {document.penalty:.4g}, {document.penalty_words}",
        f"certificate: {document.certificate}",
        document.why,
        *([] if document.error is None else [_error_line(document, document.error)]),
        *([] if document.trust is None else _trust_lines(document.trust)),
        f"most sent by a site: {bytes_of(document.most_sent)}, in {rounds}",
    ]
    if document.schema.classes:
        zero, one = document.schema.classes
        lines.append(f"classes: {one!r} is 1, {zero!r} is 0")
    if settings.keep:
        lines.append(f"never penalised: {', '.join(settings.keep)}")
    if settings.bounds:
        lines.append(document.bounds_words)
    if settings.site_effects:
        lines.append("site effects: new rows have the mean of the sites' intercepts")
    lines += _coefficient_lines(document)
    if len(rows) > _SHOWN:
        lines.append(f"  ... and {len(rows) - _SHOWN} more in coefficients.csv")
    return "\n".join(lines)


def _trust_lines(trust: TrustDocument) -> list[str]:
    """What was found, intervals that were asked for, and what rows are worth."""
    lines = [trust.words] if trust.words else []
    told = (("found", trust.found), ("selected", trust.selected), ("interval", trust.named))
    lines += [
        f"{label}: {row.name} {number(row.value, 3)}, {trust.level:.0%} interval "
        f"{number(row.low, 3)} to {number(row.high, 3)}, {row.sureness}"
        for label, rows in told
        for row in rows[:_SHOWN]
    ]
    if trust.worth is not None:
        worth = ", ".join(f"{site} {number(share, 2)}" for site, share in trust.worth.items())
        lines.append(f"rows weigh by their site's noise: {worth}")
    return [*lines, *trust.notes]


def _coefficient_lines(document: ModelDocument) -> list[str]:
    """The largest coefficients; where people expect it, exponentiated as well."""
    heads, lines = document.coefficient_table(_SHOWN)
    if not lines:
        return []
    names = ["", *(row.name for row in document.coefficients)]
    rows = [heads, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    first = max(map(len, names[: len(rows)]))
    return [
        "  ".join([f"  {name:{first}}", *map(str.rjust, row, widths)])
        for name, row in zip(names, rows, strict=False)
    ]
