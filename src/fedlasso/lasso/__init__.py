"""Pure numerics of the Lasso: objective, exact local updates, exact path. No federation here."""

from fedlasso.lasso.arrays import Array
from fedlasso.lasso.dual_steps import dual_steps
from fedlasso.lasso.least_squares import LeastSquares
from fedlasso.lasso.objective import (
    duality_gap,
    objective,
    pooled_objective,
    soft_threshold,
    stationarity,
)
from fedlasso.lasso.path import LassoPath, lasso_path, penalty_grid
from fedlasso.lasso.reference import Reference, solve_reference
from fedlasso.lasso.secant import Secants
from fedlasso.lasso.standardised import Standardised
from fedlasso.lasso.sweeps import local_sweeps
from fedlasso.lasso.table import Table

__all__ = [
    "Array",
    "LassoPath",
    "LeastSquares",
    "Reference",
    "Secants",
    "Standardised",
    "Table",
    "dual_steps",
    "duality_gap",
    "lasso_path",
    "local_sweeps",
    "objective",
    "penalty_grid",
    "pooled_objective",
    "soft_threshold",
    "solve_reference",
    "stationarity",
]
