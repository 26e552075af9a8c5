"""Base classes of the estimators: their parameters, and the division of a table into sites."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from fedlasso.errors import FedLassoError, FedLassoWarning
from fedlasso.estimators.described import describe, name_of_series, name_response
from fedlasso.estimators.fitted import FittedSurface, SitesAtHand
from fedlasso.estimators.formula_frames import read_frame, take_column, take_columns
from fedlasso.estimators.stored import RENAMED, describe_in_html, read_estimator
from fedlasso.estimators.table_rows import (
    TableRows,
    in_python,
    is_one,
    names_of,
    one_per_row,
    read_codes,
    read_orders,
)
from fedlasso.families import Family
from fedlasso.federation import Federation, metered
from fedlasso.federation.ledger import Notify
from fedlasso.fitting import Model, Settings, fit_model
from fedlasso.fitting.exact_path import path_by_moments
from fedlasso.models import (
    ModelDocument,
    ModelFolder,
    make_document,
    to_trust_document,
    with_nested_error,
    write_model,
)
from fedlasso.models.inputs import OpenedSites, encode_settings
from fedlasso.models.text import warn_of_fit, warn_of_leak
from fedlasso.numerics import Array
from fedlasso.sites import INTERCEPT
from fedlasso.tables import (
    MIN_LEVEL,
    Frame,
    Schema,
    encode_rows,
    holds_measurements,
    is_frame,
    to_arrow,
)
from fedlasso.tables.targets import count_rows

# Parameters with a value per column, and an example of each.
_BY_COLUMN = {"bounds": "{'age': (0, None)}", "penalty_factors": "{'age': 0.5}"}


@dataclass(eq=False, repr=False)
class FederatedEstimator(FittedSurface):
    """A sparse model across sites that keep their records; base class for all families."""

    family: ClassVar[Family]

    goal: str | None = None
    _: KW_ONLY
    penalty: float | None = None
    keep: Any = ()
    penalty_factors: Any = None
    groups: Any = ()
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
    round_trips: int | None = None
    rule: str | None = None
    tol: float = 1e-12
    standardize: bool = True
    seed: int = 0
    missing: str = "refuse"
    na: Any = ()
    categorical: Any = ()
    min_level: int = MIN_LEVEL

    def fit(
        self,
        X: Any,
        y: Any = None,
        sites: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        clusters: Any = None,
        formula: str | None = None,
        knots: Any = None,
    ) -> Self:
        """Fit to a table whose rows belong to sites, or to a federation.

        Parameters
        ----------
        X : table (NumPy, pandas, Polars, Arrow, scipy sparse), or a federation; data frames may
            have text, categories and missing values, and are read as files are
        y : numbers, two labels, counts, or events and times (scikit-survival's structured array, or
            two columns in this order), depending on the estimator; None with a federation
        sites : one label per row; one site by default
        sample_weight : row weights; one by default
        offset : added to the linear predictor, such as a log exposure; zero by default
        clusters : one label per row, such as the patient; rows of a cluster may depend on each
            other, and standard errors allow for that
        formula : response and columns of the data frame X, as ``"relapse ~ age*sex + C(ward)"``,
            instead of y; ``"relapse ~ ."`` takes all other columns. `sites`, `sample_weight`,
            `offset` and `clusters` may then be names of columns. Needs ``fedlasso[formula]``
        knots : of its splines, by column: ``{"bmi": (18, 25, 30, 40)}`` for ``ns(bmi, 3)``
        """
        notices: list[str] = []
        federation: Federation
        self.schema_: Schema | None = None
        self.formula_ = formula
        self._source: dict[str, Any] = {}
        self._response = name_of_series(y)
        self._leaks: dict[str, str] = {}
        if formula is not None:
            if y is not None:
                raise FedLassoError("the formula names the response; omit y")
            rows = (sites, sample_weight, offset, clusters)
            X, y, rows, self._source = read_frame(X, rows, formula, knots or {}, self.categorical)
            self.formula_ = str(self._source["formula"])
            self._response = name_response(self.formula_, offset)
            sites, sample_weight, offset, clusters = rows
        elif knots is not None:
            raise FedLassoError("knots are those of a formula; give one, or omit them")
        self._has_offset = offset is not None
        if isinstance(X, Federation):
            if any(given is not None for given in (y, sites, sample_weight, offset, clusters)):
                raise FedLassoError("a federation has its own responses and sites; pass it alone")
            federation = X
            self._accept(federation)
            settings = self._settings(federation.columns)
        else:
            X, response = self._check(X, y)
            weights = self._weigh(response, sample_weight)
            extra = {"weights": weights, "offset": offset, "cluster": clusters}
            notices += self._notices()
            records = TableRows.of(X, response, self.family, sites, extra, self._describe_constant)
            federation, settings = self._open(records, notices.append)
            self._leaks = federation.leaks
        ledger = metered(federation)
        model = fit_model(ledger, settings)
        notices += [f"warning: {text}" for text in warn_of_fit(model, "y")]
        # Second moments are dropped: a pickle must not disclose more than the model.
        self._sites = SitesAtHand(ledger, model, ledger.costs)
        self._error = None
        self._path = path_by_moments(model)
        self._found = {}
        self._stored: ModelDocument | None = None
        self.model_: Model = replace(model, fit=replace(model.fit, evidence=None))
        factors = model.scaling.factors[: len(model.columns)]
        self._scales = np.divide(1, factors, out=np.zeros(len(factors)), where=factors > 0)
        self._means = model.scaling.means[: len(model.columns)]
        self.columns_ = self.model_.columns
        self.coef_ = self.model_.coefficients
        self.intercept_: Any = self.model_.intercept
        self.certificate_ = self.model_.fit.certificate
        self.ledger_ = self.model_.costs
        self.penalty_ = self.model_.penalty
        self.trust_ = to_trust_document(self.model_)
        self.n_iter_ = self.model_.fit.rounds
        self._finish(federation, y)
        notices += [f"warning: {text}" for text in warn_of_leak(self._to_document(), self._leaks)]
        for notice in dict.fromkeys(notices):
            kind, _, text = notice.partition(": ")
            if kind in ("warning", "notice"):
                warnings.warn(in_python(text), FedLassoWarning, stacklevel=2)
        return self

    def predict(self, X: Any, offset: Any = None, s: float | str | None = None) -> Array:
        """Return the expected response of every row, by the model at the penalty `s`.

        `s` is "min", "1se" or a number, as in `coef_at`; by default the estimator's own model. A
        model with an offset requires that of the rows.
        """
        return self.family.loss.mean(self._score(X, offset, s))

    def to_folder(self, path: Any, target: str | None = None) -> None:
        """Write the folder of a model: card.html, model.json and CSV files.

        It is the folder of ``fedlasso fit --no-compare``: what needs the records once more, such as
        the assessment, is not in it. `fedlasso predict` reads it.

        Parameters
        ----------
        path : new or empty folder
        target : name of the response; by default that of y or of the formula, else y, or time for
            survival
        """
        check_is_fitted(self)
        folder = ModelFolder(Path(path))
        folder.check()
        document = self._to_summary(target)
        if self._stored is not None:
            write_model(folder.path, document)
            return
        texts = warn_of_leak(document, self._leaks)
        texts += warn_of_fit(self.model_, document.schema.target)
        write_model(folder.path, replace(document, warnings=tuple(texts)))

    @classmethod
    def from_folder(cls, path: Any) -> Self:
        """Return the fitted estimator of a model folder, without `model_` and `ledger_`.

        `fedlasso fit`, `fedlasso federation fit` and `to_folder` write such folders.
        """
        return read_estimator(cls, path)

    def _restore_response(self, schema: Schema) -> None:
        """Set what only this estimator has, from the schema of a model folder."""

    def _repr_html_(self) -> str:
        return describe_in_html(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": describe_in_html(self)}

    def _to_document(self, target: str | None = None) -> ModelDocument:
        if self._stored is not None:
            return self._stored
        schema = describe(self, target)
        return make_document(self.model_, schema, getattr(self, "missing", "refuse"), self._path)

    def _to_summary(self, target: str | None = None) -> ModelDocument:
        """Return the document with the error that `fedlasso fit` prints; it takes some seconds."""
        document = self._to_document(target)
        if self._sites is not None:
            self._error = with_nested_error(document, self.model_, self._sites.nested).error
        return document if self._error is None else replace(document, error=self._error)

    def _name_classes(self) -> tuple[str, ...]:
        """Return the texts of two classes, the modelled one last, if they are not 0 and 1."""
        return ()

    def _notices(self) -> list[str]:
        """Return notices about the response."""
        return []

    def _accept(self, federation: Federation) -> None:
        """Take feature names and counts from a federation."""
        names = tuple(name for name in federation.columns if name != INTERCEPT)
        self.n_features_in_ = len(names)
        if names != tuple(f"x{k}" for k in range(self.n_features_in_)):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _finish(self, federation: Federation, y: Any) -> None:
        """Add attributes that only this estimator has."""

    def _check(self, X: Any, y: Any) -> tuple[Any, dict[str, Array]]:
        """Return the validated table, and the columns of the response by role."""
        X, y = self._check_table(X, y, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        for problem, what in self.family.find_problems("target", y):
            if problem.any():
                raise FedLassoError(f"y {what.format(rows=count_rows(int(problem.sum())))}")
        return X, {"target": y}

    def _check_table(self, X: Any, *y: Any, **how: Any) -> Any:
        """Return a validated table, and its response if given; data frames become Arrow tables."""
        coded = bool(read_codes(self.na)) or len(self.categorical) > 0 or bool(self._source)
        if is_frame(X) and (coded or not holds_measurements(X)):
            validate_data(self, X, *y, skip_check_array=True)
            table = to_arrow(X)
            return (table, check_X_y(np.zeros((len(table), 1)), *y, **how)[1]) if y else table
        if coded:
            raise FedLassoError("na and categorical are for data frames, with names of columns")
        return self._check_array(X, *y, **how)

    def _check_array(self, X: Any, *y: Any, **how: Any) -> Any:
        how |= {"dtype": np.float64, "accept_sparse": ("csc", "csr")}
        how["ensure_all_finite"] = True if hasattr(X, "tocsr") else "allow-nan"
        return validate_data(self, X, *y, **how)

    def _check_names(self, X: Any) -> None:
        """Refuse a table whose columns are not those of the fit, in words that name one."""
        if self.schema_ is not None and not is_frame(X):
            raise FedLassoError(
                "the model was fitted to a data frame with text columns; give a data frame with "
                f"the columns {', '.join(repr(column.name) for column in self.schema_.columns)}"
            )
        known = list(getattr(self, "feature_names_in_", ()))
        names = list(getattr(X, "column_names", None) or getattr(X, "columns", known))
        if known and names != known and sorted(map(str, names)) == sorted(known):
            k = next(k for k, name in enumerate(names) if name != known[k])
            raise FedLassoError(
                "The feature names should match those that were passed during fit.\n"
                "Feature names must be in the same order as they were in fit.\n"
                f"Column {k} is {names[k]!r}, and was {known[k]!r}; use X[model.feature_names_in_]"
            )

    def _weigh(self, response: dict[str, Array], sample_weight: Any) -> Any:
        """Return the weights of the rows, if any."""
        return sample_weight

    def _describe_constant(self, y: Array) -> str:
        """Return why no model can be fitted to these responses."""
        return self.family.constant

    def _score(self, X: Any, offset: Any = None, s: float | str | None = None) -> Array:
        check_is_fitted(self)
        if self.schema_ is not None and self.schema_.formula is not None:
            offset = take_column(X, offset) if isinstance(offset, str) else offset
            X = take_columns(X, [column.name for column in self.schema_.columns])
        if offset is None and self._has_offset:
            raise FedLassoError("the model was fitted with an offset; give offset, or zeros")
        self._check_names(X)
        if self.schema_ is None:
            X = self._check_array(X, reset=False)
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
            rows = {"X": np.arange(len(X))}
            X = encode_rows(Frame(to_arrow(X), rows, self.schema_.na), self.schema_)
        holes = np.isnan(X) if isinstance(X, np.ndarray) else np.zeros(0)
        if holes.any():
            if self.missing == "refuse":
                name = self.columns_[int(holes.any(axis=0).argmax())]
                count = count_rows(int(holes.any(axis=1).sum()))
                remedy = "fill them, or fit with missing='mean'"
                raise FedLassoError(
                    f"Input X contains NaN: {name!r} is missing in {count}; {remedy}"
                )
            X = np.where(holes, self._means, X)
        model = self.model_at(s)
        score: Array = X @ model.coef + model.intercept
        return score if offset is None else score + one_per_row("offset", offset, X.shape[0])

    def _open(self, records: TableRows, notify: Notify) -> tuple[OpenedSites, Settings]:
        """Return records as sites, and the settings with the names of their columns."""
        if self.missing not in ("refuse", "mean"):
            raise FedLassoError(f"missing is {self.missing!r}; use 'refuse' or 'mean'")
        columns = getattr(self, "feature_names_in_", None)
        if isinstance(records.X, np.ndarray) or hasattr(records.X, "tocsr"):
            federation = records.open(columns, self._settings(()), self.missing, notify)
            return federation, self._settings(federation.columns)
        names = tuple(records.X.schema.names)
        settings = self._settings(names)
        categorical = names_of("categorical", self.categorical, names)
        how = {
            "missing": self.missing,
            "na": read_codes(self.na),
            "categorical": categorical,
            "levels": read_orders(categorical, self.categorical),
            "min_level": self.min_level,
        } | self._source
        federation, self.schema_ = records.open_frame(settings, how, notify)
        return federation, encode_settings(settings, self.schema_)

    def _settings(self, columns: Iterable[str]) -> Settings:
        """Return the parameters as settings, with columns by name."""
        for name in ("uploads", "round_trips", "cv", "epochs", "seed", "min_level"):
            value = getattr(self, name)
            optional = name in ("uploads", "round_trips", "cv") and value is None
            if not (optional or isinstance(value, Integral)):
                raise FedLassoError(f"{name} is {value!r}; give a whole number")
        if self.penalty is not None and not isinstance(self.penalty, Real):
            raise FedLassoError(f"penalty is {self.penalty!r}; give a number, or None to tune it")
        columns = tuple(name for name in columns if name != INTERCEPT)
        values = {RENAMED.get(name, name): value for name, value in self.get_params().items()}
        values |= {name: names_of(name, values[name], columns) for name in ("keep", "intervals")}
        given = () if self.groups is None else self.groups
        if isinstance(given, str):
            raise FedLassoError(f"groups is {given!r}; give a list, as ['ward', ('bmi', 'bmi2')]")
        groups = [[group] if is_one(group) else group for group in given]
        values["groups"] = tuple(names_of("groups", group, columns) for group in groups)
        for name, example in _BY_COLUMN.items():
            by_column = getattr(self, name) or {}
            if not isinstance(by_column, Mapping):
                raise FedLassoError(f"{name} is {by_column!r}; give a dict, as {example}")
            # Column names may not be known yet.
            named = names_of(name, by_column, columns)
            values[name] = dict(zip(named, by_column.values(), strict=bool(columns)))
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
