"""Sections of the card on evidence: held-out error, path, errors per site, other models."""

import math

from fedlasso import html
from fedlasso.fitting.examination.comparison import (
    OWN_COLUMNS,
    THIS_MODEL,
    ComparedModel,
    held_out_errors,
    training_errors,
)
from fedlasso.html import escape
from fedlasso.models.document import ModelDocument
from fedlasso.models.numbers import bytes_of, number, percent, with_error
from fedlasso.models.plots import LABELLED, plot_cv, plot_path
from fedlasso.models.svg import draw_svg

OF_RISK_SETS = (
    "Risk sets are those of all rows of a site, so the deviance grows with its number of rows, and "
    "sites of other sizes are not comparable."
)


def draw_evidence(document: ModelDocument) -> str:
    """Return the sections, each with a reason where a site refused it."""
    sections = (_curve, _path, _site_errors, _comparison)
    return "".join(draw(document) for draw in sections)


def _curve(document: ModelDocument) -> str:
    curve = document.curve
    if not curve or min(curve.penalties) <= 0:
        return ""
    error_name = document.settings.response_family.error_name
    chart = draw_svg(lambda ax: plot_cv(curve, error_name, ax), "Cross-validation curve")
    known = curve.nzero[curve.chosen] if curve.nzero else None
    # Over several splits the count is a mean.
    active = f"{curve.active[curve.chosen] if known is None else known:.3g}"
    mean = "" if float(active).is_integer() else " on average over the folds"
    count = len(document.coefficients)
    also = "as many as this model" if active == f"{count}" else f"and this model has {count}"
    note = (
        "Error of the Lasso on held-out rows, pooled over the sites, ± one standard error; the "
        "rows did not leave the sites. Dotted: the penalty of least error (min, λ = "
        f"{curve.penalties[curve.minimum]:.4g}) and the largest within one standard error of it "
        f"(1se, λ = {curve.penalties[curve.one_se]:.4g}). At the chosen penalty the Lasso has "
        f"{active} column{'s' * (active != '1')}{mean}, {also}."
    )
    if not document.settings.response_family.intercept:
        note += (
            " Risk sets are those of a fold's rows at a site, so the deviance is below that over "
            "all rows of a site."
        )
    return html.section("Cross-validation", note, chart)


def _path(document: ModelDocument) -> str:
    path = document.path
    if not path or not path.names or min(path.penalties) <= 0:
        return ""
    selected = [row.name for row in document.coefficients]
    mark = document.path_penalty if document.curve else None
    chart = draw_svg(lambda ax: plot_path(path, selected, mark, ax), "Coefficient path")
    if not chart:
        return ""
    count = len(path.names)
    which = f"The {count} largest coefficients" if count > 1 else "The coefficient"
    note = f"{which} of the Lasso as the penalty decreases."
    if len(set(path.names) & set(selected)) > LABELLED:
        note += f" The {LABELLED} largest that this model uses are named, the others grey."
    elif set(path.names) - set(selected):
        note += " Columns that this model does not use are grey."
    note += " The dashed line is the chosen penalty." * (mark is not None)
    return html.section("Coefficient path", note, chart)


def _site_errors(document: ModelDocument) -> str:
    title = "Error per site"
    held_out = held_out_errors(document.assessment)
    errors = held_out or training_errors(document.site_errors)
    if not errors:
        return html.left_out(title, document.no_site_errors)
    pooled = errors[-1].mse
    family = document.settings.response_family
    cells = []
    for error in errors:
        root = [number(math.sqrt(error.mse), 4)] if family.quadratic else []
        times = [f"{error.mse / pooled:.2f}" if pooled > 0 else "–"] if family.intercept else []
        cells.append([error.name, f"{error.rows:,}", number(error.mse, 4), *root, *times])
    head = ["site", "rows", family.error_name, *["RMSE"] * family.quadratic]
    head += ["ratio to all sites"] * family.intercept
    note = "On the training rows; errors on new rows are usually larger."
    if held_out:
        note = "On held-out rows, as in the section on predictive performance."
    if family.intercept:
        note += " A high ratio means a bad fit there."
    else:
        note += f" {OF_RISK_SETS}"
    return html.section(title, note, html.text_table(head, cells, own=len(errors) - 1))


def _comparison(document: ModelDocument) -> str:
    title = "Compared with each site alone"
    if not document.comparison:
        return html.left_out(title, document.not_compared)
    cells = []
    for row in document.comparison:
        above = "–" if row.above is None else percent(row.above)
        sent = bytes_of(row.sent) if row.sent else "nothing"
        cells.append([row.name, with_error(row.mse, row.se), str(row.active), above, sent])
    head = ["", "error", "columns", "objective above the pooled Lasso's", "sent by a site"]
    first = document.comparison[0]
    note = _comparison_note(document, first)
    if first.name != THIS_MODEL and (error := document.error):
        expected = f"{document.error_text()}, on {error.rows}"
        note += escape(f" The expected error of this model itself is {expected}.")
    return html.section(title, note, html.text_table(head, cells, own=0))


def _comparison_note(document: ModelDocument, first: ComparedModel) -> str:
    """Return how the models were judged; `first` is this one, or represents it."""
    note = (
        "Errors are by cross-validation (± one standard error over folds): a model without each "
        "fold predicts the rows of that fold, at all sites. Each site alone chose its penalty on "
        "its own rows, by the other folds. The objective is that of the Lasso on all rows at this "
        "model's penalty; its column is the exact distance to the minimum, not a bound. "
    )
    if first.name == THIS_MODEL and first.mse is None:
        return f"{note}This model was not fitted without each fold."
    if first.name == THIS_MODEL:
        return note + (
            "This model was chosen and fitted without each fold. The pooled Lasso has its penalty, "
            "which all rows chose."
        )
    if first.name == OWN_COLUMNS:
        return note + (
            "This model's columns are refitted without each fold, with almost no penalty. This is "
            "slightly optimistic: the rows of the fold helped to select them."
        )
    note += "The pooled Lasso represents this model"
    if document.curve is None:
        return f"{note}, at the given penalty."
    return f"{note}, at its penalty, which all rows chose."
