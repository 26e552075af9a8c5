"""FederatedPoissonLasso, a scikit-learn estimator of counts."""

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from fedlasso.estimators.shared import WithIntercept
from fedlasso.families import Family
from fedlasso.families.poisson import Poisson


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

    family: ClassVar[Family] = Poisson()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the deviance that is explained, as scikit-learn's does."""
        rates = self.predict(X)
        return float(d2_tweedie_score(y, rates, sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
