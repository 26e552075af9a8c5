"""Whether numbers in a question are as large as the records here: if not, rounding would tell."""

from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Request
from fedlasso.federation.fixed_point import OFFSET, reaching
from fedlasso.governance.policy import values_of
from fedlasso.governance.refusals import Withheld
from fedlasso.numerics import find_loss
from fedlasso.sites import Site
from fedlasso.sites.views import Standardise

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
    if find_loss(site.loss).quadratic:
        return
    design = site.view(request.on).training.design
    for points in request.points():
        for b in np.atleast_2d(points.T):
            apart = np.ptp(design.product(np.ascontiguousarray(b)))
            # A distance that is not a number is no short one.
            if not apart <= STEEPEST:
                raise Withheld("a model whose linear predictors are too far apart for this loss")


def check_means(site: Site, request: Request[Any]) -> None:
    """Refuse means so far from the records that these would be rounded."""
    for y_mean in values_of(request, "centre of response"):
        if y_mean and not site.training.loss.centres:
            # Moved survival times would be events for a threshold of the asker's choice.
            raise FedLassoError(f"{type(request).__name__}: y_mean must be 0 for this loss")
        _check_near(y_mean, _farthest(np.abs(site.told).max()))
    for means in values_of(request, "centre"):
        largest = site.table.largest
        limits = _farthest(largest)
        factors = values_of(request, "factors")
        if not factors:
            # Squares about any mean say nothing of a column of zeros but its rows.
            limits = np.where(largest == 0, np.inf, limits)
        for given in factors:
            # A column of zeros here may have any mean elsewhere, in units of its own spread.
            spread = np.divide(FARTHEST, given, out=np.zeros(given.size), where=given != 0)
            limits = np.maximum(limits, np.abs(spread))
        _check_near(means, limits)


def _farthest(largest: Any) -> Any:
    """Return how large a mean of numbers may be whose largest is this."""
    return FARTHEST * np.exp2(np.ceil(np.log2(np.maximum(largest, 1e-300))))


def _check_near(means: Any, limits: Any) -> None:
    if (np.abs(means) > limits).any():
        raise Withheld("means of a view that are far from all records here")
