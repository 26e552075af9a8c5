"""scikit-learn's Lasso and elastic net as exact as coordinate descent can be."""

import warnings

from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso

SWEEPS = 10_000


def swept_lasso(X: ArrayLike, y: ArrayLike, lam: float, *, intercept: bool = False) -> Lasso:
    """Swept until nothing but rounding moves; no tolerance decides when that is."""
    model = Lasso(alpha=lam, fit_intercept=intercept, tol=0.0, max_iter=SWEEPS)
    return _fitted(model, X, y)


def swept_elastic_net(X: ArrayLike, y: ArrayLike, lam: float, ridge: float) -> ElasticNet:
    """The same with half a `ridge` times the coefficients' squares."""
    share = lam / (lam + ridge)
    model = ElasticNet(
        alpha=lam + ridge, l1_ratio=share, fit_intercept=False, tol=0.0, max_iter=SWEEPS
    )
    return _fitted(model, X, y)


def _fitted(model: Lasso, X: ArrayLike, y: ArrayLike) -> Lasso:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)
