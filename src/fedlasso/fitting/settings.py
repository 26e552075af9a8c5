"""The options of a fit, checked before any site is asked."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Literal

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.families import DEFAULT, Family, family_with, find_family
from fedlasso.fitting.budget import check_limit
from fedlasso.fitting.goal import GOALS, Goal, default_goal, lasso_goal
from fedlasso.fitting.validation import Rule
from fedlasso.procedures import find_procedure
from fedlasso.procedures.procedure import UntilCertified
from fedlasso.sites import folds, holdout

# A lower and an upper bound of a coefficient; None is no bound.
Range = tuple[float | None, float | None]
# Fraction of the rows to hold out by default.
HOLDOUT = 0.2
# Stands for the columns of the model among those whose intervals are requested.
SELECTED = "selected"


@dataclass(frozen=True)
class Settings:
    """What to fit, and how much each site may send for it.

    Attributes
    ----------
    goal : name of a goal, the first of `GOALS` by default; but see `goal_in_force`
    procedure : a name from the registry, to be run at the penalty instead of the goal's own
    epochs : local epochs per round of that procedure
    penalty : on the standardised scale; None to choose it by cross-validation
    validation : fraction of every site's rows to hold out once instead; ``"given"`` to use the
        sites' own samples
    cv : number of folds; by default 10, 5, or one holdout, as uploads allow
    uploads : vectors of p numbers that each site may send in all; by default as planned
    round_trips : exchanges with the sites that the fit may take; by default as many as it needs
    rule : ``"min"`` or ``"1se"``; by default the goal's own
    tol : relative duality gap of a fit at one penalty
    intercept, standardise : centre, scale
    seed : of every split and of random draws
    family : of the response: a number, yes or no, a count, or a survival time
    ties : how tied survival times are treated
    keep : columns without a penalty, by the sites' names
    penalty_factors : factors of the penalty of columns, by the sites' names; one for all others
    groups : columns that enter or leave the model together, by the sites' names
    l1_ratio : the Lasso's fraction of the penalty; the rest is an elastic net's, on squares
    bounds : a lower and an upper bound of coefficients, in the units of the sites' columns
    site_effects : whether every site has an intercept of its own, which stays there; by default if
        inference is requested and the sites' mean responses clearly differ
    fdr : false discovery rate of the goal of discoveries
    intervals : columns with confidence intervals, in the model or not; 'selected' stands for those
        of the model
    level : coverage of the intervals
    site_weights : weight rows equally, or by the inverse variance of their site's noise; by default
        the latter if inference is requested and sites clearly differ
    """

    goal: str | None = None
    procedure: str | None = None
    epochs: int = 1
    penalty: float | None = None
    validation: float | Literal["given"] | None = None
    cv: int | None = None
    uploads: int | None = None
    round_trips: int | None = None
    rule: Rule | None = None
    tol: float = 1e-12
    intercept: bool = True
    standardise: bool = True
    seed: int = 0
    family: str = DEFAULT
    ties: Literal["efron", "breslow"] = "efron"
    keep: tuple[str, ...] = ()
    penalty_factors: dict[str, float] = field(default_factory=dict)
    groups: tuple[tuple[str, ...], ...] = ()
    l1_ratio: float = 1.0
    site_effects: bool | None = None
    bounds: dict[str, Range] = field(default_factory=dict)
    fdr: float = 0.1
    intervals: tuple[str, ...] = ()
    level: float = 0.95
    site_weights: Literal["equal", "variance"] | None = None

    def __post_init__(self) -> None:
        if self.cv is not None:
            folds(self.cv, self.seed)
        check_bounds(self.bounds)
        check_factors(self.penalty_factors, self.keep)
        check_groups(self.groups, self.keep)
        check_limit("uploads", self.uploads)
        check_limit("round_trips", self.round_trips)
        problem = next(self._find_problems(), None)
        if problem is not None:
            raise FedLassoError(problem)

    def _find_problems(self) -> Iterator[str]:
        """Yield what is wrong with the options or with their combination."""
        lasso = lasso_goal().name
        family = self.response_family
        given = self.penalty is not None
        if not self.requested_goal.is_lasso and self.goal is not None:
            if self.named:
                yield (
                    f"intervals of named columns start from the pooled Lasso; use `goal` "
                    f"{lasso} instead of {self.goal}, or `intervals` {SELECTED} for the columns "
                    "of the model"
                )
            if given:
                remedy = f"omit `penalty`, or use `goal` {lasso}"
                yield f"`goal` {self.goal} chooses its penalty; {remedy}"
        if self.cv is not None and self.validation is not None:
            yield "`cv` and `validation` were both given; omit one"
        if self.cv is not None and given:
            yield "folds choose a penalty, and one was given; omit `cv` or `penalty`"
        if isinstance(self.validation, float) and given and not self._chooses:
            remedy = "omit `validation` or `penalty`"
            yield f"held-out rows choose a penalty, and one was given; {remedy}"
        if not (isinstance(self.l1_ratio, Real) and 0 < self.l1_ratio <= 1):
            yield f"`l1_ratio` is {self.l1_ratio!r}; give a fraction above 0, and 1 for the Lasso"
        if self.groups and (self.l1_ratio != 1 or self.bounds):
            yield "groups of columns have neither bounds nor an elastic net; omit `groups` or these"
        if self.groups and self.infers:
            yield "intervals and discoveries are of single columns; omit `groups`"
        if self.groups and self.procedure is not None:
            yield f"{self.procedure} selects single columns; omit `procedure` or `groups`"
        if self.ties not in ("efron", "breslow"):
            yield f"`ties` is {self.ties!r}; use 'efron' or 'breslow'"
        if self.site_effects and not self.intercept:
            yield "`site_effects` requires an intercept; omit one of the two"
        if self.site_effects and family.no_site_effects:
            yield family.no_site_effects
        for name in ("fdr", "level"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and 0 < float(value) < 1):
                yield f"`{name}` is {value!r}; give a fraction above 0 and below 1"
        for name, why in self.without_effect.items():
            if getattr(self, name) != getattr(type(self), name):
                yield why
        if self.site_weights not in (None, "equal", "variance"):
            yield f"`site_weights` is {self.site_weights!r}; use 'equal' or 'variance'"
        if self.site_weights == "variance" and not family.quadratic:
            what = f"the variance of a {self.family} response"
            yield f"{what} follows from the model; omit `site_weights`"
        if self.infers and self.bounds:
            remedy = "omit `bounds`, or intervals and discoveries"
            yield f"an estimate at a bound has no interval; {remedy}"
        if self.infers and self.procedure is not None:
            yield "intervals and discoveries start from the pooled Lasso; omit `procedure`"
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            yield f"`seed` is {self.seed!r}; give a whole number, 0 or more"

    @property
    def without_effect(self) -> dict[str, str]:
        """Options that would change nothing beside the others, each with why and what to do."""
        other = family_with("ties")
        idle = {
            "fdr": (
                self.requested_goal.infers,
                "only `goal` discoveries has a rate",
            ),
            "level": (self.infers, "only intervals and discoveries have a level"),
            "epochs": (self.procedure is not None, "only a `procedure` has local epochs"),
            "ties": (
                "ties" in self.response_family.options,
                f"ties are those of {other.responses} (`family` {other.name})",
            ),
            "rule": (
                self.penalty is None or self._chooses,
                "a rule chooses the penalty, and one was given",
            ),
        }
        return {
            name: f"`{name}` has no effect here: {why}; omit `{name}`"
            for name, (used, why) in idle.items()
            if not used
        }

    @property
    def requested_goal(self) -> Goal:
        """The goal by name, or the default one."""
        if self.goal is None:
            return default_goal()
        if self.goal not in GOALS:
            raise FedLassoError(f"no goal is called {self.goal!r}; use one of {', '.join(GOALS)}")
        return GOALS[self.goal]

    @property
    def goal_in_force(self) -> Goal:
        """The goal of the fit: a given penalty or a procedure makes a Lasso, whatever the goal.

        So does anything but least squares with one penalty for all columns, and without bounds.
        """
        given = self.penalty is not None or self.procedure is not None or bool(self.named)
        lasso = given or not self.plain
        return lasso_goal() if lasso and not self.requested_goal.is_lasso else self.requested_goal

    @property
    def goal_by_name(self) -> str:
        """The goal as it is printed: a requested one that is served by the Lasso alone stays."""
        given = self.penalty is not None or self.procedure is not None or bool(self.named)
        stays = not (given or self.plain)
        return (self.requested_goal if stays else self.goal_in_force).name

    @property
    def why_lasso(self) -> str:
        """Why the requested goal gives the Lasso at one penalty, if it usually compares others."""
        if self.requested_goal.is_lasso or self.penalty is not None:
            return ""
        if self.procedure is not None:
            return "a procedure fits a Lasso" if self.goal else ""
        if self.named:
            return "intervals of named columns start from the Lasso"
        if self.plain:
            return ""
        return (
            "adaptive and relaxed models need a linear model without unpenalised columns, penalty "
            "factors, groups, elastic net, bounds and site effects"
        )

    @property
    def infers(self) -> bool:
        """Whether inference about columns is requested."""
        return self.requested_goal.infers or bool(self.intervals)

    @property
    def named(self) -> tuple[str, ...]:
        """Columns whose intervals are requested by name."""
        return tuple(name for name in self.intervals if name != SELECTED)

    @property
    def columns_by_name(self) -> frozenset[str]:
        """Columns that options name, so that they are predictors."""
        grouped = (name for group in self.groups for name in group)
        return frozenset({*self.keep, *self.penalty_factors, *self.bounds, *self.named, *grouped})

    @property
    def infers_selected(self) -> bool:
        """Whether the model's columns have intervals; discoveries have theirs anyway."""
        return SELECTED in self.intervals and not self.requested_goal.infers

    @property
    def certifies(self) -> bool:
        """Whether more uploads bring the fit as close to the optimum as wanted."""
        name = self.procedure
        return name is None or issubclass(find_procedure(name), UntilCertified)

    @property
    def may_weight_sites(self) -> bool:
        """Whether rows may have to be weighted by the noise of their site."""
        if self.site_weights is not None:
            return self.site_weights == "variance"
        return self.infers and replace(self, site_effects=None).plain

    @property
    def may_add_site_effects(self) -> bool:
        """Whether the fit decides on intercepts of the sites' own."""
        return self.may_have_site_effects and self.infers

    @property
    def may_have_site_effects(self) -> bool:
        """Whether sites can have intercepts of their own, and nothing was said about them."""
        possible = self.intercept and not self.response_family.no_site_effects
        return self.site_effects is None and possible

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

        Only then are there second moments, adaptive and relaxed fits.
        """
        weighted = self.keep or self.penalty_factors or self.l1_ratio < 1
        special = weighted or self.groups or self.site_effects or self.bounds
        return self.response_family.quadratic and not special

    @property
    def model_name(self) -> str:
        """Name of the model at one penalty."""
        if self.groups:
            return "group Lasso"
        return "Lasso" if self.l1_ratio == 1 else "elastic net"

    @property
    def rule_in_force(self) -> Rule:
        """The rule that chooses: the goal's own by default."""
        return self.rule or self.requested_goal.rule

    def name_with_family(self, model: str) -> str:
        """Return the name of a model with its family, such as "Cox Lasso"."""
        return f"{self.response_family.prefix}{model}"

    @property
    def scaling(self) -> dict[str, bool]:
        """Options of `standardise`."""
        return {"centre": self.intercept, "scale": self.standardise}

    def check(self) -> None:
        """Refuse procedures and splits that do not exist, before any site is asked."""
        _ = self.final_split
        _ = self.held_out

    @property
    def held_out(self) -> str:
        """The split of a holdout."""
        if self.validation == "given":
            return ""
        fraction = 1 / self.cv if self.cv else HOLDOUT
        return holdout(self.validation or fraction, self.seed)

    @property
    def final_split(self) -> str:
        """The split of the last fit: all rows, unless the procedure has candidates."""
        return self.held_out if self._chooses else ""

    @property
    def _chooses(self) -> bool:
        """Whether held-out rows choose among the procedure's candidates."""
        return self.procedure is not None and len(find_procedure(self.procedure).settings) > 1


