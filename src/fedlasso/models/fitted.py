"""One fit as an analyst wants it: set, standardised, tuned and told on the original scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs, Federation, metered
from fedlasso.fitting import GOALS, Fit, Goal, GoalFit, Rule, fit, fit_for
from fedlasso.fitting.cross_validation import Curve, cross_validate
from fedlasso.numerics import Array
from fedlasso.procedures import Secant, find_procedure
from fedlasso.sites import Scaling, folds, holdout, standardise


@dataclass(frozen=True)
class Settings:
    """What to fit, and what may be sent for it.

    Attributes
    ----------
    goal : prediction, selection or objective; prediction by default, but see `aim`
    procedure : a name from the registry, to be run at the penalty instead of the goal's own
    epochs : local epochs per round of that procedure
    penalty : on the standardised scale; None to choose it on held-out rows
    validation : share of every site's rows held out; None to use samples the sites were given
    cv : number of folds, instead of the holdout
    uploads : vectors of p numbers that each site may send in all
    rule : smallest error or the sparsest within one standard error
    tol : relative duality gap of a fit at one penalty
    intercept, standardise : centre, scale
    seed : of every split
    """

    goal: Goal | None = None
    procedure: str | None = None
    epochs: int = 1
    penalty: float | None = None
    validation: float | None = 0.2
    cv: int | None = None
    uploads: int = 100
    rule: Rule | None = None
    tol: float = 1e-12
    intercept: bool = True
    standardise: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.goal is not None and self.goal not in GOALS:
            raise FedLassoError(f"no goal is called {self.goal!r}; use one of {', '.join(GOALS)}")
        if self.goal in ("prediction", "selection") and self.penalty is not None:
            raise FedLassoError(
                f"goal {self.goal!r} chooses its penalty; give no penalty, or goal 'objective'"
            )
        if not isinstance(self.uploads, int | np.integer) or self.uploads < 1:
            raise FedLassoError(f"uploads is {self.uploads!r}; give a whole number, 1 or more")

    @property
    def aim(self) -> Goal:
        """The goal in force: a penalty, folds or a procedure make a Lasso, whatever the goal."""
        if self.penalty is None and self.cv is None and self.procedure is None:
            return self.goal or "prediction"
        return "objective"

    @property
    def rule_in_force(self) -> Rule:
        """The rule that chooses; for selection by a Lasso it is the sparser one by default."""
        sparse = self.goal == "selection" and self.aim == "objective"
        return self.rule or ("1se" if sparse else "min")

    @property
    def words(self) -> str:
        """What is fitted with goal 'objective', in words."""
        goal = f"goal {self.aim!r}"
        if self.goal not in (None, self.aim):
            goal += f" (not {self.goal!r}: folds and procedures fit a Lasso)"
        if self.penalty is not None:
            return f"{goal}: the Lasso at the given penalty"
        how = {"min": "the smallest error", "1se": "one standard error's sparsest model"}
        where = "held-out rows" if self.cv is None else f"{self.cv} folds"
        return f"{goal}: the Lasso at the penalty with {how[self.rule_in_force]} on {where}"

    @property
    def scaling(self) -> dict[str, bool]:
        """How columns are standardised, as `standardise` takes it."""
        return {"centre": self.intercept, "scale": self.standardise}

    def check(self) -> None:
        """Refuse procedures and splits that do not exist, before any site is asked."""
        _ = self.final_split
        if self.penalty is None:
            _ = self.splits

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that errors are measured on."""
        if self.cv is not None:
            return folds(self.cv, self.seed)
        return ("",) if self.validation is None else (holdout(self.validation, self.seed),)

    @property
    def held_out(self) -> str:
        """One split whose held-out rows judge a model."""
        share = self.validation if self.cv is None else 1 / self.cv
        return "" if share is None else holdout(share, self.seed)

    @property
    def final_split(self) -> str:
        """All rows train, unless the procedure has candidates to choose from afterwards."""
        chooses = self.procedure is not None and len(find_procedure(self.procedure).settings) > 1
        return self.held_out if chooses and self.validation is not None else ""


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model with everything that is told about it.

    Attributes
    ----------
    coefficients, intercept : on the original scale of the columns
    scaling : means and scales that the sites agreed on
    view : name of the view that the final fit was made on
    fit : the fit on the standardised scale
    curve : held-out error along the penalties, if a penalty was chosen
    costs : all that passed between server and sites
    why : what was fitted and why, in one line
    """

    settings: Settings
    columns: tuple[str, ...]
    coefficients: Array
    intercept: float
    scaling: Scaling
    view: str
    fit: Fit | GoalFit
    curve: Curve | None
    costs: Costs
    why: str

    @property
    def penalty(self) -> float:
        """The penalty of the Lasso: the chosen one of the path, or the one that was given.

        An adaptive or refitted model has weights, or next to no penalty; it is known by the best
        penalty of the Lasso path that it comes from.
        """
        return self.curve.lam if self.curve is not None else self.fit.penalty.lam

    @property
    def constant(self) -> tuple[str, ...]:
        """Columns that never vary, left out with a coefficient of zero."""
        return tuple(n for n, f in zip(self.columns, self.scaling.factors, strict=True) if f == 0)

    def predict(self, X: Any) -> Array:
        """Predictions for records on the original scale."""
        prediction: Array = X @ self.coefficients + self.intercept
        return prediction


def fit_model(federation: Federation, settings: Settings) -> Model:
    """Fit across the sites of a federation, whose records may be on any scale."""
    by_goal = settings.aim != "objective"
    rule = settings.rule_in_force
    ledger = metered(federation)
    before = ledger.costs
    curve = None
    spent = 0
    if not by_goal and settings.penalty is None:
        uploads = settings.uploads * 2 // 3
        curve = cross_validate(ledger, settings.splits, uploads, rule, **settings.scaling)
        spent = curve.sent
    split = settings.splits[0] if by_goal else settings.final_split
    view, scaling = standardise(ledger, split, **settings.scaling)
    if by_goal and 0 in scaling.held_out:
        raise FedLassoError(
            f"{scaling.rows + sum(scaling.held_out)} rows (n_samples) are too few to hold any out; "
            "give a penalty, a larger validation share or more rows"
        )
    spent += scaling.vectors
    left = settings.uploads - spent
    if left < 2:
        raise FedLassoError(
            f"uploads is {settings.uploads}, and {spent} are needed to standardise and tune; "
            "give more"
        )
    result: Fit | GoalFit
    if by_goal:
        result = fit_for(view, settings.aim, uploads=left, rule=rule)
        why = result.why
        curve = Curve.of_goal(result)
    else:
        penalty = settings.penalty if curve is None else curve.lam
        assert penalty is not None
        if settings.procedure is None:
            result = fit_pooled(view, penalty, left, settings.tol)
        else:
            procedure = find_procedure(settings.procedure)(epochs=settings.epochs)
            rounds = max(1, left // procedure.paths)
            chooses = settings.rule or "min"
            result = fit(view, procedure, penalty=penalty, rounds=rounds, rule=chooses)
        why = f"{settings.words}, by {result.method} in {result.rounds} rounds"
    coefficients, intercept = scaling.original(result.coefficients)
    return Model(
        settings=settings,
        columns=federation.columns,
        coefficients=coefficients,
        intercept=intercept,
        scaling=scaling,
        view=view.name,
        fit=result,
        curve=curve,
        costs=ledger.costs - before,
        why=why,
    )


def fit_pooled(view: Federation, penalty: float, uploads: int = 100, tol: float = 1e-6) -> Fit:
    """Fit the Lasso of all sites' rows together, to a relative gap."""
    return fit(view, Secant(tol=tol), penalty=penalty, rounds=uploads, tol=tol)
