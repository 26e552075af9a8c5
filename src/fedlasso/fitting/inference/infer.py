"""Inference after the Lasso: discoveries, intervals of named or selected columns, site weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from fedlasso.errors import CannotFit, FedLassoError, Refused
from fedlasso.federation import Federation, Ledger, ask_together, metered
from fedlasso.fitting.context import Context
from fedlasso.fitting.dialogue import Dialogue
from fedlasso.fitting.goal import lasso_goal
from fedlasso.fitting.inference.debiased import Start
from fedlasso.fitting.inference.estimates import CANNOT_PROMISE, Effects, Estimates
from fedlasso.fitting.inference.few_rows import FEW_ROWS
from fedlasso.fitting.inference.groups import Group
from fedlasso.fitting.inference.separation import check_bounded, free_unbounded
from fedlasso.fitting.result import Fit
from fedlasso.fitting.settings import Settings
from fedlasso.numerics import L1, Array, Penalty
from fedlasso.numerics.triangles import count_packed
from fedlasso.sites import (
    CLEARLY,
    LEVELS,
    ErrorAt,
    NoiseAbove,
    Scaling,
    SiteShift,
    SiteWeighted,
    Standardise,
    Viewed,
    WithSiteEffects,
)

# Vectors of p numbers beside second derivatives: slopes along directions, and further fits, of
# least squares and of other losses.
SLOPES = 15
REFITS = 10
CURVED_REFITS = 80
# Penalty of discoveries, as a fraction of the fit's, or of the largest useful one if that is
# larger: without any there is no certificate, and rounding limits it.
REFIT_PENALTY = 1e-4
SMALLEST_PENALTY = 1e-7
# If more of the variance of a linear predictor is unknown, odds, rates and hazards are known to a
# factor of 7 at best. The loss left per coefficient is less than one if responses separate.
UNKNOWN_VARIANCE = 4.0
SEPARATED = (
    "a few columns predict nearly every response (separation), so the best coefficients are "
    "unbounded and these data do not show how large effects are"
)
# Second derivative of a standardised column that does not vary within any site, but for rounding.
NO_CURVATURE = 1e-9
WIDE = (
    "there are more columns than rows: confidence intervals of named columns may be too narrow for "
    "this family"
)
UNBOUNDED = (
    "few rows or none bound the effect (separation), as if all or nearly all rows with a value of "
    "the column had the same response"
)
REPEATED = (
    f"{CANNOT_PROMISE} rows look repeated at {{}} sites, as several visits of a patient do, and "
    "they are assumed to be independent; name the patient's column with --cluster"
)
FEW_CLUSTERS = (
    f"{CANNOT_PROMISE} there are too few clusters for standard errors, which assume independent "
    "rows"
)
# A site's noise variance is estimated with this many additional rows of the common variance.
PRIOR_ROWS = 10.0


@dataclass(frozen=True, eq=False)
class Trust:
    """Inference about the columns of a model.

    Attributes
    ----------
    found : the discovered columns, if that was the goal
    groups : the discovered groups of nearly collinear columns, if that was the goal
    selected : the columns of the model, if their intervals were requested
    named : columns whose intervals were requested by name
    effects : posterior of the effects of all columns
    site_weights : weight of a row of each site, if sites were weighted
    factors : of the standardised columns that estimates refer to
    refit : the model of the discoveries, and of the most probable column of each group
    notes : what could not be done, and why
    """

    found: Estimates | None = None
    groups: tuple[Group, ...] = ()
    selected: Estimates | None = None
    named: Estimates | None = None
    effects: Effects | None = None
    site_weights: dict[str, float] | None = None
    factors: Array | None = None
    refit: Fit | None = None
    notes: tuple[str, ...] = ()

    @property
    def marked(self) -> bool:
        """Whether rates and levels cannot be promised, because assumptions clearly fail."""
        return any(note.startswith(CANNOT_PROMISE) for note in self.notes)


def count_vectors(settings: Settings, p: int) -> int:
    """Return how many vectors of p numbers inference takes."""
    if not settings.infers:
        return 0
    looks = 1 if settings.response_family.quadratic else 2
    return looks * (-(-count_packed(p) // p) + SLOPES) + count_refitting(settings)


def count_refitting(settings: Settings) -> int:
    """Return how many vectors of p numbers a further fit may take."""
    return REFITS if settings.response_family.quadratic else CURVED_REFITS


def infer(
    context: Context, fit: Fit, selected_columns: NDArray[np.bool_], noise_inflation: float = 1.0
) -> Trust:
    """Estimate the columns that the settings request or the model selects, from a fitted Lasso.

    The Lasso's shrinkage changes the second derivatives of a curved loss, so one step does not undo
    it. There, two further steps lead to the expected effects, and second derivatives are those at
    that point. Estimates of named columns start one step further.
    """
    inference = _Inference(context, fit)
    named = inference.named()
    settings = context.settings
    lasso = fit.coefficients
    seed = settings.seed
    sizes = inference.scaling.sizes
    start = Start.at(inference.view, inference.penalty, lasso, noise_inflation, sizes)
    inference.check_varies_within(named, start)
    effects = start.find_effects(seed)
    other = start.expect(effects)
    factor = 1.0
    if not settings.response_family.quadratic:
        near = start.move(effects)
        sized = near.find_effects(seed)
        if sized.variance > UNKNOWN_VARIANCE and not settings.requested_goal.infers:
            start = inference.free_unbounded(start)
            near = start.move(start.find_effects(seed))
            sized = near.find_effects(seed)
        if sized.variance > UNKNOWN_VARIANCE or start.loss < start.active:
            if settings.requested_goal.infers:
                remedy = f"use --goal {lasso_goal().name}, without --interval"
                raise CannotFit(f"no discoveries: {SEPARATED}; {remedy}")
            return Trust(notes=(f"no intervals: {SEPARATED}",))
        start = near.move(sized).renew()
        other = lasso
        effects = start.find_effects(seed)
        factor = start.attenuation(effects)
    start = inference.with_batches(start)
    effects = inference.temper(start, inference.lower(effects))
    found = selected = by_name = refit = None
    groups: tuple[Group, ...] = ()
    if settings.requested_goal.infers:
        likely, groups = effects.discover(settings.fdr)
        found = inference.judge(start, likely, effects, other).stretch(factor)
        refit = inference.refit(start, likely, groups)
    if settings.infers_selected:
        used = selected_columns & inference.penalised
        selected = inference.judge(start, used, effects, other).stretch(factor)
    if named.size:
        if not settings.response_family.quadratic and start.problem.p > start.problem.m:
            inference.notes.append(WIDE)
        near = start if settings.response_family.quadratic else start.move(effects)
        by_name = near.look(named, other=other, effects=effects, by_site=True)
        by_name = inference.check_bounded(start, inference.note_refusal(by_name)).stretch(factor)
    notes = tuple(dict.fromkeys(inference.notes))
    factors = inference.scaling.factors
    return Trust(
        found, groups, selected, by_name, effects, factors=factors, refit=refit, notes=notes
    )


class _Inference:
    """What the steps of an inference have in common."""

    def __init__(self, context: Context, fit: Fit) -> None:
        view, self.scaling = fit.standardised
        self.settings = settings = context.settings
        self.view = Viewed(context.ledger, view)
        self.columns = context.ledger.columns
        self.requested = settings.named
        self.selects = settings.requested_goal.infers or settings.infers_selected
        # Goals may have penalty weights of their own; without a penalty, all columns are tested.
        self.penalty: Penalty = L1(1.0) if settings.plain else fit.penalty.at(1.0)
        self.strength = fit.penalty.lam
        self.penalised: NDArray[np.bool_] = ~self.penalty.free(len(self.columns))
        self.tests = int((self.penalised & (self.scaling.factors != 0)).sum())
        self.notes: list[str] = []

    def lower(self, effects: Effects) -> Effects:
        """Lower the probabilities about which runs of the sampler disagree, and note it."""
        lowered = effects.lower()
        count = int((lowered.probabilities < effects.probabilities).sum())
        if count:
            columns = (
                "1 column: its probability is"
                if count == 1
                else (f"{count} columns: their probabilities are")
            )
            self.notes.append(f"runs of the sampler disagree about {columns} lowered")
        return lowered

    def judge(
        self, start: Start, which: NDArray[np.bool_], effects: Effects, other: Array
    ) -> Estimates:
        """Estimate columns that the rows themselves have picked, by their probable effects."""
        columns = np.flatnonzero(which)
        estimates = start.look(columns, self.tests, other=other, effects=effects, by_site=True)
        return self.note_refusal(replace(estimates, effects=effects.take(which)))

    def refit(self, start: Start, likely: NDArray[np.bool_], groups: Sequence[Group]) -> Fit:
        """Fit columns, groups by one column, and unpenalised columns, nearly without a penalty."""
        weights = np.where(self.penalised, np.inf, 0.0)
        weights[likely] = 1.0
        weights[[group.main for group in groups]] = 1.0
        largest = float(np.abs(start.H @ start.b - start.slopes).max())
        lam = max(REFIT_PENALTY * self.strength, SMALLEST_PENALTY * largest)
        uploads = count_refitting(self.settings)
        return start.refit(L1(lam, weights), uploads, self.settings.tol)

    def with_batches(self, start: Start) -> Start:
        """Take errors from batches of rows, if the sites send them."""
        try:
            start = start.with_batches(self.settings.seed)
        except Refused as refusal:
            self.notes.append(f"standard errors assume equal noise in all rows: {refusal}")
        if start.few_rows:
            self.notes.append(FEW_ROWS.format(start.few_rows))
        if start.repeated:
            self.notes.append(REPEATED.format(f"{start.repeated} of {len(self.view.sites)}"))
        if start.clusters and not start.batches:
            self.notes.append(FEW_CLUSTERS)
        return start

    def temper(self, start: Start, effects: Effects) -> Effects:
        """Lower probabilities of effects for noise that is not what the model assumes."""
        if not self.selects:
            return effects
        effects, largest = start.temper(effects)
        if largest > 1:
            reason = "dependent rows" if start.clusters else "noise that depends on columns"
            self.notes.append(
                f"because of {reason}, the variance of some estimates is up to {largest:.2g} times "
                "that of equal, independent noise: probabilities and intervals allow for it"
            )
        return effects

    def free_unbounded(self, start: Start) -> Start:
        """Leave columns that separate the responses alone unpenalised, and note it."""
        start = free_unbounded(start)
        free = start.problem.penalty.free(len(self.columns))
        freed = [self.columns[k] for k in np.flatnonzero(free & self.penalised)]
        self.penalised = ~free
        # Each requested column has a sentence of its own.
        if names := [name for name in freed if name not in self.requested]:
            self.notes.append(f"no interval of {', '.join(names)}: {UNBOUNDED}")
        return start

    def check_bounded(self, start: Start, estimates: Estimates) -> Estimates:
        """Leave out columns whose effects few rows bound, or none."""
        try:
            return check_bounded(start, estimates)
        except Refused as refusal:
            self.notes.append(f"named columns were not checked for separation: {refusal}")
        return estimates

    def note_refusal(self, estimates: Estimates) -> Estimates:
        """Note why sites do not send their own estimates."""
        if estimates.own_refused:
            self.notes.append(f"sites' own estimates are not shown: {estimates.own_refused}")
        return estimates

    def named(self) -> NDArray[np.int64]:
        """Return the indices of the columns whose intervals are requested by name."""
        places = [self.columns.index(name) for name in self.requested]
        for place in places:
            if self.scaling.factors[place] == 0:
                raise FedLassoError(
                    f"column {self.columns[place]!r} is the same in every row of all sites, so it "
                    "has no interval; leave it out of --interval"
                )
        return np.unique(np.array(places, dtype=np.int64))

    def check_varies_within(self, named: NDArray[np.int64], start: Start) -> None:
        """Refuse intervals of columns that the sites' own intercepts explain."""
        for place in named[np.diagonal(start.H)[named] < NO_CURVATURE]:
            raise FedLassoError(
                f"column {self.columns[place]!r} varies only between sites, and every site has its "
                "own intercept, so it has no interval; leave it out of --interval, or use "
                "--no-site-effects"
            )


