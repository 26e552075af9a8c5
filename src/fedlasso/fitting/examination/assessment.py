"""How well a model predicts rows that had no part in it, by what the response is."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from fedlasso.errors import Refused
from fedlasso.families import Family
from fedlasso.federation import Federation, Ledger, Reply, Request
from fedlasso.fitting.at_penalty import penalty_of
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.evidence import SplitEvidence, open_evidence
from fedlasso.fitting.model import Model
from fedlasso.fitting.tuning import search_penalty_curve
from fedlasso.numerics import Array
from fedlasso.sites import HeldOutErrors, standardise
from fedlasso.sites.assessing import (
    GroupsAt,
    GroupSums,
    PairsAt,
    PairSums,
    RecalibrationAt,
    RecalibrationSums,
    ScoreCounts,
    ScoreRanges,
    ScoresAt,
)

# Vectors that may be sent to fit the model that is judged.
UPLOADS = 400
# Relative gap of that fit.
TOL = 1e-5
# Ranges of the linear predictor, over so many standard deviations to either side.
RANGES = 30
SPREAD = 3.0
# Ranges that a calibration plot has.
SHOWN = 10
# Stretches of time, which reach to so many mean times.
STRETCHES = 30
LONGEST = 3.0
STEPS = 25
R = TypeVar("R", bound=Reply)


@dataclass(frozen=True)
class Calibration:
    """Responses against predictions: what must be added and multiplied on the linear predictor.

    A model that is neither too bold nor too timid has an intercept of 0 and a slope of 1.
    """

    intercept: float
    slope: float


@dataclass(frozen=True)
class CalibrationGroup:
    """Rows of like predictions: how many, the mean prediction and the mean response."""

    rows: int
    expected: float
    observed: float


@dataclass(frozen=True)
class SurvivalCurve:
    """The share of a group of rows without an event by time (Kaplan and Meier)."""

    name: str
    times: tuple[float, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class SiteAssessment:
    """The same at one site, as far as it tells; ``pairs`` of rows are behind its concordance."""

    name: str
    auroc: float | None = None
    calibration: Calibration | None = None
    concordance: float | None = None
    pairs: int | None = None


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """How a model that was chosen and fitted in the same way predicts rows it has never seen.

    Attributes
    ----------
    rows : rows that had no part in choosing or fitting it
    explained : the share of the deviance of the model without columns that it explains
    auroc : the chance that of two rows the one with the event has the higher prediction
    calibration, groups : predictions against responses
    concordance : the chance that of two rows of one site the one with the higher risk is first
    curves : survival by thirds of the risk
    sites : the same per site, where sites tell
    """

    rows: int
    explained: float | None = None
    auroc: float | None = None
    calibration: Calibration | None = None
    groups: tuple[CalibrationGroup, ...] = ()
    concordance: float | None = None
    curves: tuple[SurvivalCurve, ...] = ()
    sites: tuple[SiteAssessment, ...] = ()


def assess(ledger: Ledger, model: Model) -> Assessment:
    """Choose and fit once more without some rows, and judge the result on rows with no part in it.

    Of the rows that are held out one half chooses the penalty, where none was given, and the other
    half judges.
    """
    settings = model.settings
    form = penalty_of(settings, ledger.columns)
    lam = settings.penalty
    if lam is None:
        budget = Budget(ledger, UPLOADS)
        splits = (settings.held_out,)
        evidence = SplitEvidence.open(ledger, splits, budget, form, **settings.scaling)
        lam = search_penalty_curve(evidence, settings.rule_in_force).lam
    view, scaling = standardise(ledger, settings.held_out, **settings.scaling)
    form = form.scaled(scaling.factors)
    fits = open_evidence(view, UPLOADS, form)
    empty = fits.fit(form.at(fits.largest_penalty * 2), tol=TOL).coefficients
    b = fits.fit(form.at(lam), tol=TOL).coefficients
    return _Judging(view, b, empty, settings.response_family).run()


class _Judging:
    """One model under judgement on the held-out rows of a view."""

    def __init__(self, view: Federation, b: Array, empty: Array, family: Family) -> None:
        self.view = view
        self.b = b
        self.empty = empty
        self.family = family

    def run(self) -> Assessment:
        errors = self.view.total(HeldOutErrors(np.column_stack([self.b, self.empty])))
        rows = round(float(errors.counts[0]))
        null = float(errors.errors[1])
        explained = 1 - float(errors.errors[0]) / null if null > 0 else None
        scores = self.view.total(ScoresAt(self.b))
        mean = scores.scores / max(scores.rows, 1)
        sd = float(np.sqrt(max(scores.squares / max(scores.rows, 1) - mean**2, 0.0))) or 1.0
        ranges = ScoreRanges(self.b, mean - SPREAD * sd, 2 * SPREAD * sd / RANGES, RANGES)
        counts = self.view.total(ranges)
        shown = self.family.measures
        pairs = self.view.total(PairsAt(self.b)) if "concordance" in shown else None
        each_pairs = {} if pairs is None else self._each(PairsAt(self.b))
        each_counts = self._each(ranges) if "auroc" in shown else {}
        length = LONGEST * scores.times / max(scores.rows, 1) / STRETCHES or 1.0
        return Assessment(
            rows=rows,
            explained=explained,
            auroc=auroc_of(counts) if "auroc" in shown else None,
            calibration=self._recalibrate(None) if "calibration" in shown else None,
            groups=groups_of(counts) if "calibration groups" in shown else (),
            concordance=None if pairs is None else concordance_of(pairs),
            curves=self._curves(ranges, counts, length) if "survival curves" in shown else (),
            sites=(
                *(
                    SiteAssessment(
                        name, concordance=concordance_of(own), pairs=round(own.comparable)
                    )
                    for name, own in each_pairs.items()
                ),
                *(
                    SiteAssessment(name, auroc=auroc_of(own), calibration=self._recalibrate(name))
                    for name, own in each_counts.items()
                ),
            ),
        )

    def _each(self, request: Request[R]) -> dict[str, R]:
        """Every site's own reply, where sites answer alone."""
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
        for _ in range(STEPS):
            request = RecalibrationAt(self.b, float(at[0]), float(at[1]))
            sums: RecalibrationSums
            if site is None:
                sums = self.view.total(request)
            else:
                (sums,) = self.view.ask(
                    RecalibrationAt(self.b, float(at[0]), float(at[1]), to=(site,))
                )
            a, c, d = sums.curvature
            H = np.array([[a, c], [c, d]])
            if not np.isfinite(H).all() or np.linalg.cond(H) > 1e10:
                return None
            step = np.linalg.solve(H, sums.slopes)
            # Far from the optimum whole steps may lead too far.
            step /= max(1.0, float(np.abs(step).max()) / 2)
            at = at - step
            if np.abs(step).max() < 1e-6:
                return Calibration(float(at[0]), float(at[1]))
        return None

    def _curves(
        self, ranges: ScoreRanges, counts: ScoreCounts, length: float
    ) -> tuple[SurvivalCurve, ...]:
        shares = np.cumsum(counts.rows) / max(counts.rows.sum(), 1)
        edges = [ranges.low + ranges.width * (1 + int((shares < k / 3).sum())) for k in (1, 2)]
        sums = self.view.total(GroupsAt(self.b, edges[0], edges[1], length, STRETCHES))
        return survival_curves(sums, length)


