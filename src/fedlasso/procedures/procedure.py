"""The interface of a procedure: frozen hyperparameters and pure functions."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Message, Reply, Request
from fedlasso.federation.magnitudes import COARSE, Bound, Magnitudes
from fedlasso.federation.messages import Vectors, layout, reply_to
from fedlasso.numerics import DEFAULT_LOSS, Array, Certificate, Penalty, find_loss
from fedlasso.numerics.penalties import Capability
from fedlasso.sites import LargestEigenvalue, View

# What a procedure needs of a penalty, in words, and procedures that do not need it.
REFUSALS: dict[Capability, tuple[str, str]] = {
    "prox": ("needs a proximal step", "Newton or Voting"),
    "dual_limit": ("needs a dual limit", "FISTA or FedMid"),
    "thresholds": ("needs a soft threshold for each coefficient", "FISTA or FedMid"),
    "convex": ("needs a convex penalty", "FISTA or FedMid"),
    "separable": ("needs a penalty that is a sum over coefficients", "FISTA or FedMid"),
    "ridgeless": ("takes no ridge", "Newton or FISTA"),
    "uniform": ("takes one penalty for all coefficients", "Newton or FISTA"),
    "unbounded": ("takes no bounds on coefficients", "Newton or FISTA"),
}


@dataclass(frozen=True)
class Problem:
    """The optimization problem, as the server knows it before the first round.

    Attributes
    ----------
    penalty : the penalty on the coefficients
    sites : names of the sites
    sizes : number of training rows of each site, in the order of `sites`
    p : number of predictors
    loss : name of the loss

    Examples
    --------
    >>> from fedlasso import L1, Problem
    >>> Problem(L1(0.1), sites=("a", "b"), sizes=(30, 20), p=4).m
    50
    """

    penalty: Penalty
    sites: tuple[str, ...]
    sizes: tuple[int, ...]
    p: int
    loss: str = DEFAULT_LOSS

    @property
    def quadratic(self) -> bool:
        return find_loss(self.loss).quadratic

    @property
    def m(self) -> int:
        """Total number of training rows."""
        return sum(self.sizes)


class State(Message):
    """The state of a procedure between rounds, saved and sent like any message.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso.procedures import Average
    >>> Average(np.zeros((3, 1)), np.zeros(1), round=2).round
    2
    """

    round: int = field(default=0, kw_only=True)


S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Procedure(ABC, Generic[S]):
    """A federated procedure, which fits one candidate model per setting.

    Candidates are columns of one message; each counts as an upload. A subclass is a frozen
    dataclass that defines

    - ``start``: the first state;
    - ``request``: the question to the sites in a state;
    - ``advance``: the next state, from the total of the replies;
    - ``models``: the candidate models (p by q) in a state.

    Attributes
    ----------
    name : the name in the paper
    losses : which losses it can fit
    needs : capabilities that a penalty must have; by default those of the plain Lasso
    first_question : a question to ask once before the first round, if any
    path_of : the procedure whose path this one uses, if not its own
    epochs : local steps per round, if the procedure takes any
    settings : one number per candidate (a threshold, a rate, a damping)

    Examples
    --------
    >>> from fedlasso import find_procedure
    >>> da = find_procedure("DA")(epochs=5)
    >>> da.losses, da.paths
    ('any smooth', 5)
    """

    name: ClassVar[str]
    losses: ClassVar[Literal["quadratic", "any smooth"]] = "quadratic"
    needs: ClassVar[tuple[Capability, ...]] = ("thresholds", "ridgeless", "uniform", "unbounded")
    first_question: ClassVar[type[Request[Any]] | None] = None
    path_of: ClassVar[str] = ""
    epochs: int = 1
    settings: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        if not isinstance(self.epochs, int | np.integer) or self.epochs < 1:
            raise FedLassoError(f"epochs is {self.epochs!r}; give a whole number, 1 or more")
        if self.settings != type(self).settings == (0.0,):
            raise FedLassoError(f"{self.name} has no settings; leave them out")
        if not (self.settings and np.isfinite(self.settings).all() and min(self.settings) >= 0):
            raise FedLassoError(
                f"settings is {self.settings!r}; give one number or more, each zero or above"
            )

    def check(self, problem: Problem) -> None:
        """Raise an error if this procedure cannot solve the problem."""
        if self.losses != "any smooth" and not problem.quadratic:
            raise FedLassoError(
                f"{self.name} fits the quadratic loss only, and these sites have the "
                f"{problem.loss} loss; use Newton or FISTA, which reach the optimum of any loss"
            )
        for capability in self.needs:
            if not problem.penalty.offers(capability):
                need, others = REFUSALS[capability]
                what = {
                    "uniform": "an unpenalised intercept or column",
                    "unbounded": "bounds",
                    "ridgeless": "an elastic net",
                }
                penalty = what.get(capability, f"this {problem.penalty.name!r} penalty")
                raise FedLassoError(f"{self.name} {need}; use {others} for {penalty}")

    @property
    def paths(self) -> int:
        """Number of paths that are run and charged: one per candidate, unless they share one."""
        return len(self.settings)

    @abstractmethod
    def start(self, problem: Problem, prepared: Any) -> S:
        """Return the first state, from the total of the replies to `first_question`."""

    @abstractmethod
    def request(self, problem: Problem, state: S) -> Request[Any]:
        """Return the question to the sites in this state."""

    @abstractmethod
    def advance(self, problem: Problem, state: S, total: Any) -> S:
        """Return the next state, from the total of the sites' replies."""

    @abstractmethod
    def models(self, problem: Problem, state: S) -> Array:
        """Return the candidate models, one per column."""

    def upload(self, problem: Problem, state: S) -> int:
        """Return how many numbers each site will send in the next round."""
        request = self.request(problem, state)
        kinds = [kind for _, kind in layout(reply_to(type(request)))]
        shapes = [shape for shape in request.expects(problem.p).values() if shape is not None]
        return sum(kind in ("float", "int", "flag") for kind in kinds) + sum(map(prod, shapes))

    def certificate(self, problem: Problem, state: S) -> Certificate | None:
        """Return the certificate of `models`, if the server can compute it without the sites."""
        return None

    def finest(self, problem: Problem, state: S) -> float:
        """Return the gap due to rounding alone: a fit with no larger gap is optimal."""
        return 0.0

    def done(self, problem: Problem, state: S) -> bool:
        """Return whether the procedure has ended."""
        return False

    def without_moments(self) -> Self | None:
        """Return a form that goes on without second moments, which sites refuse; None if none."""
        return None


