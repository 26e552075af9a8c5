"""Appendix of the card: the TRIPOD-Cluster checklist, filled as far as the document allows."""

from collections.abc import Iterator

from fedlasso import html
from fedlasso.html import escape
from fedlasso.models.about import About
from fedlasso.models.document import ModelDocument
from fedlasso.models.effects import effects_of
from fedlasso.models.numbers import counted

OPEN = "author to complete"
SOURCE = (
    "Items in short; see Debray TPA et al., Transparent reporting of multivariable prediction "
    "models developed or validated using clustered data: TRIPOD-Cluster checklist, BMJ 2023;380:"
    "e071018. Sites are the clusters. Items for validation studies alone (7c, 8d, 8g, 10c, 14, "
    f"16b) do not apply. “{OPEN}” marks what the data cannot answer."
)


def draw_checklist(document: ModelDocument, about: About) -> str:
    """Return the checklist as a table: item, topic, and the answer or what is left open."""
    rows = [
        [number, escape(topic), f"<em>{OPEN}</em>" if text is None else escape(text)]
        for number, topic, text in _items(document, about)
    ]
    table = html.table(["item", "topic", "where, or what"], rows, kind="checklist")
    return html.section("Appendix: TRIPOD-Cluster checklist", escape(SOURCE), table)


def _items(document: ModelDocument, about: About) -> Iterator[tuple[str, str, str | None]]:
    settings = document.settings
    sites = counted(len(document.sites), "site")
    rows = counted(document.rows.training, "row")
    assessed = document.assessment
    per_site = assessed is not None and bool(assessed.sites or assessed.left_out)
    yield "1", "title: development or validation, population, outcome", about.title
    yield "2", "abstract", None
    yield "3a", "medical context, rationale, benefit of clustered data", None
    yield "3b", "objectives", None
    yield "4a", "eligibility of participants and of data sets", None
    yield "4b", "origin of the data, how they were obtained", None
    yield "5", "sample size", f"{rows} at {sites}; justification: {OPEN}"
    yield "6a", "outcome: definition, time of measurement", f"{_outcome(document)}; rest: {OPEN}"
    columns = counted(document.columns, "candidate column")
    yield "6b", "predictors: definition, time of measurement", f"{columns}; rest: {OPEN}"
    yield "7a", "cleaning, harmonisation, quality checks", None
    yield "7b", "risk of bias per cluster", None
    imputed = "replaced by the mean over all sites" if document.missing == "mean" else "refused"
    yield "7d", "missing data", f"missing values were {imputed}"
    scale = "standardised over all sites" if settings.standardise else "not standardised"
    levels = any(column.kind == "text" for column in document.schema.columns)
    indicators = "; text columns as indicators of their levels" if levels else ""
    yield "8a", "handling of predictors", f"columns were {scale}{indicators}"
    yield "8b", "type of model, building, validation", f"{document.name}; {document.why}"
    yield "8c", "heterogeneity of parameters across clusters", _heterogeneity(document)
    yield "8e", "measures of performance", None if assessed is None else assessed.how
    by_site = "measured at every site" if per_site else None
    yield "8f", "heterogeneity of performance across clusters", by_site
    yield "9", "subgroup and sensitivity analyses", None
    yield "10a", "flow of clusters and participants", f"{rows} at {sites}; exclusions: {OPEN}"
    yield "10b", "characteristics by cluster", "Table 1" if document.table_one else None
    yield "11", "results on risk of bias per cluster", None
    estimates = [effect.estimate for effect in effects_of(document)]
    tested = any(row is not None and row.i_squared is not None for row in estimates)
    heterogeneity = "I² under Coefficients" if tested else None
    yield "12a", "results on heterogeneity in development", heterogeneity
    yield "12b", "the full model, and how to use it", "Coefficients; model.json; fedlasso predict"
    performance = "Predictive performance" if assessed else None
    yield "13a", "performance with intervals, overall and by cluster", performance
    yield "13b", "heterogeneity of performance", performance if per_site else None
    halves = "selection frequencies under Coefficients" if document.stability else None
    yield "15", "results of sensitivity analyses", halves
    yield "16a", "interpretation", None
    limits = f"warnings at the top; rest: {OPEN}" if document.warnings else None
    yield "16c", "strengths and limitations", limits
    yield "17", "use of the model, generalisability", None
    hashes = f"hashes of the data are listed above; rest: {OPEN}" if about.data else None
    yield "18", "protocol, code and data", hashes
    yield "19", "funding", None


def _outcome(document: ModelDocument) -> str:
    schema = document.schema
    if schema.event:
        return f"time {schema.target} to {schema.event}"
    one = document.positive
    return schema.target if one is None else f"{schema.target}, {one} is 1"


def _heterogeneity(document: ModelDocument) -> str:
    if document.schema.event:
        return "one baseline hazard per site, common coefficients"
    intercept = "one intercept per site" if document.site_effects else "common intercept"
    return f"{intercept}, common coefficients"
