"""Assessment by cross-validation: every row is predicted by a model that was not fitted to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError, Refused
from fedlasso.families import Family
from fedlasso.federation import (
    Around,
    Federation,
    InProcess,
    Ledger,
    Prepared,
    Request,
    metered,
)
from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.dialogue import Dialogue, drive
from fedlasso.fitting.evidence import Folded
from fedlasso.fitting.evidence.moment_evidence import solve_at, vectors_of
from fedlasso.fitting.examination.assessment import (
    Assessment,
    Calibration,
    CalibrationGroup,
    SiteAssessment,
    SurvivalCurve,
)
from fedlasso.fitting.examination.intervals import (
    Z,
    around,
    wilson,
    within_one,
)
from fedlasso.fitting.examination.subsamples import FOLDS
from fedlasso.fitting.examination.summed_measures import (
    calibration_of,
    concordance_of,
    join_ranges,
    pool_errors,
    roc_of,
    survival_curves,
)
from fedlasso.fitting.fold_models import FoldModels
from fedlasso.fitting.goal import lasso_goal
from fedlasso.fitting.model import Model, fit_model
from fedlasso.fitting.result import Tuned
from fedlasso.fitting.settings import Settings
from fedlasso.numerics import L1, Array, Penalty, Response, one_thread
from fedlasso.sites import (
    FoldMoments,
    Scaling,
    Site,
    SiteWeighted,
    Viewed,
    all_folds,
    standardise,
)
from fedlasso.sites.assessing import (
    GroupsAt,
    PairsAt,
    PredictionErrors,
    RecalibrationAt,
    ScoreCounts,
    ScoreRanges,
)
from fedlasso.sites.cells import CELL_ROWS, STRETCHES, time_width
from fedlasso.sites.recalibration import BOTH, EMPTY, LARGE, Recalibrated, recalibrating
from fedlasso.sites.site_measures import SITE_MEASURES, SiteMeasures, SiteSums

# Second moments of folds for the card alone: at most so many vectors.
MOST_MOMENTS = 300
# Survival curves go up to so many mean times, or more.
LAST_TIME = 2.0
# Sites that are left out in turn, and numbers in the table, at most.
MOST_SITES = 12
LARGEST_TABLE = 10_000_000
ON_ALL_ROWS = "The model itself was fitted to all rows."
REFITTED = "All rows chose the discoveries, so the refitted model itself was not assessed."
FAR = "The model itself, which is farther from that optimum, was not assessed."
NETWORK = (
    "No site was left out in turn: over a network, sums without a site would disclose its own."
)


def assess(
    ledger: Ledger, model: Model, found: FoldModels, chosen: bool = False
) -> Dialogue[Assessment]:
    """Assess a model by models of folds, each on the rows of its fold.

    `chosen` if these were also chosen without their fold, and not only fitted.
    """
    settings = model.settings
    view = Viewed(ledger, model.view)
    scaling = model.scaling
    if ledger.site_weights:
        # Rows count alike here, whatever they count in the fit.
        ledger = metered(SiteWeighted(ledger, dict.fromkeys(ledger.sites, 1.0)))
    if ledger.site_weights or model.view.site_weights or model.view.split:
        view, scaling = standardise(ledger, "", **settings.scaling)
    words = (
        f"Every row was predicted once, by {_describe_models(model, chosen)} without its fold, one "
        f"of {found.count} folds. {_describe_fit(model)}"
    )
    family = settings.response_family
    assessing = Assessing(view, scaling, family, *found.on(scaling), found.split)
    assessed = yield from assessing.run(settings.intercept)
    left_out: tuple[SiteAssessment, ...] = ()
    if len(ledger.sites) > 1:
        local = find_local(ledger)
        if not local:
            words = f"{words} {NETWORK}"
        elif len(ledger.sites) <= MOST_SITES and scaling.rows * len(model.columns) <= LARGEST_TABLE:
            left_out = leave_sites_out(local, model, view, scaling)
    return replace(assessed, how=words, left_out=left_out)


def _describe_models(model: Model, chosen: bool) -> str:
    """Return what the models of folds are; `chosen` if they were also chosen without their fold."""
    if chosen:
        return "a model chosen and fitted"
    at = f"at the {'given' if model.settings.penalty is not None else 'chosen'} penalty"
    if model.discovers:
        return f"the Lasso {at}, which the discoveries come from, fitted"
    if _is_far(model):
        return f"the optimum {at}, fitted"
    curve = model.fit.curve
    if has_own_penalty(model) and (curve is None or curve.fold_models is None):
        return "a model with the penalty of each column that all rows have chosen, fitted"
    return f"a model fitted {at}"


def _describe_fit(model: Model) -> str:
    """Return whether the model itself was assessed."""
    if model.discovers:
        return REFITTED
    return FAR if _is_far(model) else ON_ALL_ROWS


def _is_far(model: Model) -> bool:
    return not (model.is_near or has_own_penalty(model))


def has_own_penalty(model: Model) -> bool:
    """Return whether held-out rows have chosen another penalty than that of the Lasso's path."""
    tuned = isinstance(model.fit.reason, Tuned)
    return tuned and model.fit.method != LASSO.name and not model.discovers


