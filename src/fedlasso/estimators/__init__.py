"""scikit-learn estimators, one per response family."""

from fedlasso.estimators.glm import FederatedLasso as FederatedLasso
from fedlasso.estimators.glm import FederatedLogisticLasso as FederatedLogisticLasso
from fedlasso.estimators.glm import FederatedPoissonLasso as FederatedPoissonLasso
from fedlasso.estimators.survival import FederatedCoxLasso as FederatedCoxLasso
