"""A model as lines of text: a summary for the terminal, and warnings, the most serious first."""

from collections.abc import Mapping

import numpy as np

from fedlasso.families import warn_binary
from fedlasso.fitting.examination.comparison import (
    STABLE,
    SUBSAMPLES,
    held_out_errors,
    name_alone,
    training_errors,
)
from fedlasso.fitting.examination.examine import Examination
from fedlasso.fitting.model import SURELY_SHIFTED, Model
from fedlasso.fitting.result import Status
from fedlasso.models.document import CHOSE, GIVEN, ModelDocument
from fedlasso.models.inference_document import ColumnEstimate, TrustDocument, is_refitted
from fedlasso.models.numbers import counted, number, some_of

# Rows of a table on the terminal.
TERMINAL_ROWS = 20
# A site disagrees when the common model's error there is this many times the error over all sites.
DISAGREES = 1.5
# A site is small with fewer rows, and so is a sample with fewer rows per coefficient.
SMALL_SITE = 20
ROWS_PER_COEFFICIENT = 10
# Relative gap above which a fit at one penalty is not the pooled Lasso.
LOOSE = 1e-6
# A larger unpenalised coefficient of a curved loss, per standard deviation, means separation.
SEPARATING = 30.0
# A model explains so much of the outcome only if a column contains it: of squares, of deviance.
LEAKS = (0.999, 0.95)
# Relative rounding error of sums over a fold.
SUM_ROUNDING = 1e-9


def describe_model(document: ModelDocument) -> str:
    """Return a model in a few lines, as the terminal prints it."""
    lines = [describe_fit(document), *_coefficient_lines(document)]
    rows = document.coefficients
    if len(rows) > TERMINAL_ROWS:
        lines.append(f"  ... and {len(rows) - TERMINAL_ROWS} more in coefficients.csv")
    return "\n".join(lines)


def describe_fit(document: ModelDocument) -> str:
    """Return the same without the coefficients."""
    rows = document.coefficients
    settings = document.settings
    # That uploads ended too early comes first.
    lines = [document.status_text] if document.status == Status.CUT.name else []
    lines += [
        f"{document.schema.target}: {len(rows)} of {document.columns} columns, "
        f"{document.rows.training} training rows at {counted(len(document.sites), 'site')}",
        f"penalty (lambda) {document.penalty:.4g}, {document.penalty_text}",
        f"certificate: {document.certificate}",
        document.why,
    ]
    if error := document.error:
        family = settings.response_family
        explained = "" if error.r2 is None else f", {family.explained_name} {error.r2:.3f}"
        value = document.error_text("95% interval ")
        lines.append(f"{family.error_name}: {value}{explained}, on {error.rows}")
    elif lasso := _describe_lasso(document):
        lines.append(lasso)
    if document.trust is not None:
        lines += _trust_lines(document.trust)
    lines += [f"cost {what}: {text}" for what, text in document.cost_texts.items()]
    if document.schema.classes:
        zero, one = document.schema.classes
        lines.append(f"classes: {one!r} is 1, {zero!r} is 0")
    if settings.keep:
        lines.append(f"never penalised: {', '.join(settings.keep)}")
    if settings.groups:
        lines.append(f"selected together: {document.groups_text}")
    if settings.bounds:
        lines.append(document.bounds_text)
    if document.site_effects:
        lines.append("site effects: predictions use the mean of the sites' intercepts")
    return "\n".join(lines)


def _describe_lasso(document: ModelDocument) -> str:
    """Return the error of the Lasso that a model comes from or misses, if only that is known."""
    found = document.assessment
    if found is None or found.error is None:
        return ""
    what = f"the {document.settings.model_name} at this penalty"
    if is_refitted(document.trust):
        what = "the Lasso that the discoveries come from"
    family = document.settings.response_family
    error = found.error
    value = number(error.value, 4)
    if error.low is not None and error.high is not None:
        value += f" (95% interval {number(error.low, 4)} to {number(error.high, 4)})"
    if found.explained is not None:
        value += f", {family.explained_name} {found.explained.value:.3f}"
    rows = CHOSE if document.settings.penalty is None else GIVEN
    return f"{family.error_name} of {what}: {value}, on {rows}"


