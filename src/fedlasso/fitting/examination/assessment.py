"""Performance of a model on rows that it was not fitted to: what a model document stores."""

from dataclasses import dataclass


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

    `error` is the mean of the family's error over all rows; its interval adds up the variances
    within sites. `explained` is the fraction of the deviance of the model without columns that is
    explained, `auroc` and Harrell's `concordance` are over pairs of rows of one site, `roc` has
    false and true positive rates, and `curves` are survival by thirds of the risk. `sites` are the
    same models at every site, and `left_out` are models fitted without the site that they are
    assessed on.
    """

    rows: int
    how: str
    error: Measure | None = None
    explained: Measure | None = None
    auroc: Measure | None = None
    calibration: Calibration | None = None
    groups: tuple[CalibrationGroup, ...] = ()
    roc: tuple[tuple[float, float], ...] = ()
    concordance: Measure | None = None
    curves: tuple[SurvivalCurve, ...] = ()
    sites: tuple[SiteAssessment, ...] = ()
    left_out: tuple[SiteAssessment, ...] = ()
