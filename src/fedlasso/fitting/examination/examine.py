"""The examination of a model for its card; its costs are counted apart from those of the fit."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from fedlasso.errors import CannotFit, Refused
from fedlasso.federation import Ledger
from fedlasso.fitting.evidence import Folded
from fedlasso.fitting.evidence.moment_evidence import squared_error
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
from fedlasso.fitting.examination.table_one import TableFound, ask_table
from fedlasso.fitting.goal import Goal
from fedlasso.fitting.inference.infer import find_shift
from fedlasso.fitting.model import Model
from fedlasso.fitting.tuning import average_folds, fit_choice
from fedlasso.fitting.validation import Rule, Validation
from fedlasso.numerics import Array, one_thread
from fedlasso.sites import Viewed

# Beyond this many numbers in the table, sites' own fits and averaging are left out.
LARGEST_TABLE = 40_000_000
# Nested cross-validation: fewest folds, and folds times columns beyond which it takes minutes.
FEWEST_FOLDS = 3
LARGEST_NESTED = 8000
# Table 1 of more columns is left out.
LONGEST_TABLE_ONE = 1000
T = TypeVar("T")


@dataclass(eq=False)
class Examination:
    """The results; `no_...` and `not_...` are the reasons of steps that were left out or refused.

    `path` is the Lasso path down to a given penalty, `alone` has every site's own fit, and `shift`
    is the p-value of equal mean residuals at all sites. `table` has the sums of Table 1.
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
    shift: float | None = None
    table: TableFound | None = None


def examine(ledger: Ledger, model: Model, tolerant: bool) -> Examination:
    """Ask for everything that a card shows; `tolerant` accepts a site's refusal."""
    found = Examination()
    small = model.scaling.rows * len(model.columns) <= LARGEST_TABLE
    plain = model.settings.plain
    if len(model.columns) <= LONGEST_TABLE_ONE:
        centre = (model.scaling.means, model.scaling.y_mean)
        found.table, _ = _attempt(lambda: ask_table(ledger, *centre), True)
    if model.fit.curve is None and model.penalty > 0 and plain:
        found.path, _ = _attempt(lambda: walk_to_penalty(ledger, model), tolerant)
    found.site_errors, found.no_site_errors = _attempt(
        lambda: ask_site_errors(ledger, model), tolerant
    )
    if model.settings.may_have_site_effects and not model.settings.infers:
        view = Viewed(ledger, model.view)
        found.shift, _ = _attempt(lambda: find_shift(view, model.fit.coefficients), True)
    if not plain:
        # Too few rows to assess a model do not make it invalid.
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
        found.not_compared = "sites' own fits to a table of this size take too long"
    else:
        _, found.not_compared = _attempt(lambda: _compare(ledger, model, found), tolerant)
    return found


def _compare(ledger: Ledger, model: Model, found: Examination) -> None:
    found.comparison, found.alone = compare_models(ledger, model)
    found.stability = measure_stability(ledger, model)


def _attempt(step: Callable[[], T], tolerant: bool) -> tuple[T | None, str | None]:
    """Return the result of a step, or why it was refused if that is tolerated."""
    try:
        return step(), None
    except (Refused, CannotFit) as error:
        if not tolerant:
            raise
        return None, str(error)


def expect_error(model: Model) -> Validation | None:
    """Return the nested cross-validation error, if the server has moments of enough folds."""
    folded = model.fit.evidence
    if folded is None or model.discovers:
        return None
    folds = len(folded.folds)
    if folds < FEWEST_FOLDS or folds * len(model.columns) > LARGEST_NESTED:
        return None
    settings = model.settings
    return nested_error(folded, settings.goal_in_force, settings.rule_in_force)


@one_thread()
def nested_error(folded: Folded, goal: Goal, rule: Rule) -> Validation:
    """Return the error of tuning and fitting together, by nested cross-validation."""
    errors = []
    active = []
    for fold in folded.folds:
        others = tuple(part for part in folded.folds if part is not fold)
        inner = replace(folded, folds=others)
        normal = inner.normal(inner.whole)
        b = fit_choice(normal, goal.choose(inner, rule).choice).coefficients
        errors.append(squared_error(fold, normal, b))
        active.append(float(np.count_nonzero(b)))
    error, se = average_folds(np.array(errors), folded.rows)
    return Validation(np.array([error]), np.array([se]), np.array([np.mean(active)]))
