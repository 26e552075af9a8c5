"""A site: its records, their views and splits, its memory, and the questions it answers."""

from fedlasso.sites.memory import Memory
from fedlasso.sites.questions import (
    ErrorSums,
    FitAt,
    FitSums,
    GradientAt,
    GradientSum,
    LargestEigenvalue,
    MeanEigenvalue,
    ResponseSquares,
    Rows,
    ValidationErrors,
)
from fedlasso.sites.site import Site
from fedlasso.sites.splits import folds, halves, holdout
from fedlasso.sites.views import Scaling, Viewed, standardise

__all__ = [
    "ErrorSums",
    "FitAt",
    "FitSums",
    "GradientAt",
    "GradientSum",
    "LargestEigenvalue",
    "MeanEigenvalue",
    "Memory",
    "ResponseSquares",
    "Rows",
    "Scaling",
    "Site",
    "ValidationErrors",
    "Viewed",
    "folds",
    "halves",
    "holdout",
    "standardise",
]
