"""The result of a fit: coefficients, penalty and its certificate, cost, and why this model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlasso.federation import Costs
from fedlasso.fitting.validation import Curve, Rule, Validation
from fedlasso.numerics import Array, Certificate, Penalty
from fedlasso.procedures import Problem, State
from fedlasso.sites import Scaling, Standardise

if TYPE_CHECKING:
    from fedlasso.fitting.evidence.evidence import PathPoint
    from fedlasso.fitting.evidence.moment_evidence import Folded
    from fedlasso.fitting.inference.infer import Trust


# The method of a fit to second moments of all rows.
BY_MOMENTS = "Moments"


class Status(Enum):
    """How a fit ended; the text says what to do.

    Examples
    --------
    >>> from fedlasso import Status
    >>> print(Status.OPTIMAL.value)
    The fit is the pooled Lasso to the requested tolerance, or as far as rounding allows.
    """

    OPTIMAL = (
        "The fit is the pooled Lasso to the requested tolerance, or as far as rounding allows."
    )
    STATIONARY = (
        "The fit is a stationary point to the requested tolerance. The penalty has no duality gap, "
        "so a better model may exist: compare fits at other penalties or by another procedure."
    )
    SHORT = (
        "The rounds are used up before the pooled Lasso was reached. Read the certificate; if it "
        "is too loose, give more rounds or another procedure."
    )
    CHOSEN = (
        "The model was chosen for the goal, not for one objective. Read `why`; the certificate is "
        "about the penalty, weights and support of the chosen candidate."
    )
    CUT = (
        "The uploads or round trips were used up, or fits hardly came closer to their optimum, "
        "before the error had risen, so another penalty may do better. Give more of them, fewer "
        "folds, or a penalty."
    )
    UNCERTIFIED = "No certificate was requested. Fit with certified=True to know the distance."


class How(Enum):
    """The criterion by which a model was chosen."""

    SMALLEST = "the smallest error"
    SURE = "the smallest error, clearly below the Lasso's"
    SMALLEST_BEFORE_END = "the smallest error before smaller penalties hardly improve the fit"
    SPARSEST_LASSO = "the sparsest Lasso within one standard error"
    SPARSEST = "the sparsest within one standard error"
    VALIDATED = "the smallest validation error"
    VALIDATED_SPARSEST = "the sparsest within one standard error of the smallest validation error"
    EXPECTED_ERROR = "the smallest expected error"
    EXPECTED_F1 = "the largest expected F1"
    VOTED = "the columns that 25% of the fits to half of the rows use, cross-validated"
    MOST_PROBABLE = "the columns with the largest expected F1, cross-validated"


@dataclass(frozen=True)
class Reason(ABC):
    """Why a model was chosen, for a goal of this name; `str` is the only place with its words."""

    goal: str

    @abstractmethod
    def words(self) -> str:
        """Return what was fitted and why."""

    def __str__(self) -> str:
        return f"goal {self.goal!r}: {self.words()}"


@dataclass(frozen=True)
class Tuned(Reason):
    """A model that held-out rows have chosen.

    Attributes
    ----------
    model, active : its name and its number of active coefficients
    how : the criterion
    candidates : how many it was chosen from; None where that is not a number of models
    folds : of the cross-validation; None for a holdout
    uploads : vectors that each site has sent and was allowed to send, for a holdout
    all_rows : whether it was then fitted to all rows
    """

    model: str
    active: int
    how: How
    candidates: int | None = None
    folds: int | None = None
    uploads: tuple[int, int] | None = None
    all_rows: bool = False

    def words(self) -> str:
        text = f"{self.model} with {self.active} active coefficients, {self.how.value}"
        if self.candidates is not None:
            text += f" of {self.candidates} candidates"
        if self.folds is not None:
            text += f" on {self.folds} folds"
        if self.uploads is not None:
            text += f", after {self.uploads[0]} of {self.uploads[1]} uploads"
        return text + ", fitted to all rows" * self.all_rows


@dataclass(frozen=True)
class AtPenalty(Reason):
    """The pooled optimum at one penalty.

    Attributes
    ----------
    model : its name, with the family
    rule : how held-out rows have chosen the penalty; None where it was given
    error, judged_on : by which error, and which rows
    method, rounds : how it was fitted
    instead_of : the requested goal, if it is another one
    why_lasso : why the requested goal gives the Lasso at one penalty
    """

    model: str
    rule: Rule | None
    error: str
    judged_on: str
    method: str
    rounds: int
    instead_of: str | None = None
    why_lasso: str = ""

    def __str__(self) -> str:
        other = f"not {self.instead_of!r}" if self.instead_of else "the Lasso alone"
        note = f" ({other}: {self.why_lasso})" * bool(self.why_lasso)
        return f"goal {self.goal!r}{note}: {self.words()}"

    def words(self) -> str:
        where = "the given penalty"
        if self.rule is not None:
            how = f"the smallest {self.error}"
            if self.rule == "1se":
                how = "the sparsest model within one standard error"
            where = f"the penalty with {how} on {self.judged_on}"
        rounds = f"{self.rounds} round{'s' * (self.rounds != 1)}"
        how = "from second moments" if self.method == BY_MOMENTS else f"by {self.method}"
        return f"the {self.model} at {where}, {how} in {rounds}"


@dataclass(frozen=True)
class Discovered(Reason):
    """Columns that are probable enough to have an effect, of so many, at a false discovery rate.

    `groups` of nearly collinear columns have one column each in the model.
    """

    found: int
    tests: int
    rate: float
    groups: int = 0

    def words(self) -> str:
        groups = f" and {self.groups} group{'s' * (self.groups > 1)} of nearly collinear columns"
        return (
            f"{self.found} of {self.tests} columns{groups * bool(self.groups)}, discovered at a "
            f"false discovery rate of {self.rate:g} by their probability of an effect, and fitted "
            "to all rows"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """One fitted model: its coefficients, its penalty, and the certificate of that penalty.

    Attributes
    ----------
    problem : the pooled problem, at the penalty of the coefficients
    method : name of the procedure, or of the chosen model
    coefficients : the model, on the scale of the federation that was fitted
    certificate : distance to the best possible objective at the penalty, if requested
    costs : what passed between server and sites
    rounds : rounds, or vectors of p numbers that every site has sent where a goal has chosen
    status : how the fit ended
    candidates : every model that it was chosen from, one per column
    chosen : index of the chosen candidate
    settings : one number per candidate: a threshold, a rate or a penalty
    points : the candidates with their penalties and certificates, where a goal has compared some
    validation : pooled errors of the candidates, if there was anything to choose
    reason : what was chosen and why
    curve : held-out error along the penalties, if a penalty was chosen
    plan : how uploads were to be spent, if anything was to be chosen
    view, scaling : the standardised rows that it was fitted to
    evidence : second moments of the folds, if the choice was made by them
    trust : inference about its columns, if requested
    path : every round's candidate models, if requested
    state : what a further round would start from

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, fit
    >>> result = fit(InProcess([Site("a", np.eye(3), [3.0, 2.0, 0.1])]), "CD", penalty=0.5)
    >>> result.coefficients
    array([1.5, 0.5, 0. ])
    """

    problem: Problem
    method: str
    coefficients: Array
    certificate: Certificate | None
    costs: Costs
    rounds: int
    status: Status
    candidates: Array
    chosen: int = 0
    settings: tuple[float, ...] = (0.0,)
    points: tuple[PathPoint, ...] = ()
    validation: Validation | None = None
    reason: Reason | None = None
    curve: Curve | None = None
    plan: str = ""
    view: Standardise | None = None
    scaling: Scaling | None = None
    evidence: Folded | None = None
    trust: Trust | None = None
    path: tuple[Array, ...] | None = None
    state: State | Any = None

    @classmethod
    def of_points(
        cls, points: Sequence[PathPoint], chosen: int, problem: Problem, **rest: Any
    ) -> Fit:
        """Return the fit that a goal has chosen among certified candidates."""
        point = points[chosen]
        return cls(
            problem=replace(problem, penalty=point.penalty),
            coefficients=point.coefficients,
            certificate=point.certificate,
            candidates=np.column_stack([each.coefficients for each in points]),
            chosen=chosen,
            settings=tuple(each.lam for each in points),
            points=tuple(points),
            **rest,
        )

    @property
    def penalty(self) -> Penalty:
        """The penalty of the model."""
        return self.problem.penalty

    @property
    def path_penalty(self) -> float:
        """The chosen penalty of the Lasso path that the model comes from, or the given one.

        An adaptive, relaxed or refitted model has another penalty of its own.
        """
        return self.penalty.strength if self.curve is None else self.curve.lam

    @property
    def standardised(self) -> tuple[Standardise, Scaling]:
        """View and scaling of a fit for a goal, which always has them."""
        assert self.view is not None
        assert self.scaling is not None
        return self.view, self.scaling

    @property
    def why(self) -> str:
        """What was chosen and why, in one line."""
        return str(self.reason or "")

    @property
    def setting(self) -> float:
        """Threshold, rate or penalty of the chosen candidate."""
        return self.settings[self.chosen]
