"""scikit-learn's Lasso as exact as coordinate descent can be."""

import warnings

from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

SWEEPS = 10_000


def swept_lasso(X: ArrayLike, y: ArrayLike, lam: float, *, intercept: bool = False) -> Lasso:
    """Swept until nothing but rounding moves; no tolerance decides when that is."""
    model = Lasso(alpha=lam, fit_intercept=intercept, tol=0.0, max_iter=SWEEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)
