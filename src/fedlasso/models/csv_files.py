"""The numbers of a card as CSV files, unrounded."""

from collections.abc import Iterator, Sequence
from typing import Any

from fedlasso.csv_text import write_csv
from fedlasso.fitting.examination.assessment import Measure, SiteAssessment
from fedlasso.fitting.examination.comparison import ALL_SITES, held_out_errors, training_errors
from fedlasso.models.document import Coefficient, ModelDocument
from fedlasso.models.effects import Effect, effects_of
from fedlasso.models.table_one_cells import write_table_csv

# Columns of estimates in coefficients.csv, and the fields of `ColumnEstimate` with their values.
ESTIMATED = {
    "sd": "scale",
    "estimate": "value",
    "std_error": "error",
    "low": "low",
    "high": "high",
    "p_value": "p_value",
    "adjusted_p": "adjusted",
    "probability": "probability",
    "q_p_value": "heterogeneity",
    "i_squared": "i_squared",
}
_Table = Sequence[Sequence[Any]]


def csv_files(document: ModelDocument) -> dict[str, str]:
    """Return the CSV files of a model by name; what was not measured has no file."""
    tables: dict[str, _Table] = {"coefficients": list(_coefficients(document))}
    if curve := document.curve:
        marks = ["lambda.min" * (k == curve.minimum) for k in range(len(curve.mse))]
        one_se = ["lambda.1se" * (k == curve.one_se) for k in range(len(curve.mse))]
        chosen = ["chosen" * (k == curve.chosen) for k in range(len(curve.mse))]
        marks = [" ".join(filter(None, own)) for own in zip(marks, one_se, chosen, strict=True)]
        head = ["lambda", "cvm", "cvsd", "nzero", "mark"]
        nzero = curve.nzero or [None] * len(curve.mse)
        columns = (curve.penalties, curve.mse, curve.se, nzero, marks)
        tables["curve"] = [head, *zip(*columns, strict=True)]
    if path := document.path:
        own: list[Sequence[Any]] = [path.penalties]
        head = ["lambda"]
        if path.nzero is not None and path.dev_ratio is not None:
            head += ["nzero", "dev.ratio"]
            own += [path.nzero, path.dev_ratio]
        tables["path"] = [[*head, *path.names], *zip(*own, *path.coefficients, strict=True)]
    tables |= _assessment(document)
    held_out = held_out_errors(document.assessment)
    if errors := held_out or training_errors(document.site_errors):
        rows_of = "held out" if held_out else "training"
        by_site = [[error.name, rows_of, error.rows, error.mse] for error in errors]
        tables["site_errors"] = [["site", "rows_of", "rows", "error"], *by_site]
    if document.comparison:
        models = [[m.name, m.mse, m.se, m.active, m.above, m.sent] for m in document.comparison]
        head = ["model", "cvm", "cvsd", "nzero", "objective_above", "bytes_sent"]
        tables["comparison"] = [head, *models]
    if estimates := list(_site_estimates(document)):
        tables["site_estimates"] = [
            ["term", "site", "estimate", "conf.low", "conf.high"],
            *estimates,
        ]
    tables["costs"] = list(_costs(document))
    files = {f"{name}.csv": write_csv(rows) for name, rows in tables.items()}
    if document.table_one is not None:
        files["table1.csv"] = write_table_csv(document.table_one)
    return files


