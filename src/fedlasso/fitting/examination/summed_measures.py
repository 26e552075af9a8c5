"""Measures of performance from sums over sites: calibration, ROC, concordance and survival."""

from collections.abc import Sequence

import numpy as np

from fedlasso.fitting.examination.assessment import (
    Calibration,
    Measure,
    SiteAssessment,
    SurvivalCurve,
)
from fedlasso.fitting.examination.intervals import around, greenwood, half_width, within_one
from fedlasso.numerics import Array
from fedlasso.sites.assessing import GroupSums, PairSums, ScoreCounts
from fedlasso.sites.recalibration import BOTH, LARGE, Recalibrated

# Relative difference of means up to which rows of all sites have the same weight.
SAME_MEAN = 1e-6
# Groups of a calibration plot, and their minimum of rows.
GROUPS = 10
GROUP_ROWS = 10


def calibration_of(fitted: Recalibrated | None, dispersion: float) -> Calibration | None:
    """Return the calibration in the large, and the slope, with intervals by Fisher information."""
    if fitted is None or not fitted.known[[BOTH, LARGE]].all():
        return None
    se = np.sqrt(dispersion * fitted.variances)
    intercept = around(float(fitted.at[LARGE, 0]), float(se[LARGE, 0]))
    return Calibration(intercept, around(float(fitted.at[BOTH, 1]), float(se[BOTH, 1])))


def pool_errors(value: float, sites: Sequence[SiteAssessment]) -> Measure:
    """Return the mean error over all rows, with an interval if that of each site is known.

    Where rows have weights, those of a site are not known, and neither is the interval.
    """
    errors = [site.error for site in sites if site.error is not None]
    halves = [half for error in errors if (half := half_width(error)) is not None]
    if not sites or len(halves) < len(sites):
        return Measure(value)
    rows = np.array([site.rows for site in sites])
    mean = rows @ [error.value for error in errors] / rows.sum()
    if not np.isclose(mean, value, rtol=SAME_MEAN):
        return Measure(value)
    half = float(np.linalg.norm(rows * halves) / rows.sum())
    return Measure(value, value - half, value + half)


def roc_of(counts: ScoreCounts) -> tuple[tuple[float, float], ...]:
    """Return false and true positive rates at the cuts between twentieths."""
    events = counts.observed
    others = counts.rows - counts.observed
    if not events.sum() or not others.sum():
        return ()
    false, true = (np.cumsum(own[::-1]) / own.sum() for own in (others, events))
    points = [(0.0, 0.0), *zip(false.tolist(), true.tolist(), strict=True)]
    return tuple(dict.fromkeys(points))


def concordance_of(pairs: PairSums | None, counts: ScoreCounts) -> Measure | None:
    """Return the fraction of comparable pairs in the right order."""
    if pairs is None or not pairs.comparable:
        return None
    value = pairs.concordant / pairs.comparable
    return within_one(value, float(np.sqrt(counts.rank_spread)) / pairs.comparable)


def join_ranges(rows: Array) -> list[Array]:
    """Return neighbouring twentieths joined to groups of about equal numbers of rows."""
    whole = float(rows.sum())
    groups: list[list[int]] = [[]]
    count = max(min(GROUPS, int(whole // GROUP_ROWS)), 1)
    for k in np.flatnonzero(rows):
        groups[-1].append(int(k))
        if rows[groups[-1]].sum() >= whole / count:
            groups.append([])
    last = groups.pop()
    if last and groups and rows[last].sum() < GROUP_ROWS:
        groups[-1] += last
    elif last:
        groups.append(last)
    return [np.array(group) for group in groups]


def survival_curves(sums: GroupSums, length: float, fewest: int) -> tuple[SurvivalCurve, ...]:
    """Return the Kaplan-Meier curve of every third of the risk, by intervals of time.

    Rows are censored at the end of their interval. A curve ends where fewer than `fewest` are at
    risk.
    """
    found = []
    thirds = [f"{which} third of the risk" for which in ("lowest", "middle", "highest")]
    for name, events, censored in zip(thirds, sums.events, sums.censored, strict=True):
        gone = events + censored
        at_risk = gone.sum() - (np.cumsum(gone) - gone)
        # The last interval is open.
        shown = int((at_risk[:-1] >= fewest).sum())
        if not shown:
            continue
        estimates = greenwood(events[:shown], at_risk[:shown])
        survival, low, high = (tuple(np.append(1.0, each).tolist()) for each in estimates)
        times = tuple((length * np.arange(shown + 1)).tolist())
        numbers = tuple(round(float(count)) for count in at_risk[: shown + 1])
        found.append(SurvivalCurve(name, times, survival, low, high, numbers))
    return tuple(found)
