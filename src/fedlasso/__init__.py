"""Sparse regression (the Lasso) across sites that cannot share records."""

from importlib import import_module
from typing import TYPE_CHECKING

from fedlasso.errors import FedLassoError, FedLassoWarning

if TYPE_CHECKING:
    from fedlasso.estimators import (
        FederatedCoxLasso,
        FederatedLasso,
        FederatedLogisticLasso,
        FederatedPoissonLasso,
    )
    from fedlasso.federation import Disclosure, Federation, InProcess, Ledger, Reply, Request
    from fedlasso.fitting import Fit, PathPoint, Status, certify, fit, fit_for, open_evidence
    from fedlasso.numerics import L1, Certificate, Design, Loss, Penalty
    from fedlasso.procedures import REGISTRY, Problem, Procedure, State, find_procedure
    from fedlasso.sites import Site

__version__ = "0.2.0"

__all__ = [
    "L1", "REGISTRY", "Certificate", "Design", "Disclosure", "FedLassoError", "FedLassoWarning",
    "FederatedCoxLasso", "FederatedLasso", "FederatedLogisticLasso", "FederatedPoissonLasso",
    "Federation", "Fit", "InProcess", "Ledger", "Loss", "PathPoint", "Penalty", "Problem",
    "Procedure", "Reply", "Request", "Site", "State", "Status", "certify", "find_procedure", "fit",
    "fit_for", "open_evidence",
]  # fmt: skip

# A subpackage is imported when one of its names is first used, so `import fedlasso` is fast.
_ROOMS = {
    "estimators": (
        "FederatedCoxLasso", "FederatedLasso", "FederatedLogisticLasso", "FederatedPoissonLasso",
    ),
    "federation": ("Disclosure", "Federation", "InProcess", "Ledger", "Reply", "Request"),
    "fitting": ("Fit", "PathPoint", "Status", "certify", "fit", "fit_for", "open_evidence"),
    "numerics": ("L1", "Certificate", "Design", "Loss", "Penalty"),
    "procedures": ("REGISTRY", "Problem", "Procedure", "State", "find_procedure"),
    "sites": ("Site",),
}  # fmt: skip
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fedlasso' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"fedlasso.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "sklearn":
            raise
        need = f"{name} requires scikit-learn: pip install 'fedlasso[fit]'"
        raise ModuleNotFoundError(need, name=error.name) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
