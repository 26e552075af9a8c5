"""Pure numerics: losses, penalties, designs, exact local updates and paths. No federation here."""

from fedlasso.numerics.bounds import Bounds
from fedlasso.numerics.certificate import (
    Certificate,
    certify_loss,
    duality_gap,
    feasible_scale,
    settle_slopes,
    stationarity,
)
from fedlasso.numerics.designs import Dense, Design
from fedlasso.numerics.local_steps import dual_steps, local_sweeps
from fedlasso.numerics.losses import FAMILIES, LOSSES, Family, Loss, RowLoss, find_loss
from fedlasso.numerics.machine import Array, one_thread
from fedlasso.numerics.path import LassoPath, Reference, lasso_path, penalty_grid, solve_reference
from fedlasso.numerics.penalties import (
    L1,
    PENALTIES,
    ElasticNet,
    Penalty,
    PenaltyForm,
    find_penalty,
    soft_threshold,
)
from fedlasso.numerics.response import Response
from fedlasso.numerics.sample import LeastSquares, Sample, make_sample
from fedlasso.numerics.secant import Secants
from fedlasso.numerics.table import Standardised, Table

__all__ = [
    "FAMILIES",
    "L1",
    "LOSSES",
    "PENALTIES",
    "Array",
    "Bounds",
    "Certificate",
    "Dense",
    "Design",
    "ElasticNet",
    "Family",
    "LassoPath",
    "LeastSquares",
    "Loss",
    "Penalty",
    "PenaltyForm",
    "Reference",
    "Response",
    "RowLoss",
    "Sample",
    "Secants",
    "Standardised",
    "Table",
    "certify_loss",
    "dual_steps",
    "duality_gap",
    "feasible_scale",
    "find_loss",
    "find_penalty",
    "lasso_path",
    "local_sweeps",
    "make_sample",
    "one_thread",
    "penalty_grid",
    "settle_slopes",
    "soft_threshold",
    "solve_reference",
    "stationarity",
]
