"""What the estimators share: their parameters, and tables that are taken apart into sites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, InProcess
from fedlasso.models import Model, Settings, fit_model, tell_trust
from fedlasso.numerics import Array, Family
from fedlasso.sites import INTERCEPT, Site, check_two_rows
from fedlasso.tables import Responses

# What scikit-learn calls otherwise than settings do.
_RENAMED = {"fit_intercept": "intercept", "standardize": "standardise"}


@dataclass(eq=False, repr=False)
class FederatedEstimator(BaseEstimator):  # type: ignore[misc]
    """A sparse model across sites that keep their records: what all kinds of response have."""

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

    def _fit(
        self, X: Any, y: Any, sites: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> Federation:
        """Fit to a table whose rows belong to sites, or to a federation, which is returned."""
        federation: Federation
        if isinstance(X, Federation):
            if any(given is not None for given in (y, sites, sample_weight, offset)):
                raise FedLassoError("a federation has its own responses and sites; give it alone")
            federation = X
            names = tuple(name for name in federation.columns if name != INTERCEPT)
            self.n_features_in_ = len(names)
            if names != tuple(f"x{k}" for k in range(self.n_features_in_)):
                self.feature_names_in_ = np.array(names, dtype=object)
        else:
            X, responses = self._check(X, y)
            responses = _with_rows(responses, sample_weight, offset)
            federation = self._split(X, responses, sites)
        settings = self._settings(federation.columns)
        # Second moments are not kept: a pickle of the model must not tell more than the model.
        self.model_: Model = replace(fit_model(federation, settings), folded=None)
        self.coef_ = self.model_.coefficients
        self.intercept_: Any = self.model_.intercept
        self.certificate_ = self.model_.fit.certificate
        self.ledger_ = self.model_.costs
        self.penalty_ = self.model_.penalty
        self.trust_ = tell_trust(self.model_)
        self.n_iter_ = self.model_.fit.rounds
        return federation

    def _check(self, X: Any, y: Any) -> tuple[Any, Responses]:
        """Return a table and its responses as the loss takes them."""
        X, y = validate_data(
            self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64, y_numeric=True
        )
        return X, Responses(np.asarray(y, dtype=np.float64))

    def _check_varies(self, y: Array) -> None:
        """Refuse responses that no model can be told by."""

    def _score(self, X: Any, offset: Any = None) -> Array:
        """Return linear predictors, one per row."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        score = self.model_.score(X)
        return score if offset is None else score + _one_per_row("offset", offset, X.shape[0])

    def _split(self, X: Any, responses: Responses, sites: Any) -> InProcess:
        # As elsewhere in scikit-learn, a row of weight zero is as good as absent.
        if responses.weights is not None and (responses.weights == 0).any():
            present = np.flatnonzero(responses.weights != 0)
            X = X.tocsr()[present] if hasattr(X, "tocsr") else X[present]
            if not len(present):
                raise FedLassoError("every weight is zero; give positive weights")
            if sites is not None:
                sites = np.asarray(sites)[present]
            responses = responses.take(present)
        self._check_varies(responses.y)
        rows = X.shape[0]
        if rows < 2:
            raise ValueError(f"{rows} sample is too few; give at least 2 rows (n_samples={rows})")
        settings = self._settings(())
        site = partial(
            Site,
            columns=getattr(self, "feature_names_in_", None),
            loss=settings.loss,
            intercept=settings.intercept,
            effects=settings.site_effects,
            raw=True,
            copy=False,
        )

        def make(name: str, X: Any, own: Responses) -> Site:
            return site(name, X, own.y, weights=own.weights, offset=own.offset)

        if sites is None:
            return InProcess([make("all", X, responses)])
        labels = check_array(sites, ensure_2d=False, dtype=None)
        if labels.shape != (rows,):
            raise FedLassoError(
                f"sites has shape {labels.shape} but X has {rows} rows; give one label per row"
            )
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        called, place = np.unique(labels.astype(str), return_inverse=True)
        parts = [np.flatnonzero(place == j) for j in range(len(called))]
        for name, own in zip(called, parts, strict=True):
            check_two_rows(str(name), len(own))
        return InProcess(
            [
                make(str(name), _part(X, own), responses.take(own))
                for name, own in zip(called, parts, strict=True)
            ]
        )

    def _settings(self, columns: Iterable[str]) -> Settings:
        """Return the parameters as settings, the columns to keep by their names."""
        for name in ("uploads", "cv", "epochs", "seed"):
            if name in ("uploads", "cv") and getattr(self, name) is None:
                continue
            if not isinstance(getattr(self, name), Integral):
                raise FedLassoError(f"{name} is {getattr(self, name)!r}; give a whole number")
        if self.penalty is not None and not isinstance(self.penalty, Real):
            raise FedLassoError(f"penalty is {self.penalty!r}; give a number, or None to choose it")
        given = self.get_params()
        known = {own.name for own in fields(Settings)}
        told = {_RENAMED.get(name, name): value for name, value in given.items()}
        told = {name: value for name, value in told.items() if name in known}
        columns = tuple(name for name in columns if name != INTERCEPT)
        keep = _names_of("keep", self.keep, columns)
        intervals = _names_of("intervals", self.intervals, columns)
        bounds = self.bounds or {}
        if not isinstance(bounds, Mapping):
            raise FedLassoError(
                f"bounds is {bounds!r}; give a range per column, as {{'age': (0, None)}}"
            )
        # Without columns nothing is known of them yet.
        bounded = _names_of("bounds", bounds, columns)
        ranges = dict(zip(bounded, bounds.values(), strict=bool(columns)))
        named = {"keep": keep, "intervals": intervals, "bounds": ranges}
        return Settings(**told | {"family": self.family} | named)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False)
class WithIntercept(FederatedEstimator):
    """An estimator whose response has a level: an intercept for all sites, or one for each."""

    _: KW_ONLY
    fit_intercept: bool = True
    site_effects: bool = False


def _names_of(what: str, given: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return columns by their names, where some are given by their numbers."""
    if isinstance(given, str):
        raise FedLassoError(f"{what} is {given!r}; give a list of columns, by names or numbers")
    named = []
    for column in given if columns else ():
        if isinstance(column, Integral):
            place = int(column)
            if not 0 <= place < len(columns):
                raise FedLassoError(f"{what}: there is no column {place}; X has {len(columns)}")
            named.append(columns[place])
        else:
            named.append(str(column))
    return tuple(named)


def _one_per_row(what: str, values: Any, rows: int) -> Array:
    """Return one number per row, checked."""
    numbers: Array = check_array(
        values, ensure_2d=False, dtype=np.float64, input_name=what, ensure_min_samples=0
    )
    if numbers.shape != (rows,):
        raise ValueError(
            f"{what} has shape {numbers.shape} but X has {rows} rows; give one number per row"
        )
    return numbers


def _with_rows(responses: Responses, sample_weight: Any, offset: Any) -> Responses:
    """Return responses with the weights and offsets that were given beside them."""
    rows = len(responses.y)
    if sample_weight is not None:
        responses = replace(responses, weights=_one_per_row("sample_weight", sample_weight, rows))
    if offset is not None:
        responses = replace(responses, offset=_one_per_row("offset", offset, rows))
    return responses


def _part(X: Any, rows: Any) -> Any:
    """Some rows, in the order that a site keeps them in, with one copy."""
    if hasattr(X, "tocsc"):
        return X[rows].tocsc()
    part = np.empty((len(rows), X.shape[1]), order="F")
    np.take(X, rows, axis=0, out=part)
    return part
