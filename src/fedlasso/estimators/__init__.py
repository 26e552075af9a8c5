"""scikit-learn's face of models: one estimator per kind of response."""

from fedlasso.estimators.classifier import FederatedLogisticLasso as FederatedLogisticLasso
from fedlasso.estimators.counts import FederatedPoissonLasso as FederatedPoissonLasso
from fedlasso.estimators.linear import FederatedLasso as FederatedLasso
from fedlasso.estimators.survival import FederatedCoxLasso as FederatedCoxLasso
