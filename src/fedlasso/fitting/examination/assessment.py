"""Held-out performance of a model, by its family's measures."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from fedlasso.errors import Refused
from fedlasso.families import Family
from fedlasso.federation import Federation, Ledger, Reply, Request
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.context import penalty_of
from fedlasso.fitting.evidence import SplitEvidence, open_evidence
from fedlasso.fitting.gradient_tuning import search_penalty_curve
from fedlasso.fitting.model import Model
from fedlasso.numerics import Array
from fedlasso.sites import HeldOutErrors, standardise
from fedlasso.sites.assessing import (
    GroupsAt,
    GroupSums,
    PairsAt,
    PairSums,
    RecalibrationAt,
    ScoreCounts,
    ScoreRanges,
    ScoresAt,
)

# Vectors that may be sent to fit the model that is assessed, and its relative gap.
ASSESSED_UPLOADS = 400
ASSESSED_TOL = 1e-5
# Bins of the linear predictor, over so many standard deviations to either side.
BINS = 30
SPREAD = 3.0
# Groups of a calibration plot.
GROUPS = 10
# Intervals of time, up to so many mean times.
TIME_INTERVALS = 30
LAST_TIME = 3.0
# Newton steps to a calibration slope.
NEWTON_STEPS = 25
HOW = (
    "On held-out rows: a model was chosen and fitted in the same way without them, and without as "
    "many rows that chose its penalty. This model used all rows; expect slightly better "
    "predictions."
)
R = TypeVar("R", bound=Reply)


@dataclass(frozen=True)
class Measure:
    """An estimate with the ends of its 95% interval, if that is known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Calibration:
    """Calibration intercept and slope of the linear predictor; 0 and 1 for a calibrated model."""

    intercept: Measure
    slope: Measure


@dataclass(frozen=True)
class CalibrationGroup:
    """Rows of similar predictions: their number, the mean prediction and the mean response.

    `low` and `high` are the ends of the 95% interval of the mean response.
    """

    rows: int
    expected: float
    observed: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class SurvivalCurve:
    """The Kaplan-Meier curve of a group of rows: survival at `times`, with 95% intervals.

    `at_risk` are the numbers of rows at risk at the times.
    """

    name: str
    times: tuple[float, ...]
    shares: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    at_risk: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SiteAssessment:
    """The measures of one site; its concordance is over so many ``pairs`` of rows.

    `error` is the mean of the family's error over the rows.
    """

    name: str
    rows: int
    error: Measure | None = None
    explained: Measure | None = None
    auroc: Measure | None = None
    calibration: Calibration | None = None
    concordance: Measure | None = None
    pairs: int | None = None


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Performance on rows that the assessed models were not fitted to; `how` states which.

    `explained` is the fraction of the deviance of the model without columns that is explained,
    `concordance` is Harrell's over pairs of rows of one site, `roc` has false and true positive
    rates, and `curves` are survival by thirds of the risk. `sites` are the same models at every
    site, and `left_out` are models fitted without the site that they are assessed on.
    """

    rows: int
    how: str
    explained: Measure | None = None
    auroc: Measure | None = None
    calibration: Calibration | None = None
    groups: tuple[CalibrationGroup, ...] = ()
    roc: tuple[tuple[float, float], ...] = ()
    concordance: Measure | None = None
    curves: tuple[SurvivalCurve, ...] = ()
    sites: tuple[SiteAssessment, ...] = ()
    left_out: tuple[SiteAssessment, ...] = ()


def assess(ledger: Ledger, model: Model) -> Assessment:
    """Choose and fit once more without some rows, and assess the result on held-out rows.

    One half of the held-out rows chooses the penalty, if none was given; the other half assesses.
    """
    settings = model.settings
    form = penalty_of(settings, ledger.columns)
    lam = settings.penalty
    if lam is None:
        budget = Budget(ledger, ASSESSED_UPLOADS)
        splits = (settings.held_out,)
        evidence = SplitEvidence.open(ledger, splits, budget, form, **settings.scaling)
        lam = search_penalty_curve(evidence, settings.rule_in_force).lam
    view, scaling = standardise(ledger, settings.held_out, **settings.scaling)
    form = form.scaled(scaling.factors)
    fits = open_evidence(view, ASSESSED_UPLOADS, form)
    empty = fits.fit(form.at(fits.largest_penalty * 2), tol=ASSESSED_TOL).coefficients
    b = fits.fit(form.at(lam), tol=ASSESSED_TOL).coefficients
    return _Assessing(view, b, empty, settings.response_family).run()


@dataclass(frozen=True, eq=False)
class _Assessing:
    """The assessment of one model on the held-out rows of a view."""

    view: Federation
    b: Array
    empty: Array
    family: Family

    def run(self) -> Assessment:
        errors = self.view.total(HeldOutErrors(np.column_stack([self.b, self.empty])))
        rows = round(float(errors.counts[0]))
        null = float(errors.errors[1])
        explained = 1 - float(errors.errors[0]) / null if null > 0 else None
        scores = self.view.total(ScoresAt(self.b))
        mean = scores.scores / max(scores.rows, 1)
        sd = float(np.sqrt(max(scores.squares / max(scores.rows, 1) - mean**2, 0.0))) or 1.0
        ranges = ScoreRanges(self.b, mean - SPREAD * sd, 2 * SPREAD * sd / BINS, BINS)
        counts = self.view.total(ranges)
        shown = self.family.measures
        pairs = self.view.total(PairsAt(self.b)) if "concordance" in shown else None
        each_pairs = {} if pairs is None else self._each(PairsAt(self.b))
        each_counts = self._each(ranges) if "auroc" in shown else {}
        length = LAST_TIME * scores.times / max(scores.rows, 1) / TIME_INTERVALS or 1.0
        own_pairs = (
            SiteAssessment(
                name=name,
                rows=0,
                concordance=_measure(concordance_of(own)),
                pairs=round(own.comparable),
            )
            for name, own in each_pairs.items()
        )
        own_counts = (
            SiteAssessment(
                name=name,
                rows=round(float(own.rows.sum())),
                auroc=_measure(auroc_of(own)),
                calibration=self._recalibrate(name),
            )
            for name, own in each_counts.items()
        )
        return Assessment(
            rows=rows,
            how=HOW,
            explained=_measure(explained),
            auroc=_measure(auroc_of(counts)) if "auroc" in shown else None,
            calibration=self._recalibrate(None) if "calibration" in shown else None,
            groups=groups_of(counts) if "calibration groups" in shown else (),
            concordance=None if pairs is None else _measure(concordance_of(pairs)),
            curves=self._curves(ranges, counts, length) if "survival curves" in shown else (),
            sites=(*own_pairs, *own_counts),
        )

    def _each(self, request: Request[R]) -> dict[str, R]:
        """Return every site's own reply, if sites answer alone."""
        if len(self.view.sites) < 2:
            return {}
        try:
            replies = self.view.ask(request)
        except Refused:
            return {}
        return {reply.site: reply for reply in replies}

    def _recalibrate(self, site: str | None) -> Calibration | None:
        """Fit an intercept and a slope of the linear predictor, over all sites or at one."""
        at = np.array([0.0, 1.0])
        to = () if site is None else (site,)
        for _ in range(NEWTON_STEPS):
            request = RecalibrationAt(self.b, float(at[0]), float(at[1]), to=to)
            sums = self.view.total(request) if site is None else self.view.ask(request)[0]
            a, c, d = sums.curvature
            H = np.array([[a, c], [c, d]])
            if not np.isfinite(H).all() or np.linalg.cond(H) > 1e10:
                return None
            step = np.linalg.solve(H, sums.slopes)
            # Far from the optimum whole steps may be too long.
            step /= max(1.0, float(np.abs(step).max()) / 2)
            at = at - step
            if np.abs(step).max() < 1e-6:
                return Calibration(Measure(float(at[0])), Measure(float(at[1])))
        return None

    def _curves(
        self, ranges: ScoreRanges, counts: ScoreCounts, length: float
    ) -> tuple[SurvivalCurve, ...]:
        below = np.cumsum(counts.rows) / max(counts.rows.sum(), 1)
        edges = [ranges.low + ranges.width * (1 + int((below < k / 3).sum())) for k in (1, 2)]
        sums = self.view.total(GroupsAt(self.b, edges[0], edges[1], length, TIME_INTERVALS))
        return survival_curves(sums, length)


