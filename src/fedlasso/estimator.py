"""FederatedLasso, a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, InProcess
from fedlasso.models import Model, Settings, fit_model
from fedlasso.numerics import Array
from fedlasso.sites import Site, check_two_rows


@dataclass(eq=False, repr=False)
class FederatedLasso(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """One Lasso across sites that keep their records, tuned and told on the original scale.

    Parameters
    ----------
    goal : {"prediction", "selection", "objective"}, optional
        What the model is for: prediction by default. With a penalty or a procedure it is the pooled
        Lasso, whatever the goal.
    penalty : float, optional
        On the standardised scale, as scikit-learn's ``alpha``; chosen by cross-validation by
        default.
    procedure : str, optional
        A name from ``fedlasso.REGISTRY``, run at the penalty instead of the goal's own procedure.
    epochs : int
        Local epochs per round of that procedure.
    validation : float or "given", optional
        Share of every site's rows that chooses instead of folds, or the samples that a federation's
        sites were given.
    cv : int, optional
        Folds of the cross-validation; 10 by default, fewer where they cost too much.
    uploads : int, optional
        Vectors of p numbers that each site may send in all; never more are sent. By default what
        the plan needs, within 64 MiB.
    rule : {"min", "1se"}, optional
        How the penalty or candidate is chosen.
    tol : float
        Relative duality gap of a fit at one penalty.
    fit_intercept, standardize : bool
        Centre and scale, by sums that sites send.
    seed : int
        Of every split.

    Attributes
    ----------
    coef_, intercept_ : on the original scale
    certificate_ : distance to the best possible objective
    ledger_ : what passed between server and sites
    penalty_ : the penalty: given, or chosen on the path
    model_ : the whole fit

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from fedlasso import FederatedLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> hospital = np.arange(len(y)) % 3
    >>> model = FederatedLasso(penalty=1.0).fit(X, y, sites=hospital)
    >>> int((model.coef_ != 0).sum()), model.ledger_.sites
    (7, ('0', '1', '2'))
    """

    goal: str | None = None
    _: KW_ONLY
    penalty: float | None = None
    procedure: str | None = None
    epochs: int = 1
    validation: float | str | None = None
    cv: int | None = None
    uploads: int | None = None
    rule: str | None = None
    tol: float = 1e-12
    fit_intercept: bool = True
    standardize: bool = True
    seed: int = 0

    def fit(self, X: Any, y: Any = None, sites: Any = None) -> FederatedLasso:
        """Fit to a table whose rows belong to sites, or to a federation.

        Parameters
        ----------
        X : table (NumPy, pandas, Polars, scipy sparse), or a federation
        y : responses; none with a federation
        sites : one label per row; one site by default
        """
        federation: Federation
        if isinstance(X, Federation):
            if y is not None or sites is not None:
                raise FedLassoError("a federation has its own responses and sites; give it alone")
            federation = X
            self.n_features_in_ = len(federation.columns)
            if federation.columns != tuple(f"x{k}" for k in range(self.n_features_in_)):
                self.feature_names_in_ = np.array(federation.columns, dtype=object)
        else:
            federation = self._split(X, y, sites)
        # Second moments are not kept: a pickle of the model must not tell more than the model.
        self.model_: Model = replace(fit_model(federation, self._settings()), folded=None)
        self.coef_ = self.model_.coefficients
        self.intercept_ = self.model_.intercept
        self.certificate_ = self.model_.fit.certificate
        self.ledger_ = self.model_.costs
        self.penalty_ = self.model_.penalty
        self.n_iter_ = self.model_.fit.rounds
        return self

    def predict(self, X: Any) -> Array:
        """Predictions, one per row."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), reset=False)
        return self.model_.predict(X)

    def _split(self, X: Any, y: Any, sites: Any) -> InProcess:
        X, y = validate_data(
            self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64, y_numeric=True
        )
        y = np.asarray(y, dtype=np.float64)
        if X.shape[0] < 2:
            raise ValueError("1 sample is too few; give at least 2 rows (n_samples=1)")
        names = getattr(self, "feature_names_in_", None)
        site = partial(Site, columns=names, raw=True, copy=False)
        if sites is None:
            return InProcess([site("all", X, y)])
        labels = check_array(sites, ensure_2d=False, dtype=None)
        if labels.shape != y.shape:
            raise FedLassoError(
                f"sites has shape {labels.shape} but X has {len(y)} rows; give one label per row"
            )
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        called, place = np.unique(labels.astype(str), return_inverse=True)
        rows = [np.flatnonzero(place == j) for j in range(len(called))]
        for name, own in zip(called, rows, strict=True):
            check_two_rows(str(name), len(own))
        parts = zip(called, rows, strict=True)
        return InProcess([site(str(name), _part(X, own), y[own]) for name, own in parts])

    def _settings(self) -> Settings:
        for name in ("uploads", "epochs", "seed"):
            if name == "uploads" and self.uploads is None:
                continue
            if not isinstance(getattr(self, name), Integral):
                raise FedLassoError(f"{name} is {getattr(self, name)!r}; give a whole number")
        if self.penalty is not None and not isinstance(self.penalty, Real):
            raise FedLassoError(f"penalty is {self.penalty!r}; give a number, or None to choose it")
        given = self.get_params()
        given["intercept"] = given.pop("fit_intercept")
        given["standardise"] = given.pop("standardize")
        return Settings(**given)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _part(X: Any, rows: Any) -> Any:
    """Some rows, in the order that a site keeps them in, with one copy."""
    if hasattr(X, "tocsc"):
        return X[rows].tocsc()
    part = np.empty((len(rows), X.shape[1]), order="F")
    np.take(X, rows, axis=0, out=part)
    return part
