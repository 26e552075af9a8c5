"""What an analyst asks for, checked before any site is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.families import DEFAULT, Family, family_with, find_family
from fedlasso.fitting.goal import Goal, default_goal, find_goal, lasso_goal
from fedlasso.fitting.validation import Rule
from fedlasso.procedures import find_procedure
from fedlasso.sites import folds, holdout

# A lower and an upper bound of a coefficient; None is no bound.
Range = tuple[float | None, float | None]
# Share of the rows that judge where somebody must hold rows out and no share is given.
HOLDOUT = 0.2


# Among the columns whose intervals are asked for: those that the model uses.
SELECTED = "selected"


@dataclass(frozen=True)
class Settings:
    """What to fit, and what may be sent for it.

    Attributes
    ----------
    goal : name of a goal, the first of `GOALS` by default; but see `goal_in_force`
    procedure : a name from the registry, to be run at the penalty instead of the goal's own
    epochs : local epochs per round of that procedure
    penalty : on the standardised scale; None to choose it by cross-validation
    validation : share of every site's rows that choose instead, once held out; ``"given"`` to use
        the samples that the sites were given
    cv : number of folds; 10 by default, or 5, or one holdout, by what may be sent
    uploads : vectors of p numbers that each site may send in all; by default as planned
    rule : smallest error, or few columns (see `fit_by_moments`); by default the latter for
        selection
    tol : relative duality gap of a fit at one penalty
    intercept, standardise : centre, scale
    seed : of every split and of random draws
    family : what the response is: a number, yes or no, a count, or a survival time
    ties : how survival times that are the same are treated
    keep : columns that no penalty touches, as the sites call them
    l1_ratio : the Lasso's share of the penalty; the rest is an elastic net's, on squares
    bounds : a lower and an upper bound of coefficients, per unit of the columns as the sites have
        them
    site_effects : whether every site has an intercept of its own, which stays there
    fdr : rate of false discoveries that the goal of discoveries allows
    intervals : columns whose intervals are asked for, whatever the model makes of them; 'selected'
        stands for those that the model uses
    level : how often intervals are to cover
    site_weights : rows count the same at all sites, or by the inverse of the variance of their
        site's noise; by default the latter where inference is asked for and sites clearly differ
    """

    goal: str | None = None
    procedure: str | None = None
    epochs: int = 1
    penalty: float | None = None
    validation: float | Literal["given"] | None = None
    cv: int | None = None
    uploads: int | None = None
    rule: Rule | None = None
    tol: float = 1e-12
    intercept: bool = True
    standardise: bool = True
    seed: int = 0
    family: str = DEFAULT
    ties: Literal["efron", "breslow"] = "efron"
    keep: tuple[str, ...] = ()
    l1_ratio: float = 1.0
    site_effects: bool = False
    bounds: dict[str, Range] = field(default_factory=dict)
    fdr: float = 0.1
    intervals: tuple[str, ...] = ()
    level: float = 0.95
    site_weights: Literal["equal", "variance"] | None = None

    def __post_init__(self) -> None:
        if not self.asked_goal.is_lasso and self.goal is not None:
            lasso = lasso_goal().name
            if self.named:
                raise FedLassoError(
                    f"intervals of named columns start from the pooled Lasso; use the goal "
                    f"{lasso!r} instead of {self.goal!r}, or --interval {SELECTED} for the columns "
                    "of the model"
                )
            if self.penalty is not None:
                raise FedLassoError(
                    f"goal {self.goal!r} chooses its penalty; give no penalty, or goal {lasso!r}"
                )
        if self.cv is not None:
            folds(self.cv, self.seed)
        if self.cv is not None and self.validation is not None:
            raise FedLassoError("folds and a holdout were both given; give cv or validation")
        if self.cv is not None and self.penalty is not None:
            raise FedLassoError("folds choose a penalty, and one was given; give cv or penalty")
        if isinstance(self.validation, float) and self.penalty is not None and not self._chooses:
            raise FedLassoError(
                "held-out rows choose a penalty, and one was given; give validation or penalty"
            )
        if self.epochs != 1 and self.procedure is None:
            raise FedLassoError(
                f"epochs is {self.epochs!r}, but only procedures have local epochs; give a "
                "procedure too"
            )
        family = self.response_family
        if not (isinstance(self.l1_ratio, Real) and 0 < self.l1_ratio <= 1):
            raise FedLassoError(
                f"l1_ratio is {self.l1_ratio!r}; give a share above 0, and 1 for the Lasso"
            )
        check_bounds(self.bounds)
        if self.ties not in ("efron", "breslow"):
            raise FedLassoError(f"ties is {self.ties!r}; use 'efron' or 'breslow'")
        if self.ties != "efron" and "ties" not in family.options:
            other = family_with("ties")
            raise FedLassoError(
                f"ties are those of {other.responses}; say --family {other.name}, or leave --ties "
                "out"
            )
        if self.site_effects and not self.intercept:
            raise FedLassoError(
                "site_effects requires an intercept; leave out one of the two options"
            )
        if self.site_effects and family.no_site_effects:
            raise FedLassoError(family.no_site_effects)
        for name in ("fdr", "level"):
            share = getattr(self, name)
            if not (isinstance(share, Real) and 0 < share < 1):
                raise FedLassoError(f"{name} is {share!r}; give a share above 0 and below 1")
        if self.site_weights not in (None, "equal", "variance"):
            raise FedLassoError(f"site_weights is {self.site_weights!r}; use 'equal' or 'variance'")
        if self.site_weights == "variance" and not family.quadratic:
            raise FedLassoError(
                f"the variance of a {self.family} response follows from the model; leave site "
                "weights out"
            )
        if self.infers and self.bounds:
            raise FedLassoError(
                "an estimate at a bound has no interval; leave out the bounds, or the intervals "
                "and discoveries"
            )
        if self.infers and self.procedure is not None:
            raise FedLassoError(
                "intervals and discoveries start from the pooled Lasso; leave the procedure out"
            )
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise FedLassoError(f"seed is {self.seed!r}; give a whole number, 0 or more")
        if self.uploads is None:
            return
        if not isinstance(self.uploads, int | np.integer) or self.uploads < 1:
            raise FedLassoError(f"uploads is {self.uploads!r}; give a whole number, 1 or more")

    @property
    def asked_goal(self) -> Goal:
        """The goal that was asked for."""
        return default_goal() if self.goal is None else find_goal(self.goal)

    @property
    def goal_in_force(self) -> Goal:
        """The goal of the fit: a penalty or a procedure makes a Lasso, whatever the goal.

        So does anything but least squares with one penalty for all columns, and without bounds.
        """
        given = self.penalty is not None or self.procedure is not None or bool(self.named)
        if self.asked_goal.is_lasso or (self.plain and not given):
            return self.asked_goal
        return lasso_goal()

    @property
    def infers(self) -> bool:
        """Whether inference about columns is requested."""
        return self.asked_goal.infers or bool(self.intervals)

    @property
    def named(self) -> tuple[str, ...]:
        """Columns whose intervals are asked for by their names."""
        return tuple(name for name in self.intervals if name != SELECTED)

    @property
    def judges_selected(self) -> bool:
        """Whether intervals are asked for of the columns that the model uses.

        Discoveries have theirs anyway.
        """
        return SELECTED in self.intervals and not self.asked_goal.infers

    @property
    def weighs_sites(self) -> bool:
        """Whether rows may have to be weighed by the noise of their site."""
        if self.site_weights is not None:
            return self.site_weights == "variance"
        return self.infers and self.plain

    @property
    def response_family(self) -> Family:
        """The family as an object."""
        return find_family(self.family)

    @property
    def loss(self) -> str:
        """Name of the loss of the family."""
        family = self.response_family
        return family.choose_loss(**{name: getattr(self, name) for name in family.options}).name

    @property
    def plain(self) -> bool:
        """Whether it is least squares with one penalty for all columns, and without bounds.

        Only then second moments, adaptive and relaxed fits can be had.
        """
        special = self.keep or self.site_effects or self.l1_ratio < 1 or self.bounds
        return self.response_family.quadratic and not special

    @property
    def model_name(self) -> str:
        """What is fitted at one penalty."""
        return "Lasso" if self.l1_ratio == 1 else "elastic net"

    @property
    def rule_in_force(self) -> Rule:
        """The rule that chooses: the goal's own by default."""
        return self.rule or self.asked_goal.rule

    def name_with_family(self, model: str) -> str:
        """The name of a model, with the kind of response where that is not just any number."""
        return f"{self.response_family.prefix}{model}"

    @property
    def scaling(self) -> dict[str, bool]:
        """How columns are standardised, as `standardise` takes it."""
        return {"centre": self.intercept, "scale": self.standardise}

    def check(self) -> None:
        """Refuse procedures and splits that do not exist, before any site is asked."""
        _ = self.final_split
        _ = self.held_out

    @property
    def held_out(self) -> str:
        """One split whose held-out rows judge a model."""
        if self.validation == "given":
            return ""
        share = 1 / self.cv if self.cv else HOLDOUT
        return holdout(self.validation or share, self.seed)

    @property
    def final_split(self) -> str:
        """All rows train, unless the procedure has candidates to choose from afterwards."""
        return self.held_out if self._chooses else ""

    @property
    def _chooses(self) -> bool:
        """Whether the procedure has candidates, among which held-out rows choose."""
        return self.procedure is not None and len(find_procedure(self.procedure).settings) > 1


def check_bounds(bounds: Mapping[str, Range]) -> None:
    """Refuse bounds that are no pairs of numbers, or leave zero out."""
    for name, ends in bounds.items():
        if not (isinstance(ends, tuple | list) and len(ends) == 2 and all(map(_is_end, ends))):
            raise FedLassoError(
                f"the bounds of {name!r} are {ends!r}; give two numbers, the lower one first, and "
                "None where there is no bound"
            )
        lower, upper = ends
        if (lower is not None and lower > 0) or (upper is not None and upper < 0):
            raise FedLassoError(
                f"the bounds of {name!r} leave out zero, where every coefficient starts; give a "
                "lower bound of at most 0 and an upper bound of at least 0"
            )


def _is_end(end: object) -> bool:
    """Whether this is a number, or nothing."""
    return end is None or (isinstance(end, Real) and not np.isnan(float(end)))