def _trust_lines(trust: TrustDocument) -> list[str]:
    lines = [trust.summary] if trust.summary else []
    lines += trust.marks
    groups = (("discovered", trust.found), ("selected", trust.selected), ("requested", trust.named))
    lines += [
        f"{label}: {row.name} {_interval_text(row, trust.level)}, {' '.join(row.evidence)}"
        for label, rows in groups
        for row in rows[:TERMINAL_ROWS]
    ]
    if trust.selected or trust.named:
        lines.append("these estimates, unlike the coefficients below, are without shrinkage")
    lines += [
        f"discovered: {group.text}, probability of an effect {group.evidence}; in the model "
        f"{group.main} represents them"
        for group in trust.groups[:TERMINAL_ROWS]
    ]
    lines += [f"requested: {sentence}" for sentence in trust.without_interval[:TERMINAL_ROWS]]
    if trust.site_weights is not None:
        weights = ", ".join(f"{site} {number(own, 2)}" for site, own in trust.site_weights.items())
        where = "" if trust.weighted_model else " in inference"
        lines.append(f"row weights{where} by inverse noise variance: {weights}")
    return [*lines, *trust.other_notes]


def _interval_text(row: ColumnEstimate, level: float) -> str:
    """Return an estimate with its interval; one that is zero alone does not contain it."""
    name = f"{level:.0%} {row.interval_name}"
    if row.zero_alone:
        return f"{name} zero alone"
    return f"{number(row.value, 3)}, {name} {number(row.low, 3)} to {number(row.high, 3)}"


