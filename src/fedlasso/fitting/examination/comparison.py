"""Comparisons of a model with others: errors per site, other models, and other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from fedlasso.errors import Refused, SameResponse
from fedlasso.federation import Costs, Federation, Ledger, Reply, Request, metered
from fedlasso.fitting.at_penalty import certify, fit, fit_any_loss, fit_pooled
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.context import penalty_of
from fedlasso.fitting.evidence import Wanted, open_evidence
from fedlasso.fitting.evidence.gradient_evidence import make_evidence
from fedlasso.fitting.inference.infer import REFIT_PENALTY
from fedlasso.fitting.local_penalty import ChoosePenalty
from fedlasso.fitting.model import Model
from fedlasso.fitting.result import Fit, Tuned
from fedlasso.fitting.rounds import run_together
from fedlasso.fitting.validation import mean_effect, validate
from fedlasso.numerics import L1, Array, Certificate
from fedlasso.procedures import Averaging
from fedlasso.procedures.one_shot import LocalFit
from fedlasso.sites import (
    INTERCEPT,
    ErrorAt,
    Scaling,
    Standardiser,
    Viewed,
    halves,
    share_intercept,
    standardise,
)

# Local epochs and rounds of the averaging that is compared.
AVERAGING_EPOCHS = 5
AVERAGING_ROUNDS = 30
# The path to a given penalty.
PATH_PENALTIES = 15
PATH_UPLOADS = 60
# Vectors of p numbers for the fit to one half of the rows, of least squares and of other losses.
HALF_UPLOADS = 40
CURVED_UPLOADS = 400
# Names of the model, or of what stands for it, in its own comparison.
THIS_MODEL = "this model"
OWN_COLUMNS = "this model's columns on the training rows"
# A column is stable when this fraction of so many random halves of the rows select it.
STABLE = 0.6
SUBSAMPLES = 10
R = TypeVar("R", bound=Reply)


@dataclass(frozen=True)
class CoefficientPath:
    """Standardised coefficients along the penalties, one row per name.

    `nzero` and `dev_ratio` are known for the exact path of all rows: numbers of nonzero
    coefficients, and fractions of the empty model's deviance that are explained.
    """

    penalties: tuple[float, ...]
    names: tuple[str, ...]
    coefficients: tuple[tuple[float, ...], ...]
    nzero: tuple[int, ...] | None = None
    dev_ratio: tuple[float, ...] | None = None

    @classmethod
    def largest(cls, penalties: Array, B: Array, columns: Sequence[str]) -> CoefficientPath:
        """Return the 40 largest coefficients along a path, whose models are columns of B."""
        largest = np.abs(B).max(axis=1)
        shown = np.argsort(-largest, kind="stable")[:40]
        shown = shown[largest[shown] > 0]
        return cls(
            tuple(penalties.tolist()),
            tuple(columns[k] for k in shown),
            tuple(tuple(row) for row in B[shown].tolist()),
        )


@dataclass(frozen=True)
class ComparedModel:
    """A model judged on the same held-out rows as the others.

    `above` is its excess over the pooled Lasso's objective, as a fraction of that.
    """

    name: str
    active: int
    mse: float | None
    se: float | None
    above: float | None
    sent: int


@dataclass(frozen=True)
class SiteError:
    """The model's mean squared error on the training rows of one site."""

    name: str
    rows: int
    mse: float


def pool_error(errors: Sequence[SiteError]) -> float:
    """Return the mean squared error over the rows of all sites."""
    return sum(error.mse * error.rows for error in errors) / sum(error.rows for error in errors)


@dataclass(frozen=True)
class ColumnStability:
    """Whether the model uses a column, and the fraction of random halves of the rows that do."""

    name: str
    selected: bool
    share: float


def walk_to_penalty(ledger: Ledger, model: Model) -> CoefficientPath | None:
    """Return the Lasso path down to the given penalty, unless all is zero there."""
    evidence = open_evidence(Viewed(ledger, model.view), uploads=PATH_UPLOADS)
    if evidence.largest_penalty <= model.path_penalty:
        return None
    grid = np.geomspace(evidence.largest_penalty, model.path_penalty, PATH_PENALTIES)
    points = evidence.path([L1(float(at)) for at in grid])
    B = np.column_stack([point.coefficients for point in points])
    return CoefficientPath.largest(grid[: len(points)], B, model.columns)


def ask_site_errors(ledger: Ledger, model: Model) -> tuple[SiteError, ...]:
    """Return the model's error on the training rows of every site."""
    view = Viewed(ledger, model.view)
    b = model.fit.coefficients
    if view.columns[-1] == INTERCEPT and model.settings.site_effects:
        b = np.append(b[:-1], mean_effect(view, b))
    replies = share_intercept(view).ask(ErrorAt(b))
    return tuple(
        SiteError(reply.site, rows, reply.value / rows)
        for reply, rows in zip(replies, model.scaling.sizes, strict=True)
        if rows
    )