def _coefficients(document: ModelDocument) -> Iterator[list[Any]]:
    """Yield every column, zeros included; per unit and per SD, with estimates and intervals."""
    ratio = document.ratio.replace(" ", "_") if document.ratio is not None else None
    head = ["name", "coefficient", "standardised"]
    if ratio is not None:
        head += [ratio, f"{ratio}_per_sd"]
    effects = {effect.name: effect for effect in effects_of(document)}
    estimated = any(effect.estimate is not None for effect in effects.values())
    if estimated:
        head += ESTIMATED
    if document.stability:
        head.append("selection_frequency")
    yield head
    if document.settings.response_family.intercept:
        yield ["(intercept)", document.intercept, *[None] * (len(head) - 2)]
    for column in document.schema.encoded:
        effect = effects.get(column, Effect(column))
        row = effect.coefficient or Coefficient(column, 0.0, 0.0, mean=0.0, scale=0.0)
        cells: list[Any] = [column, row.value, row.standardised]
        if ratio is not None:
            cells += row.ratios
        if estimated:
            own = effect.estimate
            cells += [None if own is None else getattr(own, name) for name in ESTIMATED.values()]
        if document.stability:
            cells.append(effect.frequency)
        yield cells


def _site_estimates(document: ModelDocument) -> Iterator[list[Any]]:
    """Yield the estimate from each site's rows alone, per unit of the column."""
    for effect in effects_of(document):
        for own in effect.estimate.sites if effect.estimate is not None else ():
            yield [effect.name, own.site, own.value, own.low, own.high]


def _costs(document: ModelDocument) -> Iterator[list[Any]]:
    """Yield what each site sent and received for the fit, and what it sent for the card."""
    kinds = sorted({kind for site in document.sites for kind in site.sent})
    head = ["for", "site", "rows", "round_trips", "messages", "bytes_received", "bytes_sent"]
    yield [*head, *(f"bytes_sent_{kind.replace(' ', '_')}" for kind in kinds)]
    for site in document.sites:
        own = [site.messages, sum(site.received.values()), site.sent_in_all]
        parts = [site.sent.get(kind, 0) for kind in kinds]
        yield ["fit", site.name, site.rows, document.round_trips, *own, *parts]
    card = document.examination_sent or {}
    none = [None] * len(kinds)
    for site in document.sites:
        if site.name in card:
            trips = document.examination_trips
            yield ["card", site.name, site.rows, trips, None, None, card[site.name], *none]


def _assessment(document: ModelDocument) -> dict[str, _Table]:
    found = document.assessment
    if found is None:
        return {}
    whole = SiteAssessment(
        name=ALL_SITES,
        rows=found.rows,
        error=found.error,
        explained=found.explained,
        auroc=found.auroc,
        calibration=found.calibration,
        concordance=found.concordance,
    )
    lines: list[list[Any]] = [["rows_of", "site", "rows", "measure", "value", "low", "high"]]
    for kind, sites in (("all", (whole,)), ("site", found.sites), ("left out", found.left_out)):
        for site in sites:
            for name, measure in _measures(site).items():
                ends = (measure.value, measure.low, measure.high)
                lines.append([kind, site.name, site.rows, name, *ends])
    tables: dict[str, _Table] = {"assessment": lines}
    if found.roc:
        tables["roc"] = [["false_positive_rate", "true_positive_rate"], *found.roc]
    if found.groups:
        rows = [[g.rows, g.expected, g.observed, g.low, g.high] for g in found.groups]
        tables["calibration"] = [["rows", "expected", "observed", "low", "high"], *rows]
    if found.curves:
        lines = [["group", "time", "survival", "low", "high", "at_risk"]]
        for curve in found.curves:
            none = [None] * len(curve.times)
            columns = (curve.low or none, curve.high or none, curve.at_risk or none)
            points = zip(curve.times, curve.shares, *columns, strict=False)
            lines += [[curve.name, *point] for point in points]
        tables["survival"] = lines
    return tables


def _measures(site: SiteAssessment) -> dict[str, Measure]:
    calibration = site.calibration
    found = {
        "error": site.error,
        "explained": site.explained,
        "auroc": site.auroc,
        "concordance": site.concordance,
        "calibration_slope": None if calibration is None else calibration.slope,
        "calibration_intercept": None if calibration is None else calibration.intercept,
    }
    return {name: measure for name, measure in found.items() if measure is not None}
