"""What a card shows beside the model: errors per site, other models, other rows, held-out rows.

All of it is asked through the federation, and counted apart from the fit's own cost; a model does
not need it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from fedlasso.errors import CannotFit, Refused
from fedlasso.federation import Ledger
from fedlasso.fitting.examination.assessment import Assessment, assess
from fedlasso.fitting.examination.comparison import (
    CoefficientPath,
    ColumnStability,
    ComparedModel,
    SiteError,
    ask_site_errors,
    compare_models,
    measure_stability,
    walk_to_penalty,
)
from fedlasso.fitting.model import Model
from fedlasso.fitting.moment_choice import nested_error
from fedlasso.fitting.validation import Validation
from fedlasso.numerics import Array

# Sites' own fits and averaging work on columns: beyond this many numbers they are left out.
LARGEST = 40_000_000
# Folds of a nested cross-validation: without one of them there must be two to choose by.
FEWEST_FOLDS = 3
# Folds times columns beyond which choosing once more without each fold takes minutes.
LARGEST_NESTED = 8000
T = TypeVar("T")


@dataclass(eq=False)
class Examination:
    """What was found; a step that a site refused leaves why.

    Attributes
    ----------
    path : the Lasso path down to a penalty that was given
    site_errors, no_site_errors : the model's error at every site, or why there is none
    comparison, not_compared : other models on the same rows, or why there are none
    alone : every site's own fit
    stability : how often random halves of the rows select each column
    assessment, not_assessed : how the same way of fitting does on held-out rows, or why not
    """

    path: CoefficientPath | None = None
    site_errors: tuple[SiteError, ...] | None = None
    no_site_errors: str | None = None
    comparison: tuple[ComparedModel, ...] | None = None
    not_compared: str | None = None
    alone: dict[str, Array] = field(default_factory=dict)
    stability: tuple[ColumnStability, ...] | None = None
    assessment: Assessment | None = None
    not_assessed: str | None = None


def examine(ledger: Ledger, model: Model, tolerant: bool) -> Examination:
    """Ask for all that a card shows; `tolerant` takes a site's refusal of any of it."""
    found = Examination()
    small = model.scaling.rows * len(model.columns) <= LARGEST
    plain = model.settings.plain
    if model.fit.curve is None and model.penalty > 0 and plain:
        found.path, _ = _attempt(lambda: walk_to_penalty(ledger, model), tolerant)
    found.site_errors, found.no_site_errors = _attempt(
        lambda: ask_site_errors(ledger, model), tolerant
    )
    if not plain:
        # Where rows are too few to judge by, the model stands all the same.
        found.assessment, found.not_assessed = _attempt(lambda: assess(ledger, model), True)
        if model.penalty > 0 and small:
            found.stability, _ = _attempt(lambda: measure_stability(ledger, model), True)
        found.not_compared = (
            "only linear models with one penalty for all columns, and without bounds, are "
            "compared with averaging and with sites alone"
        )
    elif model.penalty == 0:
        found.not_compared = "the penalty is zero"
    elif not small:
        found.not_compared = "sites' own fits on so many numbers take too long"
    else:
        _, found.not_compared = _attempt(lambda: _compare(ledger, model, found), tolerant)
    return found


def _compare(ledger: Ledger, model: Model, found: Examination) -> None:
    found.comparison, found.alone = compare_models(ledger, model)
    found.stability = measure_stability(ledger, model)


def _attempt(step: Callable[[], T], tolerant: bool) -> tuple[T | None, str | None]:
    """Take a step; return its result, or why it was refused where that is tolerated."""
    try:
        return step(), None
    except (Refused, CannotFit) as error:
        if not tolerant:
            raise
        return None, str(error)


def expect_error(model: Model) -> Validation | None:
    """Return the error of the whole way of choosing on held-out rows, if the server can tell."""
    folded = model.fit.evidence
    if folded is None or model.discovers:
        return None
    folds = len(folded.folds)
    if folds < FEWEST_FOLDS or folds * len(model.columns) > LARGEST_NESTED:
        return None
    settings = model.settings
    return nested_error(folded, settings.goal_in_force, settings.rule_in_force)
