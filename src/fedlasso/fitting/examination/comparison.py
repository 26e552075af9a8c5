"""Comparisons of a model with others: errors per site, other models, and other rows.

Other models are compared by the second moments of folds, which judge any model without another
question. Only the sites' own fits are asked, one for all rows and one without every fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlasso.federation import Costs, Ledger
from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.dialogue import Dialogue
from fedlasso.fitting.evidence import Folded, PathPoint, Wanted
from fedlasso.fitting.evidence.moment_evidence import certify_point, solve_at
from fedlasso.fitting.examination.assessment import Assessment
from fedlasso.fitting.examination.subsamples import SUBSAMPLES as SUBSAMPLES
from fedlasso.fitting.inference.infer import REFIT_PENALTY
from fedlasso.fitting.local_penalty import ChoosePenalty
from fedlasso.fitting.model import Model
from fedlasso.fitting.result import Fit, Tuned
from fedlasso.fitting.tuning import average_folds
from fedlasso.fitting.validation import Validation
from fedlasso.numerics import L1, Array, Certificate
from fedlasso.numerics.moments import Moments, residuals
from fedlasso.procedures.one_shot import LocalFit
from fedlasso.sites import INTERCEPT, EffectAt, ErrorAt, Scaling, Viewed, folds, share_intercept

# Penalties of the path to a given one.
PATH_PENALTIES = 15
# Names of the model, or of what stands for it, in its own comparison.
THIS_MODEL = "this model"
OWN_COLUMNS = "this model's columns, refitted"
POOLED = "pooled Lasso"
AVERAGE = "average of the sites' own fits"
# Name of all rows in a table with a row per site.
ALL_SITES = "all sites"
# A column is stable when this fraction of so many random halves of the rows select it.
STABLE = 0.6


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
    """A model judged by the same folds as the others.

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
    """The mean error of a model, or of the models of folds, over rows of one site."""

    name: str
    rows: int
    mse: float


def training_errors(errors: Sequence[SiteError] | None) -> tuple[SiteError, ...]:
    """Return the errors of sites on their training rows, and last that of all rows."""
    if not errors:
        return ()
    rows = sum(error.rows for error in errors)
    pooled = sum(error.mse * error.rows for error in errors) / rows
    return (*errors, SiteError(ALL_SITES, rows, pooled))


def held_out_errors(assessment: Assessment | None) -> tuple[SiteError, ...]:
    """Return the assessed errors of sites and of all rows; nothing if some site's is not known."""
    if assessment is None or assessment.error is None:
        return ()
    sites = assessment.sites
    known = [SiteError(s.name, s.rows, s.error.value) for s in sites if s.error is not None]
    if not known or len(known) < len(sites):
        return ()
    return (*known, SiteError(ALL_SITES, assessment.rows, assessment.error.value))


@dataclass(frozen=True)
class ColumnStability:
    """Whether the model uses a column, and the fraction of random halves of the rows that do."""

    name: str
    selected: bool
    share: float


def walk_to_penalty(folded: Folded, model: Model) -> CoefficientPath | None:
    """Return the Lasso path down to the given penalty, unless all is zero there."""
    largest = folded.normal(folded.whole).largest_penalty
    if largest <= model.path_penalty:
        return None
    grid = np.geomspace(largest, model.path_penalty, PATH_PENALTIES)
    points = folded.fit_many([Wanted(L1(float(at))) for at in grid])
    B = np.column_stack([point.coefficients for point in points])
    return CoefficientPath.largest(grid, B, model.columns)


def ask_site_errors(ledger: Ledger, model: Model) -> Dialogue[tuple[SiteError, ...]]:
    """Return the model's error on the training rows of every site."""
    view = Viewed(ledger, model.view)
    b = model.fit.coefficients
    if view.columns[-1] == INTERCEPT and model.settings.site_effects:
        (sent,) = yield [view.prepare(EffectAt(b))]
        b = np.append(b[:-1], sent.effects / sent.weight if sent.weight else 0.0)
    (replies,) = yield [share_intercept(view).prepare(ErrorAt(b), own=True)]
    return tuple(
        SiteError(reply.site, rows, reply.value / rows)
        for reply, rows in zip(replies, model.scaling.sizes, strict=True)
        if rows
    )


