"""One fit as an analyst wants it: standardised, tuned and told on the original scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs, Federation, metered
from fedlasso.fitting import Fit, GoalFit, fit, fit_for
from fedlasso.fitting.cross_validation import Curve, cross_validate
from fedlasso.models.settings import Settings
from fedlasso.numerics import Array
from fedlasso.procedures import Secant, find_procedure
from fedlasso.sites import Scaling, Viewed, standardise


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
    ledger = metered(federation)
    before = ledger.costs
    curve = None
    spent = 0
    if not by_goal and settings.penalty is None:
        uploads = settings.uploads * 2 // 3
        rule = settings.rule_in_force
        curve = cross_validate(ledger, settings.splits, uploads, rule, **settings.scaling)
        spent = curve.sent
    split = settings.splits[0] if by_goal else settings.final_split
    view, scaling = standardise(ledger, split, **settings.scaling)
    if by_goal:
        _check_held_out(scaling)
    left = _left(settings, spent + scaling.vectors)
    result: Fit | GoalFit
    if by_goal:
        result = fit_for(view, settings.aim, uploads=left, rule=settings.rule_in_force)
        why = result.why
        curve = Curve.of_goal(result)
    else:
        penalty = settings.penalty if curve is None else curve.lam
        assert penalty is not None
        result = _fit_at(view, settings, penalty, left)
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


def _fit_at(view: Viewed, settings: Settings, penalty: float, left: int) -> Fit:
    if settings.procedure is None:
        return fit_pooled(view, penalty, left, settings.tol)
    procedure = find_procedure(settings.procedure)(epochs=settings.epochs)
    rounds = max(1, left // procedure.paths)
    return fit(view, procedure, penalty=penalty, rounds=rounds, rule=settings.rule or "min")


def _left(settings: Settings, spent: int) -> int:
    if settings.uploads - spent < 2:
        raise FedLassoError(
            f"uploads is {settings.uploads}, and {spent} are needed to standardise and tune; "
            "give more"
        )
    return settings.uploads - spent


def _check_held_out(scaling: Scaling) -> None:
    if 0 in scaling.held_out:
        raise FedLassoError(
            f"{scaling.rows + sum(scaling.held_out)} rows (n_samples) are too few to hold any out; "
            "give a penalty, a larger validation share or more rows"
        )
