"""FederatedPoissonLasso, a scikit-learn estimator of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from fedlasso.errors import FedLassoError
from fedlasso.estimators.shared import WithIntercept
from fedlasso.numerics import Array, Family, find_loss
from fedlasso.tables import Responses


@dataclass(eq=False, repr=False)
class FederatedPoissonLasso(RegressorMixin, WithIntercept):  # type: ignore[misc]
    """One sparse model of counts across sites that keep their records: Poisson regression.

    Parameters
    ----------
    goal, penalty, keep, l1_ratio, bounds, fdr, intervals, level, procedure, epochs, validation, cv,
    uploads, rule, tol,
    standardize, fit_intercept, site_effects, seed : as of `FederatedLasso`
        The penalty is chosen by held-out deviance. Selection and prediction differ in how
        it is chosen only: for selection it is the sparsest model within one standard error.

    Attributes
    ----------
    coef_, intercept_ : of the logarithm of the rate, on the original scale
    certificate_, ledger_, penalty_, model_ : as of `FederatedLasso`

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import FederatedPoissonLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> visits = rng.poisson(np.exp(0.5 + 0.8 * X[:, 0]))
    >>> model = FederatedPoissonLasso(penalty=0.3).fit(X, visits, sites=np.arange(300) % 3)
    >>> np.flatnonzero(model.coef_), bool((model.predict(X) > 0).all())
    (array([0]), True)
    """

    family: ClassVar[Family] = "poisson"

    def fit(
        self,
        X: Any,
        y: Any = None,
        sites: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> FederatedPoissonLasso:
        """Fit to a table whose rows belong to sites, or to a federation.

        Parameters
        ----------
        X : table (NumPy, pandas, Polars, scipy sparse), or a federation
        y : counts, zero or more; none with a federation
        sites : one label per row; one site by default
        sample_weight : how much each row counts; one by default
        offset : the logarithm of each row's exposure; zero by default
        """
        self._fit(X, y, sites, sample_weight, offset)
        return self

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Rates, one per row: the counts to expect."""
        return find_loss("poisson").mean(self._score(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the deviance that is explained, as scikit-learn's does."""
        rates = self.predict(X)
        return float(d2_tweedie_score(y, rates, sample_weight=sample_weight, power=1))

    def _check(self, X: Any, y: Any) -> tuple[Any, Responses]:
        X, responses = super()._check(X, y)
        negative = int((responses.y < 0).sum())
        if negative:
            raise FedLassoError(
                f"y is negative in {negative} rows; give counts, which begin at zero"
            )
        return X, responses

    def _check_varies(self, y: Array) -> None:
        if not y.any():
            raise FedLassoError("y is zero in every row, so there is nothing to fit")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
