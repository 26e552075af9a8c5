"""The pooled problem's reference solution, with the diagnostics that say it is one."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedlasso.numerics.arrays import Array
from fedlasso.numerics.least_squares import LeastSquares
from fedlasso.numerics.objective import stationarity
from fedlasso.numerics.path import fall_back, lasso_path, relative_gap
from fedlasso.numerics.penalties import L1


@dataclass(frozen=True)
class Reference:
    """A minimizer of the Lasso objective.

    Attributes
    ----------
    coefficients : array (p,)
    objective : float
    stationarity : float
        ||b - S(b - grad f(b), lam)||_inf.
    gap : float
        Duality gap as a share of ||y||^2 / (2m).
    knots : int
        Changes of the active set on the way from lambda_max.
    method : {"homotopy", "fallback"}
    met : bool
        Whether the stationarity is within the tolerance asked for.
    """

    coefficients: Array
    objective: float
    stationarity: float
    gap: float
    knots: int
    method: Literal["homotopy", "fallback"]
    met: bool


def solve_reference(f: LeastSquares, lam: float, tol: float = 1e-9) -> Reference:
    """Minimize ||y - Xb||^2 / (2m) + lam |b|_1 until the stationarity norm is at most `tol`."""
    penalty = L1(lam)
    path = lasso_path(f, np.array([lam]))
    b = path.coefficients[:, 0]
    method: Literal["homotopy", "fallback"] = "fallback" if path.fallbacks else "homotopy"
    if method == "homotopy" and not stationarity(b, f.gradient(b), penalty) <= tol:
        method = "fallback"
        b, _ = fall_back(f, lam, b)
    reached = stationarity(b, f.gradient(b), penalty)
    return Reference(
        coefficients=b,
        objective=f.value(b) + penalty.value(b),
        stationarity=reached,
        gap=relative_gap(f, b, lam),
        knots=path.knots,
        method=method,
        met=reached <= tol,
    )