def compare_models(
    view: Viewed, scaling: Scaling, model: Model, folded: Folded, judged: Validation | None
) -> Dialogue[tuple[tuple[ComparedModel, ...], dict[str, Array]]]:
    """Return the model, the pooled Lasso and the sites' own fits, judged by the same folds.

    The first stands for the model: itself by nested cross-validation (`judged`), its columns if it
    is no Lasso, or the pooled Lasso at its penalty. The last are fits of one site each, at the
    mean of the penalties that its folds choose.
    """
    sizes = scaling.sizes
    lam = model.path_penalty
    best = folded.fit(L1(lam))
    own, sent = yield from _fit_each_alone(view, sizes, lam, folded)
    compared = _Compared(folded, lam, best)
    most = _most(model.costs)
    rows = []
    if judged is not None or model.settings.procedure is not None:
        active = int(np.count_nonzero(model.standardised))
        factors = scaling.factors
        b = np.divide(model.coefficients, factors, out=np.zeros(factors.size), where=factors > 0)
        error = None if judged is None else float(judged.error[0])
        se = None if judged is None else float(judged.se[0])
        rows.append(ComparedModel(THIS_MODEL, active, error, se, compared.excess(b), most))
    elif model.discovers or (isinstance(model.fit.reason, Tuned) and model.method != LASSO.name):
        weights = np.where(model.standardised != 0, 1.0, np.inf)
        penalty = L1(REFIT_PENALTY * lam, weights)
        rows.append(compared.pooled(OWN_COLUMNS, penalty, most))
    rows.append(compared.pooled(POOLED, L1(lam), most))
    alone = {}
    if own:
        total = sum(sizes)
        weights = np.array([size / total for size in sizes])
        average = [
            np.sum([w * fits[k] for w, fits in zip(weights, own.values(), strict=True)], axis=0)
            for k in range(len(folded.folds) + 1)
        ]
        rows.append(compared.judge(AVERAGE, average, sent))
        rows += [compared.judge(name_alone(site), fits, 0) for site, fits in own.items()]
        alone = {site: fits[-1] for site, fits in own.items()}
    return tuple(rows), alone


@dataclass(frozen=True, eq=False)
class _Compared:
    """Judges models by moments of folds, in the columns of a view."""

    folded: Folded
    lam: float
    best: PathPoint

    def judge(self, name: str, models: Sequence[Array], sent: int) -> ComparedModel:
        """Judge fits without an intercept: one without each fold, and that to all rows."""
        residual = [residuals(b[:, None], np.zeros(1)) for b in models[:-1]]
        return self._row(name, residual, models[-1], sent)

    def pooled(self, name: str, penalty: L1, sent: int) -> ComparedModel:
        """Judge the fit to the rows of all sites at a penalty."""
        found = []
        for _, normal in self.folded.training():
            b = solve_at(normal, penalty)
            found.append(residuals(*normal.original(b[:, None])))
        normal = self.folded.normal(self.folded.whole)
        b = solve_at(normal, penalty) if penalty.weights is not None else self.best.coefficients
        return self._row(name, found, b, sent)

    def _row(self, name: str, found: Sequence[Array], b: Array, sent: int) -> ComparedModel:
        each = [
            max(float(fold.between(V, V)[0]), 0.0) / fold.rows
            for fold, V in zip(self.folded.folds, found, strict=True)
        ]
        error, se = average_folds(np.array(each)[:, None], self.folded.rows)
        active = int(np.count_nonzero(b))
        return ComparedModel(name, active, float(error[0]), float(se[0]), self.excess(b), sent)

    def excess(self, b: Array) -> float | None:
        """Return how far the Lasso objective on all rows is above the smallest, as a fraction."""
        normal = self.folded.normal(self.folded.whole)
        above = excess_of(certify_point(normal, b, L1(self.lam)).certificate, self.best.certificate)
        return above if np.isfinite(above) else None


