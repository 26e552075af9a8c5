"""One fit as an analyst wants it: standardised, tuned and told on the original scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs, Federation, Ledger
from fedlasso.fitting import GOALS, Fit, Goal, Rule, Validation, fit
from fedlasso.models.penalty import Curve, search
from fedlasso.numerics import Array
from fedlasso.procedures import find_procedure
from fedlasso.sites import Scaling, Viewed, folds, holdout, standardise

PATH_COLUMNS = 40


@dataclass(frozen=True)
class Settings:
    """What to fit, and what may be sent for it.

    Attributes
    ----------
    goal : prediction, selection or objective; by default prediction, or objective at a penalty
    procedure : a name from the registry, to be run at the penalty instead of the goal's own
    epochs : local epochs a round of that procedure
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
        """The goal in force."""
        return self.goal or ("prediction" if self.penalty is None else "objective")

    def check(self) -> None:
        """Refuse procedures and splits that do not exist, before any site is asked."""
        _ = _final_split(self), self.splits if self.penalty is None else ()

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that errors are measured on."""
        if self.cv is not None:
            return folds(self.cv, self.seed)
        return ("",) if self.validation is None else (holdout(self.validation, self.seed),)


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
    """

    settings: Settings
    columns: tuple[str, ...]
    coefficients: Array
    intercept: float
    scaling: Scaling
    view: str
    fit: Fit
    curve: Curve | None
    costs: Costs

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
    # A ledger of its own tells the whole fit, its scaling and its search included.
    ledger = Ledger(federation)
    how = {"centre": settings.intercept, "scale": settings.standardise}
    curve = None
    if settings.procedure is None and settings.aim != "objective" and settings.cv is None:
        (split,) = settings.splits
        view, scaling = standardise(ledger, split, **how)
        _check_held_out(scaling)
        left = _left(settings, scaling.vectors)
        result = fit(view, goal=settings.aim, uploads=left, rule=settings.rule or "min")
        curve = _told(result)
    else:
        lam, spent = settings.penalty, 0
        if lam is None:
            # one standard error's sparsest penalty is the usual choice for selection by folds
            rule = settings.rule or ("1se" if settings.aim == "selection" else "min")
            curve = search(ledger, settings.splits, settings.uploads * 2 // 3, rule, **how)
            lam, spent = curve.lam, curve.sent
        view, scaling = standardise(ledger, _final_split(settings), **how)
        left = _left(settings, spent + scaling.vectors)
        result = _fit_at(view, settings, lam, left)
    coefficients, intercept = scaling.original(result.coefficients)
    return Model(
        settings, federation.columns, coefficients, intercept, scaling, view.name, result, curve,
        ledger.costs,
    )  # fmt: skip


def _fit_at(view: Viewed, settings: Settings, lam: float, left: int) -> Fit:
    if settings.procedure is None:
        return fit(view, goal="objective", lam=lam, uploads=left, tol=settings.tol)
    procedure = find_procedure(settings.procedure)(epochs=settings.epochs)
    rounds = max(1, left // procedure.paths)
    return fit(view, procedure, lam=lam, rounds=rounds, rule=settings.rule or "min")


def _final_split(settings: Settings) -> str:
    """All rows train, unless the procedure has candidates to choose from afterwards."""
    if settings.procedure is None or len(find_procedure(settings.procedure).settings) == 1:
        return ""
    if settings.validation is None:
        return ""
    return holdout(settings.validation if settings.cv is None else 1 / settings.cv, settings.seed)


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


def _told(result: Fit) -> Curve:
    """The Lasso path of a fit by goal, as a curve; the choice there is the goal's own."""
    points = [point for point, _ in result.explored]
    mse = np.array([error for _, error in result.explored])
    validation = Validation(
        mse, np.full(mse.shape, np.nan), np.array([float(point.active) for point in points])
    )
    return Curve(
        np.array([point.lam for point in points]),
        np.column_stack([point.coefficients for point in points]),
        validation,
        int(mse.argmin()),
        0,
    )


def tell_path(penalties: Array, B: Array, columns: Sequence[str]) -> dict[str, Any]:
    """The largest coefficients along a path, as plain values."""
    largest = np.abs(B).max(axis=1)
    shown = np.argsort(-largest, kind="stable")[:PATH_COLUMNS]
    shown = shown[largest[shown] > 0]
    return {
        "penalties": penalties.tolist(),
        "names": [columns[k] for k in shown],
        "coefficients": B[shown].tolist(),
    }
