"""Base classes of the estimators: their parameters, and the division of a table into sites."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fedlasso.errors import FedLassoError
from fedlasso.families import Family
from fedlasso.federation import Federation, InProcess
from fedlasso.fitting import Model, Settings, fit_model
from fedlasso.models import ModelFolder, make_document, to_trust_document, write_model
from fedlasso.models.inputs import make_site
from fedlasso.models.text import warn_of_fit
from fedlasso.numerics import Array
from fedlasso.sites import INTERCEPT, check_two_rows
from fedlasso.tables import Encoded, Responses, Schema
from fedlasso.tables.columns import Column
from fedlasso.tables.targets import count_rows

# Parameters that scikit-learn names differently than `Settings`.
_RENAMED = {"fit_intercept": "intercept", "standardize": "standardise"}


@dataclass(eq=False, repr=False)
class FederatedEstimator(BaseEstimator):  # type: ignore[misc]
    """A sparse model across sites that keep their records; base class for all families."""

    family: ClassVar[Family]

    goal: str | None = None
    _: KW_ONLY
    penalty: float | None = None
    keep: Any = ()
    l1_ratio: float = 1.0
    bounds: Any = None
    fdr: float = 0.1
    intervals: Any = ()
    level: float = 0.95
    procedure: str | None = None
    epochs: int = 1
    validation: float | str | None = None
    cv: int | None = None
    uploads: int | None = None
    rule: str | None = None
    tol: float = 1e-12
    standardize: bool = True
    seed: int = 0

    def fit(
        self,
        X: Any,
        y: Any = None,
        sites: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        clusters: Any = None,
    ) -> Self:
        """Fit to a table whose rows belong to sites, or to a federation.

        Parameters
        ----------
        X : table (NumPy, pandas, Polars, scipy sparse), or a federation
        y : numbers, two labels, counts, or events and times (scikit-survival's structured array, or
            two columns in this order), depending on the estimator; None with a federation
        sites : one label per row; one site by default
        sample_weight : row weights; one by default
        offset : added to the linear predictor, such as a log exposure; zero by default
        clusters : one label per row, such as the patient; rows of a cluster may depend on each
            other, and standard errors allow for that
        """
        federation: Federation
        if isinstance(X, Federation):
            if any(given is not None for given in (y, sites, sample_weight, offset, clusters)):
                raise FedLassoError("a federation has its own responses and sites; pass it alone")
            federation = X
            self._accept(federation)
        else:
            X, response = self._check(X, y)
            weights = _one_per_row("sample_weight", sample_weight, len(response))
            offset = _one_per_row("offset", offset, len(response))
            labels = None if clusters is None else np.asarray(clusters)
            if labels is not None and labels.shape != response.shape:
                raise FedLassoError(
                    f"clusters has shape {labels.shape} but X has {len(response)} rows; give one "
                    "label per row"
                )
            federation = self._split(X, Responses(response, weights, offset, labels), sites)
        model = fit_model(federation, self._settings(federation.columns))
        # Second moments are dropped: a pickle must not disclose more than the model.
        self.model_: Model = replace(model, fit=replace(model.fit, evidence=None))
        self.coef_ = self.model_.coefficients
        self.intercept_: Any = self.model_.intercept
        self.certificate_ = self.model_.fit.certificate
        self.ledger_ = self.model_.costs
        self.penalty_ = self.model_.penalty
        self.trust_ = to_trust_document(self.model_)
        self.n_iter_ = self.model_.fit.rounds
        self._finish(federation, y)
        return self

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Return the expected response of every row."""
        return self.family.loss.mean(self._score(X, offset))

    def to_folder(self, path: Any, target: str | None = None) -> None:
        """Write the folder of a model: card.html, model.json and CSV files.

        It is the folder of ``fedlasso fit --no-compare``: what needs the records once more, such as
        the assessment, is not in it. `fedlasso predict` reads it.

        Parameters
        ----------
        path : new or empty folder
        target : name of the response; y by default, or time for survival
        """
        check_is_fitted(self)
        folder = ModelFolder(Path(path))
        folder.check()
        schema = getattr(self, "schema_", None) or self._describe_columns(target)
        document = make_document(self.model_, schema, getattr(self, "missing", "refuse"))
        warnings = tuple(warn_of_fit(self.model_, schema.target))
        write_model(folder.path, replace(document, warnings=warnings))

    def _describe_columns(self, target: str | None) -> Schema:
        """Return the schema of a table of numbers."""
        classes = [label for label in getattr(self, "classes_", ()) if isinstance(label, str)]
        event = "event" if "event" in self.family.roles else None
        return Schema(
            target or ("time" if event else "y"),
            tuple(Column(str(name), "number") for name in self.model_.columns),
            family=self.family.name,
            event=event,
            classes=tuple(map(str, classes)),
        )

    def _accept(self, federation: Federation) -> None:
        """Take feature names and counts from a federation."""
        names = tuple(name for name in federation.columns if name != INTERCEPT)
        self.n_features_in_ = len(names)
        if names != tuple(f"x{k}" for k in range(self.n_features_in_)):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _finish(self, federation: Federation, y: Any) -> None:
        """Add attributes that only this estimator has."""

    def _check(self, X: Any, y: Any) -> tuple[Any, Array]:
        """Return the validated table, and responses as the loss takes them."""
        X, y = validate_data(
            self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64, y_numeric=True
        )
        y = np.asarray(y, dtype=np.float64)
        for problem, what in self.family.find_problems("target", y):
            if problem.any():
                raise FedLassoError(f"y {what.format(rows=count_rows(int(problem.sum())))}")
        return X, y

    def _describe_constant(self, y: Array) -> str:
        """Return why no model can be fitted to these responses."""
        return self.family.constant

    def _score(self, X: Any, offset: Any = None) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        score = self.model_.score(X)
        added = _one_per_row("offset", offset, X.shape[0])
        return score if added is None else score + added

    def _split(self, X: Any, responses: Responses, sites: Any) -> InProcess:
        # As elsewhere in scikit-learn, rows with weight zero are ignored.
        if responses.weights is not None and (responses.weights == 0).any():
            present = np.flatnonzero(responses.weights != 0)
            X = X.tocsr()[present] if hasattr(X, "tocsr") else X[present]
            if not len(present):
                raise FedLassoError("every weight is zero; give positive weights")
            if sites is not None:
                sites = np.asarray(sites)[present]
            responses = responses.take(present)
        if not self.family.varies(responses.y):
            constant = self._describe_constant(responses.y)
            raise FedLassoError(f"y {constant}, so there is nothing to fit")
        rows = X.shape[0]
        if rows < 2:
            raise ValueError(f"{rows} sample is too few; give at least 2 rows (n_samples={rows})")
        columns = getattr(self, "feature_names_in_", None)
        make = partial(make_site, columns=columns, settings=self._settings(()))
        if sites is None:
            return InProcess([make(Encoded("all", X, responses))])
        labels = check_array(sites, ensure_2d=False, dtype=None)
        if labels.shape != (rows,):
            raise FedLassoError(
                f"sites has shape {labels.shape} but X has {rows} rows; give one label per row"
            )
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        called, place = np.unique(labels.astype(str), return_inverse=True)
        parts = {str(name): np.flatnonzero(place == j) for j, name in enumerate(called)}
        for name, own in parts.items():
            check_two_rows(name, len(own))
        records = (Encoded(name, _part(X, own), responses.take(own)) for name, own in parts.items())
        return InProcess([make(own) for own in records])

    def _settings(self, columns: Iterable[str]) -> Settings:
        """Return the parameters as settings, with columns by name."""
        for name in ("uploads", "cv", "epochs", "seed"):
            value = getattr(self, name)
            optional = name in ("uploads", "cv") and value is None
            if not (optional or isinstance(value, Integral)):
                raise FedLassoError(f"{name} is {value!r}; give a whole number")
        if self.penalty is not None and not isinstance(self.penalty, Real):
            raise FedLassoError(f"penalty is {self.penalty!r}; give a number, or None to tune it")
        columns = tuple(name for name in columns if name != INTERCEPT)
        values = {_RENAMED.get(name, name): value for name, value in self.get_params().items()}
        values |= {name: _names_of(name, values[name], columns) for name in ("keep", "intervals")}
        bounds = self.bounds or {}
        if not isinstance(bounds, Mapping):
            raise FedLassoError(f"bounds is {bounds!r}; give a dict, as {{'age': (0, None)}}")
        # Column names may not be known yet.
        bounded = _names_of("bounds", bounds, columns)
        values["bounds"] = dict(zip(bounded, bounds.values(), strict=bool(columns)))
        known = {own.name for own in fields(Settings)}
        own = {name: value for name, value in values.items() if name in known}
        return Settings(family=self.family.name, **own)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False)
