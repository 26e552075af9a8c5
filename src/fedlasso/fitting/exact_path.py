"""The exact fit to all rows along a list of penalties, with a certificate at each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedlasso.federation import Federation, Ledger, metered
from fedlasso.fitting.at_penalty import FINEST_GAP, finish, fit_any_loss
from fedlasso.fitting.budget import vectors_within_bytes
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import PathPoint
from fedlasso.fitting.evidence.gradient_evidence import open_within
from fedlasso.fitting.evidence.moment_evidence import certify_point
from fedlasso.fitting.inference.infer import separate_sites
from fedlasso.fitting.joint_search import JointSearch
from fedlasso.fitting.model import Model, to_original
from fedlasso.numerics import L1, Array, one_thread
from fedlasso.sites import INTERCEPT, Scaling
from fedlasso.sites.questions import LossAt
from fedlasso.sites.site_weights import read_site_weight

# Relative gap of least-squares fits.
SQUARES_TOL = 1e-10
# Relative rounding error of the largest useful penalty.
EMPTY = 1e-12
# Penalties between the largest useful one and a given one.
GRID = 15


@dataclass(frozen=True, eq=False)
class ExactPath:
    """The pooled Lasso, or the elastic net, of all rows at decreasing penalties.

    Attributes
    ----------
    penalties : array (L,), on the scale of standardised columns
    coefficients, intercepts : arrays (p, L) and (L,), on the original scale
    dev_ratio : array (L,), fraction of the deviance of the empty model that is explained
    gaps : array (L,), certified bounds of the relative distance to the best possible objective
    """

    penalties: Array
    coefficients: Array
    intercepts: Array
    dev_ratio: Array
    gaps: Array

    @property
    def nzero(self) -> NDArray[np.int64]:
        """Number of nonzero coefficients at each penalty, without the intercept."""
        return np.asarray((self.coefficients != 0).sum(axis=0))

    def find(self, penalty: float) -> int | None:
        """Return the place of a penalty, if the path has it."""
        near = np.flatnonzero(np.isclose(self.penalties, penalty, rtol=1e-12, atol=0))
        return int(near[0]) if near.size else None


def path_by_moments(model: Model) -> ExactPath | None:
    """Return the path of a model that second moments chose, without another question."""
    folded, curve = model.fit.evidence, model.fit.curve
    if folded is None or curve is None or model.view.split or model.view.site_weights:
        return None
    whole = folded.whole.normal(centre=False, scale=False)
    points = []
    for k, lam in enumerate(curve.penalties.tolist()):
        # Rounding alone leaves coefficients at the largest penalty.
        empty = lam >= whole.largest_penalty * (1 - EMPTY)
        b = np.zeros(whole.p) if empty else np.ascontiguousarray(curve.coefficients[:, k])
        points.append(certify_point(whole, b, L1(lam)))
    found = [model.scaling.original(point.coefficients) for point in points]
    return _join(points, found, whole.rows * whole.variance)


@one_thread()
def fit_path(
    federation: Federation, model: Model, penalties: Sequence[float] | None = None
) -> ExactPath:
    """Ask the sites again for the fit to all rows at each penalty.

    By default the penalties are those of the model's curve or, if its penalty was given, a grid
    down to that.
    """
    settings = replace(model.settings, uploads=None, round_trips=None)
    ledger = separate_sites(metered(federation), bool(settings.site_effects), None)
    if model.view.site_weights:
        texts = model.view.site_weights
        weights = {site: read_site_weight(texts, site) for site in ledger.sites}
        ledger = separate_sites(ledger, False, weights)
    context = Context(ledger, settings)
    context.budget.limit(vectors_within_bytes(context.p))
    walk = _Squares(context) if settings.plain else _Joint(context)
    if penalties is None:
        penalties = _default_penalties(model, walk.largest)
    points = [walk.fit(lam) for lam in sorted(set(penalties), reverse=True)]
    view, scaling = context.standardise()
    found = [to_original(ledger, view, scaling, settings, point.coefficients) for point in points]
    return _join(points, found, _empty_deviance(metered(view), scaling))


class _Squares:
    """Least squares by gradients, which hold at every penalty."""

    def __init__(self, context: Context) -> None:
        view, _ = context.standardise()
        self._evidence = open_within(view, context.budget.part(context.budget.left), context.form)
        self._start: Array | None = None
        self.largest = self._evidence.largest_penalty

    def fit(self, lam: float) -> PathPoint:
        """Fit at a penalty, from the fit before."""
        point = self._evidence.fit(L1(lam), self._start, SQUARES_TOL)
        self._start = point.coefficients
        return point


class _Joint:
    """Any other fit, by the points that all fits before it know."""

    def __init__(self, context: Context) -> None:
        tol = max(context.settings.tol, FINEST_GAP)
        rule = context.settings.rule_in_force
        self._search = JointSearch.open(
            context.standardiser, (), context.form, context.budget, tol, rule
        )
        self._view, self._scaling = context.standardise()
        self._tol = tol
        self.largest = self._search.largest

    def fit(self, lam: float) -> PathPoint:
        """Fit at a penalty, and go on by Newton where the points do not suffice."""
        self._search.complete(lam)
        penalty = self._search.form.at(lam)
        left = self._search.budget.left
        sizes = self._scaling.sizes
        fit = finish(self._search, self._view, lam, left, self._tol, sizes)
        assert fit.certificate is not None
        loss = fit.certificate.objective - penalty.value(fit.coefficients)
        deviance = 2 * sum(sizes) * loss
        return PathPoint(penalty, fit.coefficients, deviance, fit.certificate)


def _default_penalties(model: Model, largest: float) -> list[float]:
    if model.fit.curve is not None:
        return [float(lam) for lam in model.fit.curve.penalties]
    last = model.path_penalty
    if not 0 < last < largest:
        return [last]
    return [*np.geomspace(largest, last, GRID)[:-1].tolist(), last]


def _empty_deviance(view: Ledger, scaling: Scaling) -> float:
    """Return the deviance of the model of the intercept alone."""
    b = np.zeros(len(view.columns))
    if view.columns[-1] == INTERCEPT and not view.site_effects:
        weights = np.full(b.size, np.inf)
        weights[-1] = 0.0
        empty = fit_any_loss(view, L1(0.0, weights), np.inf, FINEST_GAP, sizes=scaling.sizes)
        b = empty.coefficients
    return 2 * view.total(LossAt(b)).loss


def _join(
    points: Sequence[PathPoint], found: Sequence[tuple[Array, float]], empty: float
) -> ExactPath:
    deviance = np.array([point.residual_ss for point in points])
    return ExactPath(
        penalties=np.array([point.penalty.strength for point in points]),
        coefficients=np.column_stack([b for b, _ in found]),
        intercepts=np.array([intercept for _, intercept in found]),
        dev_ratio=1 - deviance / empty if empty > 0 else np.zeros(len(points)),
        gaps=np.array([point.certificate.relative_gap for point in points]),
    )