def auroc_of(counts: ScoreCounts) -> float | None:
    """Return the area under the receiver operating characteristic from counts per range."""
    events = counts.observed
    others = counts.rows - counts.observed
    if not events.sum() or not others.sum():
        return None
    below = np.cumsum(others) - others
    right = float(events @ (below + others / 2))
    return right / float(events.sum() * others.sum())


def concordance_of(pairs: PairSums) -> float | None:
    """Return the share of comparable pairs that are in the right order."""
    return pairs.concordant / pairs.comparable if pairs.comparable else None


def groups_of(counts: ScoreCounts) -> tuple[CalibrationGroup, ...]:
    """Return neighbouring ranges joined to about ten groups of as many rows."""
    rows = counts.rows
    whole = float(rows.sum())
    if not whole:
        return ()
    # The group of a range is that of its middle row.
    group = np.minimum((np.cumsum(rows) - rows / 2) / whole * SHOWN, SHOWN - 1).astype(np.int64)
    found = []
    for k in range(SHOWN):
        own = group == k
        count = float(rows[own].sum())
        if count:
            expected = float(counts.expected[own].sum()) / count
            observed = float(counts.observed[own].sum()) / count
            found.append(CalibrationGroup(round(count), expected, observed))
    return tuple(found)


def survival_curves(sums: GroupSums, length: float) -> tuple[SurvivalCurve, ...]:
    """Return Kaplan and Meier's curve of every third of the risk, by stretches of time.

    Rows that are censored in a stretch count as at risk for half of it.
    """
    found = []
    for name, events, censored in zip(
        ("lowest third of the risk", "middle third of the risk", "highest third of the risk"),
        sums.events,
        sums.censored,
        strict=True,
    ):
        gone = events + censored
        at_risk = gone.sum() - (np.cumsum(gone) - gone) - censored / 2
        # The last stretch is open.
        hazard = np.divide(events, at_risk, out=np.zeros(len(events)), where=at_risk > 0)[:-1]
        shares = np.append(1.0, np.cumprod(1 - np.minimum(hazard, 1.0)))
        times = length * np.arange(len(shares))
        found.append(SurvivalCurve(name, tuple(times.tolist()), tuple(shares.tolist())))
    return tuple(found)
