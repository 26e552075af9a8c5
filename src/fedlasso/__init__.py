"""One sparse regression (Lasso) across sites that cannot share records."""

from typing import TYPE_CHECKING

from fedlasso.errors import FedLassoError
from fedlasso.federation import Disclosure, Federation, InProcess, Ledger, Reply, Request
from fedlasso.fitting import Fit, GoalFit, PathPoint, Session, Status, certify, fit, fit_for
from fedlasso.numerics import L1, Certificate, Design, Loss, Penalty
from fedlasso.procedures import REGISTRY, Problem, Procedure, State, find_procedure
from fedlasso.sites import Site

if TYPE_CHECKING:
    from fedlasso.estimator import FederatedLasso

__version__ = "0.1.0"

__all__ = [
    "L1",
    "REGISTRY",
    "Certificate",
    "Design",
    "Disclosure",
    "FedLassoError",
    "FederatedLasso",
    "Federation",
    "Fit",
    "GoalFit",
    "InProcess",
    "Ledger",
    "Loss",
    "PathPoint",
    "Penalty",
    "Problem",
    "Procedure",
    "Reply",
    "Request",
    "Session",
    "Site",
    "State",
    "Status",
    "certify",
    "find_procedure",
    "fit",
    "fit_for",
]


def __getattr__(name: str) -> object:
    # The estimator brings scikit-learn along; those who do not use it need not wait for it.
    if name == "FederatedLasso":
        from fedlasso.estimator import FederatedLasso

        return FederatedLasso
    raise AttributeError(f"module 'fedlasso' has no attribute {name!r}")
