"""scikit-learn's face of models: one estimator per kind of response."""

from fedlasso.estimators.classifier import FederatedLogisticLasso
from fedlasso.estimators.counts import FederatedPoissonLasso
from fedlasso.estimators.linear import FederatedLasso
from fedlasso.estimators.survival import FederatedCoxLasso

__all__ = [
    "FederatedCoxLasso",
    "FederatedLasso",
    "FederatedLogisticLasso",
    "FederatedPoissonLasso",
]
