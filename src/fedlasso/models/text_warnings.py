"""What somebody must know before using a model, as lines of text: the gravest first."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedlasso.families import warn_binary
from fedlasso.fitting.examination.comparison import (
    STABLE,
    SUBSAMPLES,
    ComparedModel,
    name_alone,
    pool_error,
)
from fedlasso.fitting.examination.examine import Examination
from fedlasso.fitting.model import Model
from fedlasso.fitting.result import Status
from fedlasso.models.numbers import number
from fedlasso.numerics import Array

# A site disagrees when the common model's error there is this many times the error over all sites.
DISAGREES = 1.5
# A site is small with fewer rows, and so is a sample with fewer rows per coefficient.
FEW_ROWS = 20
ROWS_PER_COEFFICIENT = 10
# Relative gap above which a fit at one penalty is not the pooled Lasso.
LOOSE = 1e-6
# A coefficient of a curved loss that is larger, per standard deviation, has no end but that of the
# numbers.
ENDLESS = 30.0
ROUNDING = 1e-9


def warn_of_fit(model: Model, target: str) -> list[str]:
    """Return what the fit itself tells, without another question to the sites."""
    warnings = []
    if model.status is Status.CUT:
        warnings.append("the uploads ended too early: " + Status.CUT.value)
    gap = model.fit.certificate.relative_gap if model.fit.certificate else 0.0
    if model.fit.status is Status.SHORT and LOOSE < gap < np.inf:
        warnings.append(f"not yet the pooled Lasso ({model.fit.certificate}): give more uploads")
    active = int((model.standardised != 0).sum())
    if active == 0:
        warnings.append("no column is selected: every row gets the same prediction")
    curve = model.fit.curve
    last = curve is not None and 0 < curve.chosen == len(curve.penalties) - 1
    if last and model.status is not Status.CUT:
        warnings.append(
            "the best penalty is the last one that was tried, so a smaller one may do better; "
            "give a penalty to see"
        )
    if _is_binary(model):
        warnings.append(warn_binary(target))
    endless = _name_endless(model)
    if endless:
        warnings.append(
            f"{some_of(endless)}, which no penalty touches, tells the responses apart completely "
            "or nearly so: without a penalty the best coefficient is infinite; do not keep it"
        )
    if active and model.scaling.rows < ROWS_PER_COEFFICIENT * active:
        warnings.append(
            f"few rows: {model.scaling.rows} training rows for {active} "
            f"coefficient{'s' * (active > 1)}; expect other samples to select other columns"
        )
    sizes = zip(model.costs.sites, model.fit.problem.sizes, strict=True)
    small = [site for site, rows in sizes if rows < FEW_ROWS]
    if small:
        warnings.append(f"small sites: {some_of(small)} with fewer than {FEW_ROWS} training rows")
    if model.constant:
        warnings.append(f"constant, so left out with coefficient 0: {some_of(model.constant)}")
    return warnings


def _name_endless(model: Model) -> list[str]:
    """Columns that pay nothing and whose coefficients have run away."""
    if model.settings.response_family.quadratic:
        return []
    sizes = dict(zip(model.columns, np.abs(model.standardised).tolist(), strict=True))
    return [name for name in model.settings.keep if sizes.get(name, 0.0) > ENDLESS]


def _is_binary(model: Model) -> bool:
    """Whether every response is 0 or 1, as far as the second moments of the folds tell.

    The sum of y(y - 1) is then zero in every fold. The folds hold responses about their mean.
    """
    if model.fit.evidence is None:
        return False
    mean = model.scaling.y_mean
    ones = 0.0
    for fold in model.fit.evidence.folds:
        rows = fold.products[0, 0]
        total = fold.products[0, -1] + rows * mean
        squares = fold.products[-1, -1] + 2 * mean * total - rows * mean**2
        if abs(squares - total) > ROUNDING * rows:
            return False
        ones += total
    # Responses that are all next to zero, or all next to one, pass as well.
    return 0.5 < ones < model.fit.evidence.whole.rows - 0.5


def warn_of_examination(model: Model, found: Examination) -> list[str]:
    """Return at which sites the model fits badly, and which columns other rows would not select."""
    warnings = []
    if found.site_errors is not None:
        pooled = pool_error(found.site_errors)
        warnings += [
            f"site {error.name} disagrees: the common model's error there is "
            f"{error.mse / pooled:.1f} times the error over all sites"
            for error in found.site_errors
            if error.mse > DISAGREES * pooled
        ]
    if found.comparison is not None:
        warnings += _warn_of_comparison(model, found.comparison, found.alone)
    unstable = [row.name for row in found.stability or () if row.selected and row.share < STABLE]
    if unstable:
        warnings.append(
            f"unstable: {some_of(unstable)} {'is' if len(unstable) == 1 else 'are'} selected in "
            f"fewer than {STABLE:.0%} of {SUBSAMPLES} random halves of the rows"
        )
    return warnings


def _warn_of_comparison(
    model: Model, comparison: Sequence[ComparedModel], alone: Mapping[str, Array]
) -> list[str]:
    """Return which sites do better alone, and on which columns they disagree."""
    warnings = []
    common = comparison[0]
    rows = {row.name: row for row in comparison}
    for site in alone:
        mse = rows[name_alone(site)].mse
        if mse is None or common.mse is None or mse >= common.mse - (common.se or 0.0):
            continue
        warnings.append(
            f"site {site} alone predicts better than this model: mean squared error "
            f"{number(mse, 4)} on held-out rows of all sites, where the {common.name} has "
            f"{number(common.mse, 4)}"
        )
    if len(alone) > 1:
        signs = np.sign(list(alone.values()))
        both = (signs > 0).any(axis=0) & (signs < 0).any(axis=0) & (model.standardised != 0)
        if both.any():
            names = some_of([model.columns[k] for k in np.flatnonzero(both)])
            warnings.append(f"sites disagree on the sign of {names} when each fits alone")
    return warnings


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many there are beside."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