def _most(costs: Costs) -> int:
    """Return the bytes of the site that sent most."""
    return max(costs.total(None, site).upload for site in costs.sites)


def excess_objective(certificate: Certificate, best: Fit) -> float:
    """Return the excess of an objective over the pooled Lasso's, as a fraction of that."""
    assert best.certificate is not None
    return excess_of(certificate, best.certificate)


def excess_of(certificate: Certificate, best: Certificate) -> float:
    """Return the excess of an objective over the smallest, as a fraction of that."""
    above = max(certificate.objective - best.objective, 0.0)
    return above / best.objective if best.objective > 0 else (0.0 if above == 0 else float("inf"))


def _fit_each_alone(
    view: Viewed, sizes: Sequence[int], lam: float, folded: Folded
) -> Dialogue[tuple[dict[str, list[Array]], int]]:
    """Return every site's own Lasso without each fold, and to all its rows; and its bytes.

    A site's penalty for a fold is the mean of those that its other folds choose.
    """
    if len(view.sites) < 2 or not folded.split:
        return {}, 0
    _, count, seed = folded.split.split()
    views = [view.on_split(split) for split in folds(int(count), int(seed))]
    definitions = [one.inner.prepare(one.view, own=True) for one in views]
    answers = yield [*definitions, *(one.prepare(ChoosePenalty(), own=True) for one in views)]
    replies = answers[len(views) :]
    chosen = {site: [max(own[k].lam, 0.0) for own in replies] for k, site in enumerate(view.sites)}
    # Rows of a site's fit without each fold.
    rows = {
        site: [sent[k].rows for sent in answers[: len(views)]] for k, site in enumerate(view.sites)
    }
    asked = []
    for site, lams in chosen.items():
        sums = sum(lams)
        others = [(sums - own) / max(len(lams) - 1, 1) or lam for own in lams]
        fits = [
            one.prepare(LocalFit(at, to=(site,)), own=True)
            for one, at in zip(views, others, strict=True)
        ]
        asked += [*fits, view.prepare(LocalFit(sums / len(lams) or lam, to=(site,)), own=True)]
    answers = yield asked
    found = iter(answers)
    alone = {}
    for site, size in zip(view.sites, sizes, strict=True):
        own_rows = [*rows[site], size]
        alone[site] = [next(found)[0].values[:, 0] / max(m, 1) for m in own_rows]
    sent = _most(Costs.of(asked[-1].request, answers[-1]))
    return alone, sent


def describe_stability(model: Model, counts: Array) -> tuple[ColumnStability, ...]:
    """Return how often random halves of all rows select each column (Meinshausen, Buhlmann)."""
    chosen = model.standardised != 0
    shown = np.flatnonzero(chosen | (counts >= STABLE * SUBSAMPLES))
    return tuple(
        ColumnStability(model.columns[k], bool(chosen[k]), float(counts[k] / SUBSAMPLES))
        for k in sorted(shown, key=lambda k: (-counts[k], k))
    )


def count_on_halves(folded: Folded, lam: float, seed: int) -> Array:
    """Return how many random halves of the folds select each column, in complementary pairs."""
    rng = np.random.default_rng(seed)
    counts: Any = 0
    for _ in range(SUBSAMPLES // 2):
        order = rng.permutation(len(folded.folds))
        for half in np.array_split(order, 2):
            rows = Moments(np.sum([folded.folds[k].products for k in half], axis=0))
            counts = counts + (solve_at(folded.normal(rows), L1(lam)) != 0)
    return np.asarray(counts)


def name_alone(site: str) -> str:
    """Return the name of a site's own fit in a comparison."""
    return f"{site} alone"