def _coefficient_lines(document: ModelDocument) -> list[str]:
    heads, lines = document.coefficient_table(TERMINAL_ROWS)
    if not lines:
        return []
    names = ["", *(row.name for row in document.coefficients)]
    about = [f"{document.ratio}s of {document.ratio_subject}"] if document.ratio else []
    rows = [heads, *lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    first = max(map(len, names[: len(rows)]))
    return about + [
        "  ".join([f"  {name:{first}}", *map(str.rjust, row, widths)])
        for name, row in zip(names, rows, strict=False)
    ]


def warn_of_fit(model: Model, target: str) -> list[str]:
    """Return warnings from the fit itself, without further requests to the sites."""
    warnings = []
    if model.status is Status.CUT:
        warnings.append("the search ended too early: " + Status.CUT.value)
    gap = model.fit.certificate.relative_gap if model.fit.certificate else 0.0
    if model.fit.status is Status.SHORT and LOOSE < gap < np.inf:
        remedy = "allow more uploads or round trips"
        name = model.settings.procedure
        if not model.settings.certifies:
            remedy = f"more uploads may not help {name}; without --procedure the fit reaches it"
        warnings.append(f"not the pooled Lasso ({model.fit.certificate}): {remedy}")
    active = int((model.standardised != 0).sum())
    if active == 0:
        warnings.append("no column is selected: every row gets the same prediction")
    curve = model.fit.curve
    if (
        curve is not None
        and 0 < curve.chosen == len(curve.penalties) - 1
        and not curve.risen
        and model.status is not Status.CUT
    ):
        warnings.append(
            "the best penalty is the smallest one tried, so a still smaller one may do better; fit "
            "again with a given penalty to check"
        )
    if _is_binary(model):
        warnings.append(warn_binary(target))
    sizes = dict(zip(model.columns, np.abs(model.standardised).tolist(), strict=True))
    separated = [name for name in model.settings.keep if sizes.get(name, 0.0) > SEPARATING]
    if separated and not model.settings.response_family.quadratic:
        warnings.append(
            f"{some_of(separated)}: never penalised, and separates the responses completely or "
            "nearly so, so the best coefficient is infinite; do not keep it"
        )
    if active and model.scaling.rows < ROWS_PER_COEFFICIENT * active:
        warnings.append(
            f"few rows: {model.scaling.rows} training rows for {active} "
            f"coefficient{'s' * (active > 1)}; expect other samples to select other columns"
        )
    counts = zip(model.costs.sites, model.fit.problem.sizes, strict=True)
    if small := [site for site, rows in counts if rows < SMALL_SITE]:
        warnings.append(f"small sites: {some_of(small)} with fewer than {SMALL_SITE} training rows")
    if model.constant:
        warnings.append(f"constant, so left out with coefficient 0: {some_of(model.constant)}")
    return warnings


def warn_of_leak(document: ModelDocument, leaks: Mapping[str, str] | None = None) -> list[str]:
    """Return a warning if the model explains nearly all of the outcome, after those of columns.

    `leaks` are warnings of columns by name, from the records.
    """
    known = list((leaks or {}).values())
    family = document.settings.response_family
    explained = None if document.error is None else document.error.r2
    if explained is None or explained < LEAKS[not family.quadratic] or not document.coefficients:
        return known
    first = document.coefficients[0].name
    if leaks and first in leaks:
        return known
    return [
        *known,
        f"{family.explained_name} is {explained:.3f}: {first!r} may contain "
        f"{document.schema.target!r}; --drop it unless it is known before the outcome",
    ]


def _is_binary(model: Model) -> bool:
    """Whether every response is 0 or 1, as far as the second moments of the folds show.

    The sum of y(y - 1) is then zero in every fold. Moments are about the mean response.
    """
    if model.fit.evidence is None:
        return False
    mean = model.scaling.y_mean
    ones = 0.0
    for fold in model.fit.evidence.folds:
        rows = fold.products[0, 0]
        total = fold.products[0, -1] + rows * mean
        squares = fold.products[-1, -1] + 2 * mean * total - rows * mean**2
        if abs(squares - total) > SUM_ROUNDING * rows:
            return False
        ones += total
    # Responses that are all near zero, or all near one, also pass the test above.
    return 0.5 < ones < model.fit.evidence.whole.rows - 0.5


def warn_of_examination(model: Model, found: Examination) -> list[str]:
    """Return at which sites the model fits badly, and which columns are unstable or disputed."""
    warnings = []
    errors = held_out_errors(found.assessment) or training_errors(found.site_errors)
    # Partial likelihoods of sites with other numbers of rows or events are not comparable.
    if errors and model.settings.response_family.intercept:
        *sites, everywhere = errors
        warnings += [
            f"site {error.name} disagrees: the common model's error there is "
            f"{error.mse / everywhere.mse:.1f} times the error over all sites"
            for error in sites
            if error.mse > DISAGREES * everywhere.mse > 0
        ]
    if found.shift is not None and found.shift < SURELY_SHIFTED:
        warnings.append(
            "sites' mean responses differ beyond what the columns explain "
            f"(p = {found.shift:.1g}); --site-effects gives every site its own intercept"
        )
    if found.comparison is not None:
        # The first compared model represents this one.
        common = found.comparison[0]
        compared = {row.name: row.mse for row in found.comparison}
        for site in found.alone:
            mse = compared[name_alone(site)]
            if mse is None or common.mse is None or mse >= common.mse - (common.se or 0.0):
                continue
            warnings.append(
                f"site {site} alone predicts better than this model: mean squared error "
                f"{number(mse, 4)} on held-out rows of all sites, against {number(common.mse, 4)} "
                f"of the {common.name}"
            )
    if len(found.alone) > 1:
        signs = np.sign(list(found.alone.values()))
        both = (signs > 0).any(axis=0) & (signs < 0).any(axis=0) & (model.standardised != 0)
        if names := [model.columns[k] for k in np.flatnonzero(both)]:
            warnings.append(f"sites disagree on the sign of {some_of(names)} when each fits alone")
    if unstable := [r.name for r in found.stability or () if r.selected and r.share < STABLE]:
        warnings.append(
            f"unstable: {some_of(unstable)} {'is' if len(unstable) == 1 else 'are'} selected in "
            f"fewer than {STABLE:.0%} of {SUBSAMPLES} random halves of the rows"
        )
    return warnings
