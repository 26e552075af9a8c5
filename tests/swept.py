"""scikit-learn's Lasso as exact as coordinate descent can be."""

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from fedlasso.lasso import Array

SWEEPS = 10_000


def swept_lasso(X: Array, y: Array, lam: float, *, intercept: bool = False) -> Lasso:
    """Swept until nothing but rounding moves; no tolerance decides when that is."""
    model = Lasso(alpha=lam, fit_intercept=intercept, tol=0.0, max_iter=SWEEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)