def _measure(value: float | None) -> Measure | None:
    return None if value is None else Measure(value)


def auroc_of(counts: ScoreCounts) -> float | None:
    """Return the area under the ROC curve from counts per bin."""
    events = counts.observed
    others = counts.rows - counts.observed
    if not events.sum() or not others.sum():
        return None
    below = np.cumsum(others) - others
    right = float(events @ (below + others / 2))
    return right / float(events.sum() * others.sum())


def concordance_of(pairs: PairSums) -> float | None:
    """Return the fraction of comparable pairs in the right order."""
    return pairs.concordant / pairs.comparable if pairs.comparable else None


def groups_of(counts: ScoreCounts) -> tuple[CalibrationGroup, ...]:
    """Return neighbouring bins joined to about ten groups of equal size."""
    rows = counts.rows
    whole = float(rows.sum())
    if not whole:
        return ()
    # The group of a bin is that of its middle row.
    group = np.minimum((np.cumsum(rows) - rows / 2) / whole * GROUPS, GROUPS - 1).astype(np.int64)
    found = []
    for k in range(GROUPS):
        own = group == k
        count = float(rows[own].sum())
        if count:
            expected = float(counts.expected[own].sum()) / count
            observed = float(counts.observed[own].sum()) / count
            found.append(CalibrationGroup(round(count), expected, observed))
    return tuple(found)


def survival_curves(sums: GroupSums, length: float) -> tuple[SurvivalCurve, ...]:
    """Return the Kaplan-Meier curve of every third of the risk, by intervals of time.

    Rows that are censored in an interval count as at risk for half of it.
    """
    found = []
    thirds = [f"{which} third of the risk" for which in ("lowest", "middle", "highest")]
    for name, events, censored in zip(thirds, sums.events, sums.censored, strict=True):
        gone = events + censored
        at_risk = gone.sum() - (np.cumsum(gone) - gone) - censored / 2
        # The last interval is open.
        hazard = np.divide(events, at_risk, out=np.zeros(len(events)), where=at_risk > 0)[:-1]
        survival = np.append(1.0, np.cumprod(1 - np.minimum(hazard, 1.0)))
        times = length * np.arange(len(survival))
        left = gone.sum() - (np.cumsum(gone) - gone)
        numbers = tuple(round(count) for count in left.tolist())
        found.append(
            SurvivalCurve(name, tuple(times.tolist()), tuple(survival.tolist()), at_risk=numbers)
        )
    return tuple(found)
