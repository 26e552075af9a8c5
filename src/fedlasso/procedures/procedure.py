"""The shape that every procedure has: a frozen set of hyperparameters and pure functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Message, Request
from fedlasso.numerics import Array
from fedlasso.numerics.certificate import Certificate


@dataclass(frozen=True)
class Problem:
    """What the server knows before the first round.

    Attributes
    ----------
    lam : the common penalty
    sizes : training rows of each site, in the order of the sites' names
    p : number of predictors
    """

    lam: float
    sizes: tuple[int, ...]
    p: int

    def __post_init__(self) -> None:
        if not (np.isfinite(self.lam) and self.lam >= 0):
            raise FedLassoError(f"the penalty is {self.lam}; give a finite number, zero or more")

    @property
    def m(self) -> int:
        """Training rows of all sites together."""
        return sum(self.sizes)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """w_j = m_j / m."""
        return tuple(m_j / self.m for m_j in self.sizes)

    def average(self, values: Sequence[Array]) -> Array:
        """sum_j w_j values_j, added in the order of the sites' names so that no bit can change."""
        total = self.weights[0] * values[0]
        for w, value in zip(self.weights[1:], values[1:], strict=True):
            total += w * value
        return total


@dataclass(frozen=True, eq=False)
class State(Message):
    """What a procedure carries from round to round; it travels and is saved like any message."""

    round: int = field(default=0, kw_only=True)


S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Procedure(ABC, Generic[S]):
    """A federated procedure. Candidates are columns: they travel together, each is charged.

    A subclass is a frozen dataclass that says

    - ``start``: the first state;
    - ``request``: what to ask the sites in this state;
    - ``advance``: the next state from their replies;
    - ``models``: the candidate models (p by q) in a state.

    Attributes
    ----------
    name : as the paper calls it
    path_of : the procedure whose path this one reads, if not its own
    epochs : local steps a round, where the procedure takes any
    settings : one number per candidate (a threshold, a rate, a damping), in candidate order
    """

    name: ClassVar[str]
    path_of: ClassVar[str] = ""
    epochs: int = 1
    settings: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        if not isinstance(self.epochs, int | np.integer) or self.epochs < 1:
            raise FedLassoError(f"epochs is {self.epochs!r}; give a whole number, 1 or more")
        if self.settings != type(self).settings == (0.0,):
            raise FedLassoError(f"{self.name} has nothing to choose; leave settings out")
        if not (self.settings and np.isfinite(self.settings).all() and min(self.settings) >= 0):
            raise FedLassoError(
                f"settings is {self.settings!r}; give one number or more, each zero or above"
            )

    @property
    def paths(self) -> int:
        """How many training paths are run and charged: every candidate's own, unless they share."""
        return len(self.settings)

    def prepare(self) -> Request[Any] | None:
        """A question to ask once, before the first round."""
        return None

    @abstractmethod
    def start(self, problem: Problem, prepared: Sequence[Any]) -> S:
        """The first state, from the replies to `prepare`."""

    @abstractmethod
    def request(self, problem: Problem, state: S) -> Request[Any]:
        """What the server asks the sites in this state."""

    @abstractmethod
    def advance(self, problem: Problem, state: S, replies: Sequence[Any]) -> S:
        """The next state."""

    @abstractmethod
    def models(self, problem: Problem, state: S) -> Array:
        """Candidate models, one a column."""

    def upload(self, problem: Problem, state: S) -> int:
        """Numbers that each site will send in the next round."""
        return self.paths * problem.p

    def certificate(self, problem: Problem, state: S) -> Certificate | None:
        """The certificate of `models`, if the server can tell without asking the sites again."""
        return None

    def done(self, problem: Problem, state: S) -> bool:
        """Whether a further round would change nothing worth paying for."""
        return False