def check_bounds(bounds: Mapping[str, Range]) -> None:
    """Refuse bounds that are not pairs of numbers, or leave zero out."""
    for name, ends in bounds.items():
        if not (isinstance(ends, tuple | list) and len(ends) == 2 and all(map(_is_bound, ends))):
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


def check_factors(factors: Mapping[str, float], keep: Collection[str]) -> None:
    """Refuse factors that are not positive, and columns that have none."""
    for name, factor in factors.items():
        if not isinstance(factor, Real) or not 0 < float(factor) < np.inf:
            raise FedLassoError(
                f"the penalty factor of {name!r} is {factor!r}; give a number above 0, or keep the "
                "column without a penalty"
            )
        if name in keep:
            raise FedLassoError(
                f"column {name!r} is kept without a penalty and has a penalty factor; omit one"
            )


def check_groups(groups: Collection[tuple[str, ...]], keep: Collection[str]) -> None:
    """Refuse columns in two groups, and unpenalised ones in any."""
    seen: set[str] = set()
    for name in (name for group in groups for name in group):
        if name in seen:
            raise FedLassoError(f"column {name!r} is in `groups` twice; name it once")
        if name in keep:
            raise FedLassoError(
                f"column {name!r} is kept without a penalty and is in `groups`; omit one"
            )
        seen.add(name)


def _is_bound(end: object) -> bool:
    return end is None or (isinstance(end, Real) and not np.isnan(float(end)))
