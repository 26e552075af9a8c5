"""The Lasso at one or many penalties, solved exactly and certified by its duality gap."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedlasso.numerics.certificate import duality_gap, stationarity
from fedlasso.numerics.homotopy import ActiveColumns, advance, homotopy_at, refine
from fedlasso.numerics.local_steps import local_sweeps
from fedlasso.numerics.machine import Array, one_thread
from fedlasso.numerics.penalties import L1
from fedlasso.numerics.repair import feature_sign_search
from fedlasso.numerics.sample import LeastSquares

# The duality gap to reach, as a fraction of ||y||^2 / (2m).
GAP = 1e-10
# Maximum number of sweeps of coordinate descent, the last fallback.
SWEEPS = 2000


@dataclass(frozen=True)
class LassoPath:
    """Fits at decreasing penalties."""

    penalties: Array  # (L,)
    coefficients: Array  # (p, L)
    gaps: Array  # (L,), relative duality gaps, from residuals recomputed from X
    knots: int  # number of changes of the active set
    fallbacks: int  # number of penalties at which the homotopy alone did not reach `GAP`

    @property
    def met(self) -> NDArray[np.bool_]:
        """Which fits have reached `GAP`."""
        return self.gaps <= GAP


def penalty_grid(f: LeastSquares, count: int = 30, ratio: float = 1e-3) -> Array:
    """Return `count` log-spaced penalties from lambda_max = ||X'y||_inf / m down to `ratio` of it.

    All are zero if X'y is: then b = 0 solves the Lasso at every penalty.
    """
    largest = float(np.abs(f.score).max(initial=0.0))
    return np.asarray(largest * np.logspace(0.0, np.log10(ratio), count))


def lasso_path(f: LeastSquares, penalties: Array) -> LassoPath:
    """Solve the Lasso at nonnegative penalties in decreasing order, by the homotopy method.

    Where the certified gap exceeds `GAP` (nearly dependent columns, ties), a feature-sign search
    continues from that solution, then coordinate descent. The path never fails: read `met`.
    """
    penalties = np.array(penalties, dtype=np.float64)
    if not np.isfinite(penalties).all() or (penalties < 0).any() or (np.diff(penalties) > 0).any():
        raise ValueError("penalties must be finite, not negative and in decreasing order.")
    gram = f.gram if f.prefers_gram else np.empty((0, 0))
    D = ActiveColumns.of(f.columns, gram, f.design.norms)
    S = homotopy_at(D, np.abs(f.score).max(initial=0.0), np.zeros(f.p), f.score, f.m)
    coefficients = np.zeros((f.p, penalties.size), order="F")
    gaps = np.zeros(penalties.size)
    knots = fallbacks = 0
    for j, lam in enumerate(penalties):
        if lam < S.lam[0]:
            knots += advance(D, S, penalties[j : j + 1])
            refine(D, S, f.y)
        b = S.coefficients
        gap = relative_gap(f, b, lam)
        if not gap <= GAP:
            fallbacks += 1
            b, gap = fall_back(f, lam, b)
            S = homotopy_at(D, lam, b, -f.gradient(b), f.m)
        coefficients[:, j] = b
        gaps[j] = gap
    return LassoPath(penalties, coefficients, gaps, knots, fallbacks)


@one_thread()
def relative_gap(f: LeastSquares, b: Array, lam: float) -> float:
    """Return the duality gap at b as a fraction of ||y||^2 / (2m)."""
    r = f.residual(b)
    gap = duality_gap(float(r @ r), float(r @ f.y), f.y_ss, -f.slope(r), b, L1(lam), f.m)
    scale = f.y_ss / (2 * f.m)
    if scale == 0.0:
        return 0.0 if gap == 0.0 else np.inf
    return gap / scale


def fall_back(f: LeastSquares, lam: float, b: Array) -> tuple[Array, float]:
    """Return better coefficients than b, with their relative gap."""
    b = feature_sign_search(f, lam, b)
    gap = relative_gap(f, b, lam)
    if not gap <= GAP:
        swept = local_sweeps(LeastSquares(f.design, f.y, gram=False), b[:, None], lam, SWEEPS)[:, 0]
        swept_gap = relative_gap(f, swept, lam)
        if not gap <= swept_gap:
            return swept, swept_gap
    return b, gap


@dataclass(frozen=True)
class Reference:
    """A minimizer of the Lasso objective."""

    coefficients: Array
    objective: float
    stationarity: float  # ||b - S(b - grad f(b), lam)||_inf
    gap: float  # duality gap as a fraction of ||y||^2 / (2m)
    knots: int  # number of changes of the active set from lambda_max on
    method: Literal["homotopy", "fallback"]
    met: bool  # whether the stationarity norm is within the tolerance


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
    objective = f.value(b) + penalty.value(b)
    gap = relative_gap(f, b, lam)
    return Reference(b, objective, reached, gap, path.knots, method, met=reached <= tol)
