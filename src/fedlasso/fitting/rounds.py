"""The one round loop, and the rules that end it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fedlasso.federation import Costs, Federation, Ledger, metered
from fedlasso.numerics import Array, one_thread
from fedlasso.procedures import Problem, Procedure, State

S = TypeVar("S", bound=State)
Stop = Callable[["Run[Any]"], bool]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the sites said before the first round, and what asking cost."""

    total: Any
    costs: Costs


def prepare(ledger: Ledger, procedure: Procedure[Any]) -> Prepared:
    """Ask what a procedure asks once, before its first round."""
    before = ledger.costs
    question = procedure.first_question
    total = None if question is None else ledger.total(question())
    return Prepared(total, ledger.costs - before)


class Run(Generic[S]):
    """A procedure under way: its state, and what has passed between server and sites for it.

    Parameters
    ----------
    federation : the sites
    procedure, problem : what is run, and on what; a problem it cannot solve is refused here
    prepared : answers that another run of the procedure has had already, which this one shares
    state : where to go on from; the procedure's own beginning by default
    """

    def __init__(
        self,
        federation: Federation,
        procedure: Procedure[S],
        problem: Problem,
        *,
        prepared: Prepared | None = None,
        state: S | None = None,
    ) -> None:
        procedure.check(problem)
        self.ledger = metered(federation)
        self.procedure = procedure
        self.problem = problem
        self._asked = Costs()
        if state is None:
            prepared = prepared or prepare(self.ledger, procedure)
            self._asked = prepared.costs
            with one_thread():
                state = procedure.start(problem, prepared.total)
        self.state: S = state
        self._before = self.ledger.costs

    @property
    def costs(self) -> Costs:
        """What the run has cost so far, its preparation included."""
        return self._asked + (self.ledger.costs - self._before)

    @property
    def models(self) -> Array:
        """Candidate models, one per column."""
        return self.procedure.models(self.problem, self.state)

    @property
    def uploads(self) -> float:
        """Vectors of p numbers that a site has sent for training, on average over the sites."""
        vector = 8 * self.problem.p * len(self.problem.sizes)
        return self.costs.total("training").upload / vector

    @property
    def next_upload(self) -> float:
        """The same of the round that would come next."""
        asked = len(self.procedure.request(self.problem, self.state).to) or len(self.problem.sizes)
        numbers = asked * self.procedure.upload(self.problem, self.state)
        return numbers / (self.problem.p * len(self.problem.sizes))

    def rounds(self, stop: Stop) -> Iterator[S]:
        """Go on round by round until the procedure is done or the rule says stop."""
        while self._advance(stop):
            yield self.state

    @one_thread()
    def _advance(self, stop: Stop) -> bool:
        """Take one more round, unless the run has ended."""
        if self.procedure.done(self.problem, self.state) or stop(self):
            return False
        total = self.ledger.total(self.procedure.request(self.problem, self.state))
        with self.ledger.clock("training"):
            self.state = self.procedure.advance(self.problem, self.state, total)
        return True

    def until(self, stop: Stop) -> S:
        """Go on to the end and return the last state."""
        for _ in self.rounds(stop):
            pass
        return self.state


def after_rounds(count: int) -> Stop:
    """Stop when the run has taken so many rounds in all."""
    return lambda run: run.state.round >= count


def within_uploads(vectors: float) -> Stop:
    """Stop before a round that would make a site send more than so many vectors."""
    return lambda run: run.uploads + run.next_upload > vectors


def when_still(still: Callable[[Array, Array], bool], rounds: int) -> Stop:
    """Stop when a round has moved the first candidate so little that `still(before, now)`.

    Or after so many rounds in all.
    """
    last: list[Array] = []

    def stop(run: Run[Any]) -> bool:
        now = run.models[:, 0]
        arrived = bool(last) and still(last[0], now)
        last[:] = [now]
        return arrived or run.state.round >= rounds

    return stop
