"""Settings: what to fit, and what may be sent for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.fitting import GOALS, Goal, Rule
from fedlasso.procedures import find_procedure
from fedlasso.sites import folds, holdout


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
        if self.procedure is None or len(find_procedure(self.procedure).settings) == 1:
            return ""
        return "" if self.validation is None else self.held_out
