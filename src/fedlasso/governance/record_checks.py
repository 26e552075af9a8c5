"""Checks of a question against a site's records, and the interface to its data file.

Columns with rare values are refused, and so are numbers far from the data's scale: rounding would
disclose rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Request
from fedlasso.federation.fixed_point import OFFSET, reaching
from fedlasso.governance import door_messages
from fedlasso.governance.consent import list_names
from fedlasso.governance.policy import Policy, Rare, values_of
from fedlasso.governance.refusals import CorrectableRefusal, Withheld
from fedlasso.numerics import Array, Table, find_loss
from fedlasso.numerics.table import find_far
from fedlasso.sites import Site
from fedlasso.sites.assessing import RecalibrationAt, shifted_curvature
from fedlasso.sites.fold_assignment import few_apart
from fedlasso.sites.questions import DualAt
from fedlasso.sites.recalibration import check_points, rests_on_many
from fedlasso.sites.rows import INTERCEPT
from fedlasso.sites.site import View
from fedlasso.sites.views import Standardise

# Maximum mean of a view, in multiples of the column's size up to a power of two: records minus a
# larger mean would be rounded, and sums over rounded records count rows.
MAX_MEAN = 64.0
# Maximum sum of coefficients' sizes, times the root mean squares of their columns, for a curved
# loss. Fits of wide tables reach 100, as powers of two bound the columns.
MAX_STEEPNESS = 256.0


class DataFile(Protocol):
    """A site's data file: columns, rows, and a keyed hash of it; `rare` levels are pooled."""

    columns: tuple[str, ...]
    rows: int
    fingerprint: str

    def check_unchanged(self) -> None:
        """Raise an error if the file has changed since it was read."""

    def describe(
        self, name: str, asked: door_messages.DescribeColumns, fewest: int, rare: Rare
    ) -> door_messages.Described:
        """Return the types of columns, with the levels that at least `fewest` rows have."""

    def find_others(
        self, name: str, asked: door_messages.FindOthers, rare: Rare
    ) -> tuple[str, ...]:
        """Return text columns with rows at none of the levels named."""

    def site(self, name: str, opening: door_messages.Open, rare: Rare) -> Site:
        """Return all records of some columns as a site with secret splits."""


def check_columns(records: DataFile, policy: Policy, request: door_messages.AboutColumns) -> None:
    """Refuse columns that the policy does not show, and data files with few rows."""
    policy.check_rows(records.rows, "here")
    wanted = (*request.outcome, *request.columns)
    here = set(records.columns)
    for column in wanted:
        if column not in here or not policy.shows(column):
            raise FedLassoError(f"there is no column {column!r} here")
    if len(set(wanted)) < len(wanted):
        raise FedLassoError("a column is named twice; name each once")
    for code in request.na:
        # With any value as a missing code the coordinator could count the rows that have it.
        if code not in policy.na_codes:
            reason = f"the policy here does not let {code!r} count as missing"
            raise FedLassoError(f"{reason}; add it to na_codes")


def check_cells(site: Site, request: door_messages.Open, policy: Policy) -> None:
    """Refuse columns in which only a few rows differ: sums would disclose those rows.

    Survival times disclose events. Weights may single out rows as well, especially if they are so
    uneven that a few rows make up all sums.
    """
    cell = policy.min_cell_rows
    everybody = np.arange(site.table.n)
    apart = few_apart(site.table, everybody, cell)
    rare = [name for name, few in zip(site.columns, apart, strict=True) if few]
    response = site.response
    sent = {request.event or request.target: site.training.loss.disclosed_response(response.y)}
    if request.offset:
        sent[request.offset] = response.offset
        sent[f"{request.target} - {request.offset}"] = site.disclosed
    if request.weights:
        sent[request.weights] = response.weights
    for name, numbers in sent.items():
        rare += [name] if few_apart(Table(numbers[:, None]), everybody, cell)[0] else []
    if rare:
        found = f"differ from their commonest value in fewer than {cell} rows here"
        remedy = "leave them out with --drop, or group their values"
        raise CorrectableRefusal(f"{list_names(rare)} {found}; {remedy}")
    if request.cluster and site.batches.max() < 1:
        found = f"clusters in {request.cluster!r} are too few or too large here"
        required = f"two batches of them need at least {site.draw.batch} rows each"
        remedy = "fit without --cluster, or without this site"
        raise CorrectableRefusal(f"{found}: {required}; {remedy}")
    relative = response.weights / response.weights.max()
    if relative.sum() ** 2 < policy.min_rows * float(relative @ relative):
        reason = f"sums here would be those of fewer than {policy.min_rows} rows"
        found = f"weights in {request.weights!r} are so uneven that {reason}"
        raise CorrectableRefusal(f"{found}; give others, or none")
    holes = site.table.missing(np.ones(site.table.n))
    rare = [n for n, k in zip(site.columns, holes, strict=True) if 0 < k < cell]
    if rare:
        remedy = "leave them out with --drop, or fill them in there"
        found = f"{list_names(rare)} are missing in fewer than {cell} rows here"
        raise CorrectableRefusal(f"{found}; {remedy}")