def noise_steps(ledger: Federation, view: Standardise, b: Array) -> Dialogue[Array]:
    """Ask each site for the sum of squares of a model's residuals about their mean there.

    A shift of a site's responses is not noise.
    """
    apart = without_shifts(ledger, view)
    _, replies = yield [ledger.prepare(apart.view, own=True), apart.prepare(ErrorAt(b), own=True)]
    return np.array([reply.value for reply in replies])


def find_site_weights(
    sites: Sequence[str], errors: Array, scaling: Scaling, b: Array, *, always: bool
) -> dict[str, float] | None:
    """Return the inverse of each site's noise variance, or None if sites hardly differ.

    `errors` are sums of squared residuals of every site. Variances of few rows are shrunk towards
    the common one.
    """
    sizes = np.array(scaling.sizes, dtype=np.float64)
    free = 1 - np.count_nonzero(b) / sizes.sum()
    if len(sizes) < 2 or free <= 0 or not errors.sum() > 0:
        return None
    # Every site's mean takes a degree of freedom.
    left = free * (sizes - 1)
    common = errors.sum() / left.sum()
    variances = (errors + PRIOR_ROWS * common) / (left + PRIOR_ROWS)
    differ = np.abs(np.log(variances / common)) > CLEARLY * np.sqrt(2 / (sizes + PRIOR_ROWS))
    if not (always or differ.any()):
        return None
    return dict(zip(sites, (variances.min() / variances).tolist(), strict=True))


