"""Pure numerics of the Lasso: objective, exact local updates, exact path. No federation here."""

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.dual_steps import dual_steps
from fedlasso.numerics.least_squares import LeastSquares
from fedlasso.numerics.objective import (
    duality_gap,
    objective,
    pooled_objective,
    soft_threshold,
    stationarity,
)
from fedlasso.numerics.path import LassoPath, lasso_path, penalty_grid
from fedlasso.numerics.reference import Reference, solve_reference
from fedlasso.numerics.secant import Secants
from fedlasso.numerics.standardised import Standardised
from fedlasso.numerics.sweeps import local_sweeps
from fedlasso.numerics.table import Table

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
