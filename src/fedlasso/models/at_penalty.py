"""The fit at one penalty, and the penalty that settings ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import numpy as np

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import Federation
from fedlasso.fitting import Fit, fit
from fedlasso.fitting.plan import vectors_of
from fedlasso.models.settings import Settings
from fedlasso.numerics import L1, Bounds, PenaltyForm
from fedlasso.procedures import Newton, Secant
from fedlasso.procedures.moment_secant import MomentSecant
from fedlasso.sites import INTERCEPT

MOST_ROUNDS = 2000
FINEST = 1e-8
# A fit at one penalty asks for second moments up to so many vectors, and then for gradients.
MOST_MOMENTS = 25
POLISHING = 3


def form_of(settings: Settings, columns: Sequence[str]) -> PenaltyForm:
    """Return the penalty that settings ask for, but for its strength, over the sites' columns.

    Bounds are those of coefficients on the original scale.
    """
    check_names("keep", settings.keep, columns)
    check_names("bound", settings.bounds, columns)
    check_names("give an interval to", settings.named, columns)
    weights = np.array([float(name not in (*settings.keep, INTERCEPT)) for name in columns])
    bounds = None
    if settings.bounds:
        ends = [settings.bounds.get(name, (None, None)) for name in columns]
        lower = np.array([-np.inf if low is None else low for low, _ in ends], np.float64)
        upper = np.array([np.inf if high is None else high for _, high in ends], np.float64)
        bounds = Bounds(lower, upper)
    return PenaltyForm(None if weights.all() else weights, settings.l1_ratio, bounds)


def check_names(what: str, names: Iterable[str], columns: Sequence[str]) -> None:
    """Refuse a name that no column has."""
    known = [column for column in columns if column != INTERCEPT]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "name a column of the sites"
            raise FedLassoError(f"no column to {what} is called {name!r}; {hint}")


def fit_exactly(view: Federation, penalty: float, uploads: int, tol: float) -> Fit:
    """Fit the Lasso of all sites' rows together, in few rounds where its columns are few.

    Second moments of p columns are about p/2 vectors, and a gradient makes up for their rounding.
    Where that is too much, or a site does not tell them, gradients do without.
    """
    vectors = vectors_of(len(view.columns), 1) + POLISHING
    if vectors <= min(uploads, MOST_MOMENTS):
        try:
            return fit(view, MomentSecant(tol=tol), penalty=penalty, rounds=1 + POLISHING, tol=tol)
        except Stopped:
            raise
        except FedLassoError:
            pass
    return fit_pooled(view, penalty, uploads, tol)


def fit_curved(view: Federation, penalty: L1, uploads: int, tol: float) -> Fit:
    """Fit any smooth loss of all sites' rows together, within so many uploads."""
    # A certificate is no finer than sums of rounded numbers allow.
    newton = Newton(tol=max(tol, FINEST))
    return fit(view, newton, penalty=penalty, rounds=MOST_ROUNDS, uploads=uploads, tol=newton.tol)


def fit_pooled(view: Federation, penalty: float, uploads: int = 100, tol: float = 1e-6) -> Fit:
    """Fit the Lasso of all sites' rows together, to a relative gap."""
    return fit(view, Secant(tol=tol), penalty=penalty, rounds=uploads, tol=tol)