@dataclass(frozen=True)
class UntilCertified(Procedure[S]):
    """A procedure that runs until the pooled duality gap is at most `tol` times the objective."""

    tol: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tol >= 0:
            raise FedLassoError(f"tol is {self.tol!r}; give a relative gap, zero or more")

    def arrived(self, problem: Problem, state: S) -> bool:
        """Return whether the fit is certified to `tol`, or as far as rounding allows."""
        found = self.certificate(problem, state)
        return found is not None and found.reaches(self.tol, self.finest(problem, state))


# Powers of two by which a site's local steps may exceed the range of pooled fits.
FAR = 40


class Coefficients(Reply):
    """m_j times one vector per path, as columns: the sum over sites is m times their mean."""

    values: Vectors

    @classmethod
    def of(cls, site: View, vectors: Array, steps: int) -> Self:
        return cls(site.rows * vectors, steps=steps, operations=site.operations(steps))

    @classmethod
    def bounds(cls, magnitudes: Magnitudes) -> dict[str, Bound]:
        one = magnitudes.reach - magnitudes.columns + FAR
        return {"values": Bound(2 * magnitudes.rows + one, coarse=COARSE + FAR)}

    @staticmethod
    def bound_of_slopes(magnitudes: Magnitudes) -> Bound:
        """Return the bound of gradients that are summed along local steps."""
        return Bound(magnitudes.columns + magnitudes.reach + FAR, coarse=COARSE + FAR)


class Average(State):
    """One vector per path, as columns, and the setting of each path in units of the problem."""

    values: Array
    scales: Array


@dataclass(frozen=True)
class Averaged(Procedure[Average]):
    """A procedure whose server averages the `Coefficients` of the sites."""

    def start(self, problem: Problem, prepared: Any) -> Average:
        return Average(np.zeros((problem.p, self.paths)), self.scales(problem, prepared))

    def scales(self, problem: Problem, prepared: Any) -> Array:
        """Return the settings in units of the problem."""
        return np.array(self.settings)

    def advance(self, problem: Problem, state: Average, total: Any) -> Average:
        values = self.combine(problem, state, total.values / problem.m)
        return Average(values, state.scales, round=state.round + 1)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        """Return the next vectors, from the average."""
        return average

    def models(self, problem: Problem, state: Average) -> Array:
        return state.values


@dataclass(frozen=True)
class AtRates(Averaged):
    """Local gradient steps; the rates are fractions of 1 / L_max."""

    losses = "any smooth"
    needs: ClassVar[tuple[Capability, ...]] = ("prox", "convex", "unbounded")
    first_question = LargestEigenvalue
    settings: tuple[float, ...] = (0.03, 0.1, 0.3, 0.6, 1.0)

    def scales(self, problem: Problem, prepared: Any) -> Array:
        return np.array(self.settings) / float(prepared.value)