def ask_moments(view: Viewed, settings: Settings) -> Dialogue[Folded | None]:
    """Ask for the second moments of folds, unless they are too many."""
    if vectors_of(len(view.columns), FOLDS) > MOST_MOMENTS:
        return None
    (sent,) = yield [view.prepare(FoldMoments(all_folds(FOLDS, settings.seed)))]
    return Folded.of_sums(sent, len(view.columns), settings.seed, **settings.scaling)


@one_thread()
def solve_folds(folded: Folded, model: Model, scaling: Scaling) -> FoldModels:
    """Return the model, at its penalty, on all rows but those of each fold."""
    penalty: Penalty = L1(model.path_penalty)
    if has_own_penalty(model):
        penalty = model.fit.penalty
    ridge = getattr(penalty, "ridge", 0.0)
    models = []
    for _, normal in folded.training():
        steady = normal.steadied(ridge) if ridge else normal
        models.append(normal.original(solve_at(steady, penalty)[:, None]))
    return on_original_scale(folded.split, models, scaling)


def on_original_scale(
    split: str, models: list[tuple[Array, Array]], scaling: Scaling
) -> FoldModels:
    """Return models of a view's columns, each with its intercept there, on the original scale."""
    found = []
    for b, intercept in models:
        coefficients, own = scaling.original(b[:, 0])
        found.append((coefficients, own + float(intercept[0])))
    return FoldModels.of(split, found)


@dataclass(frozen=True, eq=False)
class Assessing:
    """The assessment of models of folds on the rows of a view."""

    view: Federation
    scaling: Scaling
    family: Family
    models: Array
    shifts: Array
    split: str

    def run(self, intercept: bool) -> Dialogue[Assessment]:
        """Ask for sums over all rows, and compute what the family shows."""
        shown = self.family.measures
        fitted = None
        empty = 0.0
        if intercept and self.family.intercept:
            fitted = yield from self._recalibrate()
            empty = float(fitted.at[EMPTY, 0]) if fitted.known[EMPTY] else 0.0
        ranked = {"auroc", "concordance"} & set(shown)
        questions: list[Request[Any]] = [PredictionErrors(*self._asked, empty=empty)]
        if ranked:
            questions.append(PairsAt(*self._asked))
        sums, *paired = yield self._prepare(*questions)
        rows = sums.rows
        dispersion = self.dispersion(sums.errors / max(rows, 1))
        ratio = sums.errors / sums.empty if sums.empty > 0 else 1.0
        right = 0.0
        if paired and paired[0].comparable:
            right = paired[0].concordant / paired[0].comparable
        ranges = ScoreRanges(*self._asked, empty=empty, ratio=ratio, concordance=right)
        (counts,) = yield self._prepare(ranges)
        explained = None
        if sums.empty > 0:
            explained = around(1 - ratio, float(np.sqrt(counts.spread)) / sums.empty)
        pairs = concordance_of(paired[0], counts) if paired else None
        curves: tuple[SurvivalCurve, ...] = ()
        if "survival curves" in shown:
            curves = yield from self._curves(LAST_TIME * sums.times / max(rows, 1))
        sites = yield from self.ask_sites()
        return Assessment(
            rows=rows,
            how="",
            error=pool_errors(sums.errors / max(rows, 1), sites),
            explained=explained,
            auroc=pairs if "auroc" in shown else None,
            calibration=calibration_of(fitted, dispersion) if "calibration" in shown else None,
            groups=self.groups_of(counts, dispersion) if "calibration groups" in shown else (),
            roc=roc_of(counts) if "auroc" in shown else (),
            concordance=pairs if "concordance" in shown else None,
            curves=curves,
            sites=sites,
        )

    @property
    def _asked(self) -> tuple[Array, Array, str]:
        return self.models, self.shifts, self.split

    def dispersion(self, error: float) -> float:
        """Return the variance of responses over that of the loss, from the error per row."""
        return float(np.clip(error, *self.family.dispersion))

    def _prepare(self, *questions: Request[Any]) -> list[Prepared]:
        return [self.view.prepare(question) for question in questions]

    def _recalibrate(self) -> Dialogue[Recalibrated]:
        steps = recalibrating(self.family.quadratic)
        at = next(steps)
        while True:
            points = (*at[BOTH].tolist(), float(at[LARGE, 0]), float(at[EMPTY, 0]))
            (sums,) = yield self._prepare(RecalibrationAt(*self._asked, *points))
            try:
                at = steps.send((sums.slopes, sums.curvature))
            except StopIteration as end:
                found: Recalibrated = end.value
                return found

    def ask_sites(self, to: tuple[str, ...] = ()) -> Dialogue[tuple[SiteAssessment, ...]]:
        """Return every site's own measures, if sites answer alone."""
        if len(self.view.sites) < 2:
            return ()
        try:
            question = self.view.prepare(SiteMeasures(*self._asked, to=to), own=True)
            (replies,) = yield [question]
        except Refused:
            return ()
        return tuple(self._site(reply) for reply in replies)

    def _site(self, sums: SiteSums) -> SiteAssessment:
        numbers = zip(sums.values.tolist(), sums.errors.tolist(), sums.known.tolist(), strict=True)
        own = {
            name: (value, se)
            for name, (value, se, known) in zip(SITE_MEASURES, numbers, strict=True)
            if known
        }
        calibration = None
        shown = self.family.measures
        if "slope" in own and "calibration" in shown:
            # Sites estimate the noise of linear models.
            quadratic = self.family.quadratic
            wider = 1.0 if quadratic else float(np.sqrt(self.dispersion(own["error"][0])))
            intercept, slope = (
                around(own[name][0], wider * own[name][1]) for name in ("intercept", "slope")
            )
            calibration = Calibration(intercept, slope)
        symmetric = {n: around(*own[n]) for n in ("error", "explained") if n in own}
        fractions = {
            n: within_one(*own[n]) for n in ("auroc", "concordance") if n in own and n in shown
        }
        pairs = round(sums.pairs) if "concordance" in own else None
        return SiteAssessment(
            name=sums.site,
            rows=sums.rows,
            calibration=calibration,
            pairs=pairs,
            **symmetric,
            **fractions,
        )

    def groups_of(self, counts: ScoreCounts, dispersion: float) -> tuple[CalibrationGroup, ...]:
        """Return neighbouring twentieths joined to about ten groups of equal size."""
        found = []
        for own in join_ranges(counts.rows):
            rows = float(counts.rows[own].sum())
            # What one row adds to a cell is rounded, which may lead out of the range of means.
            least, most = self.family.loss.mean(np.array([-np.inf, np.inf]))
            means = (counts.expected[own].sum() / rows, counts.observed[own].sum() / rows)
            expected, observed = np.clip(means, least, most).tolist()
            if "auroc" in self.family.measures:
                low, high = wilson(observed, rows)
            else:
                eta = np.array([self.family.link(expected)])
                curvature = self.family.loss.row_curvature(eta, Response.of([observed]))
                half = Z * float(np.sqrt(dispersion * curvature[0] / rows))
                low, high = observed - half, observed + half
            centre = self.scaling.y_mean
            values = (expected + centre, observed + centre, low + centre, high + centre)
            found.append(CalibrationGroup(round(rows), *values))
        return tuple(found)

    def _curves(self, last: float) -> Dialogue[tuple[SurvivalCurve, ...]]:
        """Return survival by thirds of the risk at each site."""
        width = time_width(last / STRETCHES)
        (groups,) = yield self._prepare(GroupsAt(*self._asked, width))
        return survival_curves(groups, width, CELL_ROWS * len(self.view.sites))


