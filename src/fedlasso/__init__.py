"""One sparse regression (Lasso) across sites that cannot share records."""

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation, InProcess, Ledger, Site
from fedlasso.fit import Certificate, Fit, Status, certify, fit
from fedlasso.path import Explorer, PathPoint
from fedlasso.procedures import REGISTRY, find_procedure

__version__ = "0.1.0"

__all__ = [
    "REGISTRY",
    "Certificate",
    "Explorer",
    "FedLassoError",
    "Federation",
    "Fit",
    "InProcess",
    "Ledger",
    "PathPoint",
    "Site",
    "Status",
    "certify",
    "find_procedure",
    "fit",
]
