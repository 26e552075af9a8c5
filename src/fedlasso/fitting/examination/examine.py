"""The examination of a model for its card; its costs are counted apart from those of the fit."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedlasso.errors import CannotFit
from fedlasso.federation import Ledger
from fedlasso.fitting.dialogue import Dialogue, drive, drive_together
from fedlasso.fitting.evidence import Folded
from fedlasso.fitting.evidence.moment_evidence import squared_error
from fedlasso.fitting.examination.assess import ask_moments, assess, on_original_scale, solve_folds
from fedlasso.fitting.examination.assessment import Assessment
from fedlasso.fitting.examination.comparison import (
    CoefficientPath,
    ColumnStability,
    ComparedModel,
    SiteError,
    ask_site_errors,
    compare_models,
    count_on_halves,
    describe_stability,
    walk_to_penalty,
)
from fedlasso.fitting.examination.subsamples import PartFits, fit_parts
from fedlasso.fitting.examination.table_one import TableFound, table_steps
from fedlasso.fitting.fold_models import FoldModels
from fedlasso.fitting.goal import Goal
from fedlasso.fitting.inference.infer import shift_steps
from fedlasso.fitting.model import Model
from fedlasso.fitting.tuning import average_folds, fit_choice
from fedlasso.fitting.validation import Rule, Validation
from fedlasso.numerics import Array, one_thread
from fedlasso.sites import Scaling, Viewed, standardise

# Beyond this many numbers in the table, sites' own fits and subsamples are left out.
LARGEST_TABLE = 40_000_000
# Nested cross-validation: fewest folds, and folds times columns beyond which it takes minutes.
FEWEST_FOLDS = 3
LARGEST_NESTED = 8000
# Table 1 of more columns is left out.
LONGEST_TABLE_ONE = 1000
NO_FOLDS = "no model could be fitted without every fold of the rows"


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


@dataclass(frozen=True, eq=False)
class Nested:
    """Nested cross-validation: the error, and the models that were chosen without each fold."""

    validation: Validation
    models: FoldModels | None


def examine(
    ledger: Ledger, model: Model, tolerant: bool, nested: Nested | None = None
) -> Examination:
    """Ask for everything that a card shows, side by side; `tolerant` accepts a site's refusal.

    What needs models of folds follows in further round trips, if those are not known.
    """
    examining = Examining.of(ledger, model, nested)
    examining.ask_first()
    examining.ask_with_moments()
    examining.ask_with_fits()
    return examining.collect(tolerant)


def assess_again(ledger: Ledger, model: Model, nested: Nested | None = None) -> Assessment:
    """Assess a model alone, with models of folds that are fitted now if they are not known."""
    examining = Examining.of(ledger, model, nested)
    models = examining.find_models()
    return drive(assess(ledger, model, models, examining.are_chosen(models)))


@dataclass(eq=False)
class Examining:
    """An examination under way.

    Attributes
    ----------
    view, scaling : all rows
    done : results by name, or the reasons why there are none
    """

    ledger: Ledger
    model: Model
    view: Viewed
    scaling: Scaling
    nested: Nested | None
    done: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger, model: Model, nested: Nested | None = None) -> "Examining":
        """Return an examination; a model that has not seen all rows needs a view of all."""
        view = Viewed(ledger, model.view)
        scaling = model.scaling
        if model.view.split:
            view, scaling = standardise(ledger, "", **model.settings.scaling)
        return cls(ledger, model, view, scaling, nested)

    @property
    def small(self) -> bool:
        return self.scaling.rows * len(self.model.columns) <= LARGEST_TABLE

    @property
    def folded(self) -> Folded | None:
        """Second moments of folds, from the fit or requested for the card."""
        evidence = self.model.fit.evidence
        if evidence is not None and evidence.split:
            return evidence
        asked = self.done.get("folded")
        return asked if isinstance(asked, Folded) else None

    @property
    def parts(self) -> PartFits | None:
        fits = self.done.get("parts")
        return fits if isinstance(fits, PartFits) else None

    @property
    def models(self) -> FoldModels | None:
        """Models of folds, if they are known."""
        curve = self.model.fit.curve
        if self.nested is not None and self.nested.models is not None:
            return self.nested.models
        if curve is not None and curve.fold_models is not None:
            return curve.fold_models
        if self.folded is not None:
            return solve_folds(self.folded, self.model, self.scaling)
        return None if self.parts is None else self.parts.models

    def are_chosen(self, models: FoldModels) -> bool:
        """Return whether models of folds were also chosen without their fold."""
        return self.nested is not None and self.nested.models is models

    def find_models(self) -> FoldModels:
        """Return models of folds, and fit them if they are not known."""
        if self.models is None and self.model.settings.plain:
            self.done["folded"] = _try_alone(ask_moments(self.view, self.model.settings))
        if self.models is None:
            self.done["parts"] = _try_alone(self._fit_parts())
        models = self.models
        if models is None:
            raise CannotFit(NO_FOLDS)
        return models

    def _run(self, steps: dict[str, Dialogue[Any]]) -> None:
        models = self.models if "assessment" not in self.done else None
        if models is not None:
            chosen = self.are_chosen(models)
            steps["assessment"] = assess(self.ledger, self.model, models, chosen)
        results = drive_together(list(steps.values()))
        self.done |= dict(zip(steps, results, strict=True))

    def _fit_parts(self) -> Dialogue[PartFits]:
        return fit_parts(self.view, self.scaling, self.model, self.models is None)

    def ask_first(self) -> None:
        """Ask for what needs no other answers."""
        model = self.model
        settings = model.settings
        steps: dict[str, Dialogue[Any]] = {"site_errors": ask_site_errors(self.ledger, model)}
        if len(model.columns) <= LONGEST_TABLE_ONE:
            scaling = model.scaling
            steps["table"] = table_steps(self.ledger, scaling.means, scaling.y_mean)
        if settings.may_have_site_effects and not settings.infers:
            own = Viewed(self.ledger, model.view)
            steps["shift"] = shift_steps(own, model.fit.coefficients)
        if settings.plain and self.folded is None:
            steps["folded"] = ask_moments(self.view, settings)
        if not settings.plain and self.small:
            steps["parts"] = self._fit_parts()
        self._run(steps)

    def ask_with_moments(self) -> None:
        """Compare a linear model by moments of folds; without them, fit parts of the rows."""
        steps: dict[str, Dialogue[Any]] = {}
        if self.model.settings.plain and self.small:
            if self.folded is None:
                steps["parts"] = self._fit_parts()
            elif self.model.path_penalty > 0:
                judged = None if self.nested is None else self.nested.validation
                steps["compared"] = compare_models(
                    self.view, self.scaling, self.model, self.folded, judged
                )
        self._run(steps)

    def ask_with_fits(self) -> None:
        """Assess models of folds that have just been fitted."""
        self._run({})

    def collect(self, tolerant: bool) -> Examination:
        """Return the results; too few rows to assess a model do not make it invalid."""
        reasons = {name: one for name, one in self.done.items() if isinstance(one, Exception)}
        given = {name: one for name, one in self.done.items() if name not in reasons}
        for name in ("site_errors", "compared"):
            if name in reasons and not tolerant:
                raise reasons[name]
        texts = {name: str(reason) for name, reason in reasons.items()}
        found = Examination(
            site_errors=given.get("site_errors"),
            no_site_errors=texts.get("site_errors"),
            shift=given.get("shift"),
            table=given.get("table"),
            assessment=given.get("assessment"),
        )
        if found.assessment is None:
            found.not_assessed = texts.get("assessment") or texts.get("parts") or NO_FOLDS
        found.comparison, found.alone = given.get("compared", (None, {}))
        if found.comparison is None:
            found.not_compared = texts.get("compared") or self._why_not_compared()
        lam = self.model.path_penalty
        if lam > 0 and self.small and self.folded is not None and self.model.settings.plain:
            counts = count_on_halves(self.folded, lam, self.model.settings.seed)
            found.stability = describe_stability(self.model, counts)
            if self.model.fit.curve is None:
                found.path = walk_to_penalty(self.folded, self.model)
        elif lam > 0 and self.parts is not None:
            found.stability = describe_stability(self.model, self.parts.counts)
        return found

    def _why_not_compared(self) -> str:
        if not self.model.settings.plain:
            return (
                "only linear models with one penalty for all columns, and without bounds, are "
                "compared with sites alone"
            )
        if self.model.path_penalty == 0:
            return "the penalty is zero"
        if not self.small:
            return "sites' own fits to a table of this size take too long"
        return "sites send no second moments of folds, which judge the other models"


def _try_alone(steps: Dialogue[Any]) -> Any:
    (found,) = drive_together([steps])
    return found


def expect_error(model: Model) -> Nested | None:
    """Cross-validate tuning and fitting together, if the server has moments of enough folds."""
    folded = model.fit.evidence
    if folded is None or model.discovers:
        return None
    folds = len(folded.folds)
    if folds < FEWEST_FOLDS or folds * len(model.columns) > LARGEST_NESTED:
        return None
    settings = model.settings
    validation, models = nested_error(folded, settings.goal_in_force, settings.rule_in_force)
    scaled = on_original_scale(folded.split, models, model.scaling) if folded.split else None
    return Nested(validation, scaled)


@one_thread()
def nested_error(
    folded: Folded, goal: Goal, rule: Rule
) -> tuple[Validation, list[tuple[Array, Array]]]:
    """Return the error of tuning and fitting together, and the models without each fold.

    A model is its coefficients and intercept in the units of the moments.
    """
    errors = []
    models = []
    active = []
    for fold in folded.folds:
        others = tuple(part for part in folded.folds if part is not fold)
        inner = replace(folded, folds=others)
        normal = inner.normal(inner.whole)
        b = fit_choice(normal, goal.choose(inner, rule).choice).coefficients
        errors.append(squared_error(fold, normal, b))
        models.append(normal.original(b[:, None]))
        active.append(float(np.count_nonzero(b)))
    error, se = average_folds(np.array(errors), folded.rows)
    return Validation(np.array([error]), np.array([se]), np.array([np.mean(active)])), models
