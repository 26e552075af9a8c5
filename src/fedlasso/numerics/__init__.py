"""Pure numerics: losses, penalties, designs, exact local updates and paths. No federation here."""

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.certificate import Certificate
from fedlasso.numerics.designs import Dense, Design
from fedlasso.numerics.dual_steps import dual_steps
from fedlasso.numerics.least_squares import LeastSquares, make_sample
from fedlasso.numerics.losses import LOSSES, Loss, find_loss
from fedlasso.numerics.objective import duality_gap, stationarity
from fedlasso.numerics.path import LassoPath, lasso_path, penalty_grid
from fedlasso.numerics.penalties import L1, PENALTIES, Penalty, find_penalty, soft_threshold
from fedlasso.numerics.reference import Reference, solve_reference
from fedlasso.numerics.sample import Sample
from fedlasso.numerics.secant import Secants
from fedlasso.numerics.standardised import Standardised
from fedlasso.numerics.sweeps import local_sweeps
from fedlasso.numerics.table import Table

__all__ = [
    "L1",
    "LOSSES",
    "PENALTIES",
    "Array",
    "Certificate",
    "Dense",
    "Design",
    "LassoPath",
    "LeastSquares",
    "Loss",
    "Penalty",
    "Reference",
    "Sample",
    "Secants",
    "Standardised",
    "Table",
    "dual_steps",
    "duality_gap",
    "find_loss",
    "find_penalty",
    "lasso_path",
    "local_sweeps",
    "make_sample",
    "penalty_grid",
    "soft_threshold",
    "solve_reference",
    "stationarity",
]
