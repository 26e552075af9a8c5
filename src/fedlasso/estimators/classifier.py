"""FederatedLogisticLasso, a scikit-learn classifier."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from fedlasso.errors import FedLassoError
from fedlasso.estimators.shared import WithIntercept
from fedlasso.families import Family
from fedlasso.families.binomial import Binomial
from fedlasso.federation import Federation
from fedlasso.numerics import Array


@dataclass(eq=False, repr=False)
class FederatedLogisticLasso(ClassifierMixin, WithIntercept):  # type: ignore[misc]
    """One sparse model of yes or no across sites that keep their records: logistic regression.

    Parameters
    ----------
    goal, penalty, keep, l1_ratio, bounds, fdr, intervals, level, procedure, epochs, validation, cv,
    uploads, rule, tol,
    standardize, fit_intercept, site_effects, seed : as of `FederatedLasso`
        The penalty is chosen by held-out deviance. Selection and prediction differ in how
        it is chosen only: for selection it is the sparsest model within one standard error.

    Attributes
    ----------
    classes_ : the two labels; coefficients are of the second one's log-odds
    coef_, intercept_ : of the log-odds, on the original scale; the first has one row
    certificate_, ledger_, penalty_, model_ : as of `FederatedLasso`

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from fedlasso import FederatedLogisticLasso
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> hospital = np.arange(len(y)) % 3
    >>> model = FederatedLogisticLasso(penalty=0.05).fit(X, y, sites=hospital)
    >>> model.predict_proba(X).shape, round(model.score(X, y), 2)
    ((569, 2), 0.96)
    """

    family: ClassVar[Family] = Binomial()

    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Log-odds of the second class, one per row."""
        return self._score(X, offset)

    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """Probabilities, one row per row and one column per class."""
        yes = self.family.loss.mean(self._score(X, offset))
        return np.column_stack([1 - yes, yes])

    def predict(self, X: Any, offset: Any = None) -> Any:
        """The likelier class of every row."""
        likelier = self._score(X, offset) > 0
        return self.classes_[likelier.astype(int)]

    def _check(self, X: Any, y: Any) -> tuple[Any, Array]:
        X, y = validate_data(self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        classes, places = np.unique(y, return_inverse=True)
        if kind != "binary":
            raise FedLassoError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}, with {len(classes)} classes; fit one class against the others"
            )
        self.classes_ = classes
        return X, places.astype(np.float64)

    def _describe_constant(self, y: Array) -> str:
        return f"holds one class, {str(self.classes_[int(y[0])])!r}, in every row"

    def _accept(self, federation: Federation) -> None:
        super()._accept(federation)
        self.classes_ = np.array([0, 1])

    def _finish(self, federation: Federation, y: Any) -> None:
        self.coef_ = self.coef_[None, :]
        self.intercept_ = np.array([self.intercept_])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