def find_local(federation: Federation) -> tuple[Site, ...]:
    """Return the sites in this process; none if some are elsewhere, guarded or have secrets."""
    while isinstance(federation, Around):
        federation = federation.inner
    members = federation.members if isinstance(federation, InProcess) else ()
    sites = tuple(site for site in members if isinstance(site, Site) and not site.draw.secret)
    return sites if len(sites) == len(members) else ()


def leave_sites_out(
    sites: Sequence[Site], model: Model, view: Viewed, scaling: Scaling
) -> tuple[SiteAssessment, ...]:
    """Fit without each site in turn, and assess on its rows; sites without a fit are left out."""
    settings = settings_of_others(model)
    found: list[SiteAssessment] = []
    for site in sites:
        try:
            others = InProcess(other for other in sites if other is not site)
            own = fit_model(others, settings)
            models = FoldModels.of("", [(own.coefficients, own.intercept)]).on(scaling)
            assessing = Assessing(view, scaling, settings.response_family, *models, "")
            found += drive(assessing.ask_sites((site.name,)))
        except FedLassoError:
            continue
    return tuple(found)


def settings_of_others(model: Model) -> Settings:
    """Return the settings of a fit without one site: without inference, and as far as they apply.

    The penalty is chosen anew where second moments choose it, and is that of the model elsewhere.
    """
    settings = model.settings
    usual = Settings()
    changes: dict[str, Any] = {
        "procedure": None,
        "epochs": usual.epochs,
        "uploads": None,
        "cv": None,
        "site_weights": None,
        "intervals": (),
        "fdr": usual.fdr,
        "level": usual.level,
    }
    if settings.goal_in_force.is_lasso:
        changes["goal"] = lasso_goal().name
    if model.fit.evidence is None or settings.infers:
        given = {"penalty": model.fit.path_penalty, "validation": None, "rule": None}
        changes |= {"goal": lasso_goal().name, **given}
    return replace(settings, **changes)