def find_noise_inflation(view: Viewed, scaling: Scaling, b: Array) -> float:
    """Return an upper bound of the noisiest site's variance over the average.

    Sites send only a total: how many of them are above some levels. If even that is refused, the
    bound is that no site's sum of squares exceeds that of all sites together.
    """
    rows = sum(scaling.sizes)
    largest = rows / min(scaling.sizes)
    if len(scaling.sizes) < 2:
        return 1.0
    try:
        definition = view.inner.prepare(view.view, own=True)
        variance = ask_together([definition, view.prepare(ErrorAt(b))])[1].value / rows
        above = view.total(NoiseAbove(b, variance)).above > 0
    except Refused:
        return largest
    if above.all():
        return largest
    # The noisiest site lies between the last level that it is above and the next.
    return float(min(LEVELS[int(above.argmin())], largest))


def shift_steps(view: Federation, b: Array) -> Dialogue[float]:
    """Return the p-value of a test of whether sites' mean residuals of a model are all zero."""
    sites = len(view.sites)
    if sites < 2:
        return 1.0
    (sent,) = yield [view.prepare(SiteShift(b))]
    return float(chdtrc(sites - 1, sent.value))


def without_shifts(ledger: Federation, view: Standardise) -> Viewed:
    """Return a view of the sites with an intercept for each; sites are to define it."""
    return Viewed(ledger, replace(view, effects=True))


def separate_sites(ledger: Ledger, effects: bool, weights: dict[str, float] | None) -> Ledger:
    """Return the sites with an intercept for each, or with rows that count by these weights."""
    if effects:
        ledger = metered(WithSiteEffects(ledger))
    return ledger if weights is None else metered(SiteWeighted(ledger, weights))