class WithIntercept(FederatedEstimator):
    """An estimator with an intercept for all sites, or one per site."""

    _: KW_ONLY
    fit_intercept: bool = True
    site_effects: bool | None = None


def _names_of(what: str, given: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise FedLassoError(f"{what} is {given!r}; give a list of columns, by names or numbers")
    wanted = [int(c) if isinstance(c, Integral) else str(c) for c in given] if columns else []
    for column in wanted:
        if isinstance(column, int) and not 0 <= column < len(columns):
            raise FedLassoError(f"{what}: there is no column {column}; X has {len(columns)}")
    return tuple(columns[own] if isinstance(own, int) else own for own in wanted)


def _one_per_row(what: str, values: Any, rows: int) -> Array | None:
    if values is None:
        return None
    numbers: Array = check_array(
        values, ensure_2d=False, dtype=np.float64, input_name=what, ensure_min_samples=0
    )
    if numbers.shape != (rows,):
        raise ValueError(
            f"{what} has shape {numbers.shape} but X has {rows} rows; give one number per row"
        )
    return numbers


def _part(X: Any, rows: Any) -> Any:
    """Return rows of X in the storage order of a site, with one copy."""
    if hasattr(X, "tocsc"):
        return X[rows].tocsc()
    part = np.empty((len(rows), X.shape[1]), order="F")
    np.take(X, rows, axis=0, out=part)
    return part
