"""What a fit is: by a procedure at one penalty, or by a goal that chooses for itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from fedlasso.federation import Costs
from fedlasso.fitting.session import PathPoint
from fedlasso.fitting.tuning import Validation
from fedlasso.numerics import Array, Certificate, Penalty
from fedlasso.procedures import Problem, Procedure, State


class Status(Enum):
    """How a fit ended; the text says what to do.

    Examples
    --------
    >>> from fedlasso import Status
    >>> print(Status.OPTIMAL.value)
    The fit is the pooled Lasso to the tolerance asked for. Nothing to do.
    """

    OPTIMAL = "The fit is the pooled Lasso to the tolerance asked for. Nothing to do."
    SHORT = (
        "The rounds are used up before the pooled Lasso was reached. Read the certificate; if it "
        "is too loose, give more rounds or another procedure."
    )
    CHOSEN = (
        "The model was chosen for the goal, not for one objective. Read `why`; the certificate is "
        "about the penalty, weights and support of the chosen candidate."
    )
    UNCERTIFIED = "No certificate was asked for. Fit with certified=True to know the distance."


@dataclass(frozen=True, eq=False)
class Fit:
    """What a procedure made of one problem.

    Attributes
    ----------
    procedure, problem : what was run, and on what
    rounds : how many rounds were run
    coefficients : the chosen model
    candidates : every candidate model, one per column
    chosen : index of the chosen candidate
    validation : pooled validation errors, if there was anything to choose
    path : every round's candidate models, if asked for
    state : what a further round would start from
    costs : what passed between server and sites
    certificate : distance to the best possible objective, if asked for
    status : how the fit ended
    why : why this procedure, if a goal picked it

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, fit
    >>> result = fit(InProcess([Site("a", np.eye(3), [3.0, 2.0, 0.1])]), "CD", penalty=0.5)
    >>> result.coefficients
    array([1.5, 0.5, 0. ])
    """

    procedure: Procedure[Any]
    problem: Problem
    rounds: int
    coefficients: Array
    candidates: Array
    chosen: int
    validation: Validation | None
    path: tuple[Array, ...] | None
    state: State
    costs: Costs
    certificate: Certificate | None
    status: Status
    why: str = ""

    @property
    def penalty(self) -> Penalty:
        """The penalty of the model."""
        return self.problem.penalty

    @property
    def method(self) -> str:
        """Name of the procedure."""
        return self.procedure.name

    @property
    def setting(self) -> float:
        """Threshold or rate of the chosen candidate."""
        return self.procedure.settings[self.chosen]


@dataclass(frozen=True, eq=False)
class GoalFit:
    """What a goal chose among certified fits of several families.

    Attributes
    ----------
    goal : what the model is for
    problem : the pooled problem, at the chosen candidate's own penalty and weights
    family : the family of the chosen candidate: Lasso, adaptive Lasso or a refit of one
    rounds : gradients that were asked for
    points : the candidates
    chosen : index of the chosen candidate
    validation : pooled errors of the candidates on the second validation samples
    explored : the Lasso path on the way, with errors on the first validation samples
    costs : what passed between server and sites
    why : what was chosen and why, in one line

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site, fit_for
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 5))
    >>> y = 2 * X[:, 0] + rng.standard_normal(150)
    >>> held_out = {"penalty": (X[100:125], y[100:125]), "candidate": (X[125:], y[125:])}
    >>> site = Site("a", X[:100], y[:100], validation=held_out)
    >>> fit_for(InProcess([site]), "selection").family
    'refitted adaptive Lasso'
    """

    goal: str
    problem: Problem
    family: str
    rounds: int
    points: tuple[PathPoint, ...]
    chosen: int
    validation: Validation
    explored: tuple[tuple[PathPoint, float], ...]
    costs: Costs
    why: str
    status: Status = Status.CHOSEN

    @property
    def coefficients(self) -> Array:
        """The chosen model."""
        return self.points[self.chosen].coefficients

    @property
    def certificate(self) -> Certificate:
        """Distance to the best possible objective at the chosen candidate's penalty."""
        return self.points[self.chosen].certificate

    @property
    def penalty(self) -> Penalty:
        """The penalty of the chosen candidate, with its weights."""
        return self.points[self.chosen].penalty

    @property
    def method(self) -> str:
        """The family that the model is of."""
        return self.family

    @property
    def setting(self) -> float:
        """Strength of the chosen candidate's penalty."""
        return self.penalty.lam