def check_powers(site: Site, request: Standardise) -> None:
    """Refuse a view whose bounds are smaller than the numbers here."""
    bounds = request.magnitudes
    if bounds.columns.size != site.table.p:
        raise FedLassoError("a view must bound the numbers of all columns")
    table = site.table
    weights = request.weight_scale * site.weights(request.split)
    factors = np.abs(request.factors)
    rows = np.sqrt(weights.sum())
    y = site.disclosed - request.y_mean
    slopes = site.training.loss.slope_size(rows**2, float(np.sqrt(weights @ (y * y))))
    # Means replace missing values.
    about_zero = np.sqrt(table.squares(np.zeros(table.p), weights))
    norms = np.sqrt(table.squares(request.means, weights)) * factors
    uncentred = (about_zero + np.abs(request.means) * rows) * factors
    pairs = (
        (norms, bounds.columns),
        (np.where(find_far(request.means, factors), norms, uncentred), bounds.terms),
        (np.array([rows]), np.array([bounds.rows])),
        (np.array([slopes]), np.array([bounds.response])),
    )
    for sizes, powers in pairs:
        if (sizes > np.ldexp(1.0, powers)).any():
            raise Withheld("a view whose bounds are smaller than its numbers")


def check_reach(site: Site, request: Request[Any]) -> None:
    """Refuse a grid so fine that it would disclose how large coefficients round the rows."""
    least = reaching(site.view(request.on).magnitudes, request).reach
    if request.reach - OFFSET < least:
        name = type(request).__name__
        raise FedLassoError(f"{name}: the reach is too small for the numbers in the question")


def check_steepness(site: Site, request: Request[Any], rows: float) -> None:
    """Refuse models that are too steep for a curved loss: its slopes would be steps.

    Only the question counts: its coefficients, and the sizes that its view announces for the
    columns over at most so many `rows` of all sites; without a view, columns count as of size one.
    """
    if find_loss(site.loss).quadratic:
        return
    if isinstance(request, RecalibrationAt):
        check_points(find_loss(site.loss), request.at)
    if isinstance(request, DualAt) and not request.scale <= 1:
        # Beyond one the dual value is infinite as soon as that of a single row is.
        raise FedLassoError("DualAt: the scale must be at most 1")
    magnitudes = site.view(request.on).magnitudes
    sizes = np.ldexp(1.0, magnitudes.columns) / np.sqrt(min(4.0**magnitudes.rows, rows))
    sizes[[name == INTERCEPT for name in site.columns]] = 0.0
    for models in request.points():
        # Written so that a NaN is refused.
        if not (np.abs(models).T @ sizes <= MAX_STEEPNESS).all():
            remedy = "use a larger penalty, or fewer columns"
            raise FedLassoError(f"{type(request).__name__}: too steep a model; {remedy}")


def check_effective_rows(site: Site, request: Request[Any], fewest: float) -> None:
    """Refuse models at which a curved loss has its curvature in a few of the rows.

    Sums at such models differ by what those rows hold. Each model counts by itself, on all rows of
    its view: the rows of one fold are too few to judge it, and other folds may have other models.
    """
    if find_loss(site.loss).quadratic:
        return
    view = site.view(request.on)
    shifts = values_of(request, "shifts")
    for models in request.points():
        columns = np.atleast_2d(models.T)
        moved = shifts[0] if shifts else np.zeros(len(columns))
        for b, shift in zip(columns, moved, strict=True):
            b = np.ascontiguousarray(b)
            weights = shifted_curvature(view, b, shift) if shifts else _curvature(view, request, b)
            if not rests_on_many(weights, fewest):
                raise Withheld("a model whose curvature rests on a few rows here")


@contextmanager
def judge_own_models(site: Site, request: Request[Any], fewest: float) -> Iterator[None]:
    """Refuse the same of models that a site computes itself, as after local steps.

    Their starts, rates and shifts are the coordinator's, so it could choose them as freely.
    """
    training = site.view(request.on).training

    def judge(eta: Array) -> None:
        if not rests_on_many(training.loss.row_curvature(eta, training.response), fewest):
            raise Withheld("a model after local steps whose curvature rests on a few rows here")

    training.judge = None if training.loss.quadratic else judge
    try:
        yield
    finally:
        training.judge = None


def _curvature(view: View, request: Request[Any], b: Array) -> Array:
    """Return the curvature of the rows of a view at a model: those held out too, if asked about."""
    samples = [view.training]
    if request.discloses.held_out:
        purposes = values_of(request, "purpose") or view.held_out
        samples += [view.validation(purpose) for purpose in purposes]
    return np.concatenate([s.loss.row_curvature(s.predictor(b), s.response) for s in samples])


def check_means(site: Site, request: Request[Any]) -> None:
    """Refuse means so far from the records that these would be rounded."""
    for y_mean in values_of(request, "centre of response"):
        if y_mean and not site.training.loss.centres:
            # Shifted survival times would be events by a threshold of the coordinator's choice.
            raise FedLassoError(f"{type(request).__name__}: y_mean must be 0 for this loss")
        _check_near(y_mean, _largest_mean(np.abs(site.disclosed).max()))
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
