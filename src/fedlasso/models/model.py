"""A fitted model with everything that is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedlasso.federation import Costs
from fedlasso.fitting import Fit, GoalFit, Status
from fedlasso.fitting.families import Folded
from fedlasso.fitting.tuning import Curve
from fedlasso.models.inferring import (
    Trust,
)
from fedlasso.models.settings import Settings
from fedlasso.numerics import Array, find_loss
from fedlasso.sites import (
    Scaling,
    Standardise,
)

# What a model of discoveries is called.
DISCOVERED = "refitted Lasso"


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model with everything that is told about it.

    Attributes
    ----------
    coefficients, intercept : on the original scale of the columns
    scaling : means and scales that the sites agreed on
    view : what defines the view that the final fit was made on
    fit : the fit on the standardised scale
    curve : held-out error along the penalties, if a penalty was chosen
    costs : all that passed between server and sites
    plan : how uploads were to be spent, where anything was to be chosen
    why : what was fitted and why, in one line
    folded : second moments of the folds, where they were asked for: sums over sites
    trust : how sure its columns are, where that was asked
    """

    settings: Settings
    columns: tuple[str, ...]
    coefficients: Array
    intercept: float
    scaling: Scaling
    view: Standardise
    fit: Fit | GoalFit
    curve: Curve | None
    costs: Costs
    plan: str
    why: str
    folded: Folded | None = None
    trust: Trust | None = None

    @property
    def method(self) -> str:
        """What was fitted, or by which procedure."""
        return DISCOVERED if self.discovers else self.fit.method

    @property
    def discovers(self) -> bool:
        """Whether it has the columns that were found, and those alone."""
        return self.trust is not None and self.trust.found is not None

    @property
    def status(self) -> Status:
        """How the fit ended; that uploads ended too early comes first."""
        cut = self.curve is not None and self.curve.cut
        if self.discovers and self.fit.status is Status.OPTIMAL:
            return Status.CUT if cut else Status.CHOSEN
        return Status.CUT if cut else self.fit.status

    @property
    def penalty(self) -> float:
        """The penalty of the Lasso: the chosen one of the path, or the one that was given.

        An adaptive or refitted model has weights, or next to no penalty; it is known by the best
        penalty of the Lasso path that it comes from.
        """
        if self.curve is not None:
            return self.curve.lam
        return self.fit.penalty.lam / self.settings.l1_ratio

    @property
    def constant(self) -> tuple[str, ...]:
        """Columns that never vary, left out with a coefficient of zero."""
        factors = self.scaling.factors[: len(self.columns)]
        return tuple(n for n, f in zip(self.columns, factors, strict=True) if f == 0)

    @property
    def standardised(self) -> Array:
        """Coefficients of the columns as they were standardised, without an intercept."""
        return self.fit.coefficients[: len(self.columns)]

    def score(self, X: Any) -> Array:
        """Linear predictors of records on the original scale."""
        found: Array = X @ self.coefficients + self.intercept
        return found

    def predict(self, X: Any) -> Array:
        """Predictions for records on the original scale: values, probabilities, rates or risks."""
        return find_loss(self.settings.loss).mean(self.score(X))