def compare_models(
    ledger: Ledger, model: Model
) -> tuple[tuple[ComparedModel, ...], dict[str, Array]]:
    """Return the pooled Lasso, averaging and every site alone, fitted and judged on the same rows.

    The first represents the model. It is the model itself only if it has not seen the held-out
    rows. Otherwise it is the pooled Lasso on the training rows or, if the model is not a Lasso, its
    columns refitted to them nearly without a penalty.
    """
    settings = model.settings
    view, scaling = standardise(ledger, settings.held_out, **settings.scaling)
    lam = model.path_penalty
    best = fit_pooled(view, lam)
    rivals = [("pooled Lasso on the training rows", best.coefficients, _most(best.costs))]
    if view.name == model.view.name:
        rivals.insert(0, (THIS_MODEL, model.fit.coefficients, _most(model.costs)))
    elif model.discovers or (isinstance(model.fit.reason, Tuned) and model.method != LASSO.name):
        weights = np.where(model.standardised != 0, 1.0, np.inf)
        own = fit_any_loss(view, L1(REFIT_PENALTY * lam, weights), HALF_UPLOADS, 1e-6)
        rivals.insert(0, (OWN_COLUMNS, own.coefficients, _most(own.costs)))
    averaging = Averaging(epochs=AVERAGING_EPOCHS)
    averaged = fit(view, averaging, penalty=lam, rounds=AVERAGING_ROUNDS, certified=False)
    name = f"averaging, {AVERAGING_EPOCHS} local epochs, {AVERAGING_ROUNDS} rounds"
    rivals.append((name, averaged.coefficients, _most(averaged.costs)))
    alone = _fit_each_alone(view, scaling, lam) if len(view.sites) > 1 else {}
    rivals += [(name_alone(site), b, 0) for site, b in alone.items()]
    models = np.column_stack([b for _, b, _ in rivals])
    errors = validate(view, models) if scaling.held_out[1] else None
    rows = []
    for i, (name, b, sent) in enumerate(rivals):
        above = excess_objective(certify(view, best.problem, b), best)
        mse, se = (None, None) if errors is None else (float(errors.error[i]), float(errors.se[i]))
        finite = above if np.isfinite(above) else None
        rows.append(ComparedModel(name, int((b != 0).sum()), mse, se, finite, sent))
    return tuple(rows), alone


def _most(costs: Costs) -> int:
    """Return the bytes of the site that sent most."""
    return max(costs.total(None, site).upload for site in costs.sites)


def excess_objective(certificate: Certificate, best: Fit) -> float:
    """Return the excess of an objective over the pooled Lasso's, as a fraction of that."""
    assert best.certificate is not None
    lowest = best.certificate.objective
    above = max(certificate.objective - lowest, 0.0)
    return above / lowest if lowest > 0 else (0.0 if above == 0 else float("inf"))


def _fit_each_alone(view: Federation, scaling: Scaling, lam: float) -> dict[str, Array]:
    """Return every site's own Lasso, at its own penalty if its held-out rows choose one."""
    alone = {}
    for site, rows in zip(view.sites, scaling.sizes, strict=True):
        choice = _answer(view, ChoosePenalty(to=(site,)))
        reply = _answer(view, LocalFit(choice.lam if choice else lam, to=(site,)))
        if reply:
            alone[site] = reply.values[:, 0] / max(rows, 1)
    return alone


def _answer(view: Federation, request: Request[R]) -> R | None:
    """Return the reply of the one site that is asked, or None if it refuses."""
    try:
        (reply,) = view.ask(request)
    except Refused:
        return None
    return reply


def measure_stability(ledger: Ledger, model: Model) -> tuple[ColumnStability, ...]:
    """Return how often random halves of all rows select each column (Meinshausen, Buhlmann)."""
    p = len(model.columns)
    settings = model.settings
    form = penalty_of(settings, ledger.columns)
    uploads = HALF_UPLOADS if settings.plain else CURVED_UPLOADS
    standardiser = Standardiser(ledger, **settings.scaling)
    parts = []
    for found in standardiser.standardise_splits(halves(SUBSAMPLES, settings.seed)).values():
        if isinstance(found, SameResponse):
            raise found
        view, scaling = found
        budget = Budget(ledger, uploads)
        own = form.scaled(scaling.factors)
        parts.append(make_evidence(metered(view), budget, own, scaling.sizes))
    run_together([part.opening() for part in parts])
    wanted = [Wanted(part.form.at(model.path_penalty), 1e-3) for part in parts]
    points = run_together([part.asking(one) for part, one in zip(parts, wanted, strict=True)])
    counts = np.sum([point.coefficients[:p] != 0 for point in points], axis=0)
    chosen = model.standardised != 0
    shown = np.flatnonzero(chosen | (counts >= STABLE * SUBSAMPLES))
    return tuple(
        ColumnStability(model.columns[k], bool(chosen[k]), float(counts[k] / SUBSAMPLES))
        for k in sorted(shown, key=lambda k: (-counts[k], k))
    )


def name_alone(site: str) -> str:
    """Return the name of a site's own fit in a comparison."""
    return f"{site} alone"
