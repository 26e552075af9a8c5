"""Whether numbers in a question are as large as the records here: if not, rounding would tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Request
from fedlasso.federation.messages import roles
from fedlasso.federation.words import OFFSET, reaching
from fedlasso.governance.refusals import Withheld
from fedlasso.sites import Site
from fedlasso.sites.views import CentredSquares, Standardise

# How many times the size of a column, up to a power of two, the means of a view may be: records
# about larger ones would be rounded, and sums over rounded records count rows.
FARTHEST = 64.0
# How far apart the linear predictors of two rows may be where a loss is curved: e^-30 is above what
# sums are rounded to.
STEEPEST = 60.0


def check_powers(site: Site, request: Standardise) -> None:
    """Refuse a view that says its numbers are smaller than they are here."""
    said = request.magnitudes
    if said.columns.size != site.table.p:
        raise FedLassoError("a view must say how large the numbers of all columns are")
    table = site.table
    weights = request.share * site.weights(request.split)
    factors = np.abs(request.factors)
    rows = np.sqrt(weights.sum())
    y = site.told - request.y_mean
    slopes = site.training.loss.slope_size(rows**2, float(np.sqrt(weights @ (y * y))))
    # Means of missing values stand in for them.
    about_zero = np.sqrt(table.squares(np.zeros(table.p), weights))
    pairs = (
        (np.sqrt(table.squares(request.means, weights)) * factors, said.columns),
        ((about_zero + np.abs(request.means) * rows) * factors, said.terms),
        (np.array([rows]), np.array([said.rows])),
        (np.array([slopes]), np.array([said.response])),
    )
    for sizes, powers in pairs:
        if (sizes > np.ldexp(1.0, powers)).any():
            raise Withheld("a view that says its numbers are smaller than they are")


def check_reach(site: Site, request: Request[Any]) -> None:
    """Refuse a grid finer than the coefficients in a question allow.

    Rows are rounded by large coefficients, and a fine grid would show how.
    """
    least = reaching(site.view(request.on).magnitudes, request).reach
    if request.reach - OFFSET < least:
        raise FedLassoError(
            f"{type(request).__name__}: the reach is too small for the numbers in the question"
        )


def check_steepness(site: Site, request: Request[Any]) -> None:
    """Refuse a model that leads linear predictors here so far apart that a curved loss has steps.

    The slope of such a loss is next to constant far from zero. Where it is so for all rows but one,
    two sums tell that row.
    """
    if site.loss == "quadratic":
        return
    view = site.view(request.on) if request.on else site
    for field, role in roles(type(request)).items():
        if role.kind not in ("points", "model") or role.within:
            continue
        for b in np.atleast_2d(getattr(request, field).T):
            if np.ptp(view.training.design.product(np.ascontiguousarray(b))) > STEEPEST:
                raise Withheld("a model whose linear predictors are too far apart for this loss")


def check_means(site: Site, request: Standardise | CentredSquares) -> None:
    """Refuse means so far from the records that these would be rounded."""
    table = site.table
    largest = np.append(table.largest, np.abs(site.told).max())
    given = np.append(request.means, getattr(request, "y_mean", 0.0))
    factors = getattr(request, "factors", np.zeros(table.p))
    limit = FARTHEST * np.exp2(np.ceil(np.log2(np.maximum(largest, 1e-300))))
    # A column of zeros here may have any mean elsewhere, in units of its own spread.
    spread = np.divide(FARTHEST, factors, out=np.zeros(table.p), where=factors != 0)
    limit = np.maximum(limit, np.append(np.abs(spread), 0.0))
    constant = np.append(largest[:-1] == 0, False) & (not isinstance(request, Standardise))
    if (np.abs(given) > np.where(constant, np.inf, limit)).any():
        raise Withheld("means of a view that are far from all records here")
