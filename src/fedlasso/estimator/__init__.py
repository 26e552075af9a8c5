"""The analyst's way in: a scikit-learn estimator, and models kept in a folder."""

from fedlasso.estimator.model import Model, Settings, fit_model
from fedlasso.estimator.regressor import FederatedLasso

__all__ = ["FederatedLasso", "Model", "Settings", "fit_model"]
