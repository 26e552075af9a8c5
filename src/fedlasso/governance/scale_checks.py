"""Reject numbers in a question far from the data's scale: rounding would disclose rows."""

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

# Maximum mean of a view, in multiples of the column's size up to a power of two: records minus a
# larger mean would be rounded, and sums over rounded records count rows.
MAX_MEAN = 64.0
# Maximum range of the linear predictors for a curved loss: e^-30 is above the rounding of sums.
MAX_PREDICTOR_RANGE = 60.0


def check_powers(site: Site, request: Standardise) -> None:
    """Refuse a view whose bounds are smaller than the numbers here."""
    bounds = request.magnitudes
    if bounds.columns.size != site.table.p:
        raise FedLassoError("a view must bound the numbers of all columns")
    table = site.table
    weights = request.weight_scale * site.weights(request.split)
    factors = np.abs(request.factors)
    rows = np.sqrt(weights.sum())
    y = site.disclosed_response - request.y_mean
    slopes = site.training.loss.slope_size(rows**2, float(np.sqrt(weights @ (y * y))))
    # Means replace missing values.
    about_zero = np.sqrt(table.squares(np.zeros(table.p), weights))
    pairs = (
        (np.sqrt(table.squares(request.means, weights)) * factors, bounds.columns),
        ((about_zero + np.abs(request.means) * rows) * factors, bounds.terms),
        (np.array([rows]), np.array([bounds.rows])),
        (np.array([slopes]), np.array([bounds.response])),
    )
    for sizes, powers in pairs:
        if (sizes > np.ldexp(1.0, powers)).any():
            raise Withheld("a view whose bounds are smaller than its numbers")


def check_reach(site: Site, request: Request[Any]) -> None:
    """Refuse a grid finer than the coefficients in a question allow.

    Large coefficients round the rows, and a fine grid would disclose how.
    """
    least = reaching(site.view(request.on).magnitudes, request).reach
    if request.reach - OFFSET < least:
        raise FedLassoError(
            f"{type(request).__name__}: the reach is too small for the numbers in the question"
        )


def check_steepness(site: Site, request: Request[Any]) -> None:
    """Refuse a model whose linear predictors here have too large a range for a curved loss.

    The slope of such a loss is almost constant far from zero. If it is for all rows but one, two
    sums disclose that row.
    """
    if find_loss(site.loss).quadratic:
        return
    design = site.view(request.on).training.design
    for points in request.points():
        for b in np.atleast_2d(points.T):
            width = np.ptp(design.product(np.ascontiguousarray(b)))
            # Written so that a NaN is refused.
            if not width <= MAX_PREDICTOR_RANGE:
                raise Withheld("a model whose linear predictors are too far apart for this loss")


def check_means(site: Site, request: Request[Any]) -> None:
    """Refuse means so far from the records that these would be rounded."""
    for y_mean in values_of(request, "centre of response"):
        if y_mean and not site.training.loss.centres:
            # Shifted survival times would be events by a threshold of the coordinator's choice.
            raise FedLassoError(f"{type(request).__name__}: y_mean must be 0 for this loss")
        _check_near(y_mean, _largest_mean(np.abs(site.disclosed_response).max()))
    for means in values_of(request, "centre"):
        largest = site.table.largest
        limits = _largest_mean(largest)
        factors = values_of(request, "factors")
        if not factors:
            # Squares about a mean disclose only the number of rows of a column of zeros.
            limits = np.where(largest == 0, np.inf, limits)
        for given in factors:
            # A column of zeros here may have any mean elsewhere, in units of its own spread.
            spread = np.divide(MAX_MEAN, given, out=np.zeros(given.size), where=given != 0)
            limits = np.maximum(limits, np.abs(spread))
        _check_near(means, limits)


def _largest_mean(largest: Any) -> Any:
    """Return the maximum mean of a column with this largest number."""
    return MAX_MEAN * np.exp2(np.ceil(np.log2(np.maximum(largest, 1e-300))))


def _check_near(means: Any, limits: Any) -> None:
    if (np.abs(means) > limits).any():
        raise Withheld("means of a view that are far from all records here")
