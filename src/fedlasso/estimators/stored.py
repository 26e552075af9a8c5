"""An estimator from a model folder, and a fitted one as HTML in a notebook."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils import estimator_html_repr

from fedlasso import html
from fedlasso.errors import FedLassoError
from fedlasso.fitting import Settings
from fedlasso.models import ModelDocument, read_document
from fedlasso.models.card_effects import table_of_effects
from fedlasso.models.effects import effects_of
from fedlasso.models.text import describe_fit

if TYPE_CHECKING:
    from fedlasso.estimators.shared import FederatedEstimator

E = TypeVar("E", bound="FederatedEstimator")
# Rows of a table in a notebook.
ROWS_SHOWN = 20
# Parameters that scikit-learn names differently than `Settings`.
RENAMED = {"fit_intercept": "intercept", "standardize": "standardise"}


def read_estimator(kind: type[E], path: Any) -> E:
    """Return the fitted estimator of a folder that `fedlasso fit` or `to_folder` wrote."""
    document = read_document(Path(path) / "model.json")
    if document.settings.family != kind.family.name:
        raise FedLassoError(
            f"{path} holds a {document.settings.family} model, and {kind.__name__} is "
            f"{kind.family.name}; use the class of that family"
        )
    parameters = kind._get_param_names()
    known = {own.name for own in fields(Settings)}
    values = {
        name: getattr(document.settings, RENAMED.get(name, name))
        for name in parameters
        if RENAMED.get(name, name) in known
    }
    values |= {"missing": document.missing, "na": list(document.schema.na)}
    model = kind(**values)
    _restore(model, document)
    return model


def _restore(model: FederatedEstimator, document: ModelDocument) -> None:
    """Set what a fit sets, as far as the document has it."""
    schema = document.schema
    names = schema.encoded
    rows = {row.name: row for row in document.coefficients}
    plain = (
        not schema.na
        and schema.formula is None
        and names == tuple(column.name for column in schema.columns)
    )
    plain = plain and all(column.kind == "number" for column in schema.columns)
    model.schema_ = None if plain else schema
    model.formula_ = None if schema.formula is None else f"~ {schema.formula.text}"
    model._source = {}
    model._has_offset = schema.offset is not None
    model.columns_ = names
    model.n_features_in_ = len(schema.columns)
    if names != tuple(f"x{k}" for k in range(len(names))):
        model.feature_names_in_ = np.array([own.name for own in schema.columns], dtype=object)
    model.coef_ = np.array([rows[name].value if name in rows else 0.0 for name in names])
    model.intercept_ = document.intercept
    model.certificate_ = document.certificate
    model.penalty_ = document.penalty
    model.trust_ = document.trust
    model.n_iter_ = document.rounds
    model._means = np.array(document.means or [0.0] * len(names))
    model._scales = np.array([rows[name].scale if name in rows else 0.0 for name in names])
    model._sites = None
    model._path = None
    model._found = {}
    model._stored = document
    model._error = None
    model._restore_response(schema)


def describe_in_html(model: FederatedEstimator) -> str:
    """Return scikit-learn's diagram, and once fitted a summary with the table of effects."""
    diagram: str = estimator_html_repr(model)
    if not hasattr(model, "coef_"):
        return diagram
    document = model._to_summary()
    effects = effects_of(document)
    shown = table_of_effects(document, effects[:ROWS_SHOWN]) if effects else ""
    more = len(effects) - ROWS_SHOWN
    rest = f"<p>{more} more: coefficient_table()</p>" if more > 0 else ""
    return f"{diagram}<pre>{html.escape(describe_fit(document))}</pre>{shown}{rest}"
