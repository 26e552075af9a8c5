"""The one round loop, and the rules that end it."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fedlasso.errors import RefusalCode, Refused
from fedlasso.federation import Costs, Federation, Ledger, Request, metered
from fedlasso.federation.federation import exchange
from fedlasso.numerics import Array, one_thread
from fedlasso.procedures import Problem, Procedure, State

S = TypeVar("S", bound=State)
T = TypeVar("T")
Stop = Callable[["Run[Any]"], bool]
# A fit that yields questions, receives totals with their costs, and returns a result.
Question = tuple[Federation, Request[Any]]
Asking = Generator[Question, tuple[Any, Costs], T]


@dataclass(frozen=True, eq=False)
class FirstAnswers:
    """The sites' answers before the first round, and what they cost."""

    total: Any
    costs: Costs


def prepare(ledger: Ledger, procedure: Procedure[Any]) -> FirstAnswers:
    """Ask the question of a procedure before its first round."""
    before = ledger.costs
    question = procedure.first_question
    total = None if question is None else ledger.total(question())
    return FirstAnswers(total, ledger.costs - before)


class Run(Generic[S]):
    """A procedure under way: its state and its costs. A problem it cannot solve is refused here.

    `trips` counts its own round trips, the preparation included.

    `prepared` are the first answers of another run of the procedure, and `state` is where to go on
    from; by default the run asks, and starts at the procedure's own beginning.
    """

    def __init__(
        self,
        federation: Federation,
        procedure: Procedure[S],
        problem: Problem,
        *,
        prepared: FirstAnswers | None = None,
        state: S | None = None,
    ) -> None:
        procedure.check(problem)
        self.ledger = metered(federation)
        self.procedure = procedure
        self.problem = problem
        self._earlier = Costs()
        self.trips = 0
        if state is None:
            prepared = prepared or prepare(self.ledger, procedure)
            self._earlier = prepared.costs
            self.trips = prepared.costs.trips
            with one_thread():
                state = procedure.start(problem, prepared.total)
        self.state: S = state
        self._before = self.ledger.costs

    @property
    def costs(self) -> Costs:
        """The costs so far, including the preparation."""
        return self._earlier + (self.ledger.costs - self._before)

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
        """Vectors of the next round, on average over the sites."""
        sites = len(self.procedure.request(self.problem, self.state).to) or len(self.problem.sizes)
        numbers = sites * self.procedure.upload(self.problem, self.state)
        return numbers / (self.problem.p * len(self.problem.sizes))

    def rounds(self, stop: Stop) -> Iterator[S]:
        """Go on round by round until the procedure is done or the rule stops it."""
        while self._advance(stop):
            yield self.state

    @one_thread()
    def _advance(self, stop: Stop) -> bool:
        request = self._next(stop)
        if request is None:
            return False
        try:
            self._take(self.ledger.total(request))
        except Refused as refusal:
            instead = self.procedure.without_moments()
            if refusal.code is not RefusalCode.NO_MOMENTS or instead is None:
                raise
            self.procedure = instead
        return True

    def until(self, stop: Stop) -> S:
        """Go on to the end and return the last state."""
        for _ in self.rounds(stop):
            pass
        return self.state

    def asking(self, stop: Stop) -> Asking[S]:
        """Go on to the end as one of several runs of `run_together`."""
        while (request := one_thread()(self._next)(stop)) is not None:
            so_far = self.costs
            total, cost = yield self.ledger, request
            # What others have asked meanwhile is not this run's cost.
            self._earlier = so_far + cost
            self._before = self.ledger.costs
            one_thread()(self._take)(total)
        return self.state

    def _next(self, stop: Stop) -> Request[Any] | None:
        """Return the next question, unless the run has ended."""
        if self.procedure.done(self.problem, self.state) or stop(self):
            return None
        return self.procedure.request(self.problem, self.state)

    def _take(self, total: Any) -> None:
        self.trips += 1
        with self.ledger.clock("training"):
            self.state = self.procedure.advance(self.problem, self.state, total)


def run_together(fits: Sequence[Asking[T]]) -> tuple[T, ...]:
    """Run several fits side by side: one round trip asks the next questions of all of them."""
    done: dict[int, T] = {}
    waiting = _resume(dict(enumerate(fits)), dict.fromkeys(range(len(fits))), done)
    while waiting:
        answers = dict(zip(waiting, _ask_each(list(waiting.values())), strict=True))
        waiting = _resume({k: fits[k] for k in waiting}, answers, done)
    return tuple(done[k] for k in range(len(fits)))


def _resume(
    fits: dict[int, Asking[T]], answers: dict[int, Any], done: dict[int, T]
) -> dict[int, Question]:
    """Send fits their answers; return their next questions, and add results to `done`."""
    questions = {}
    for k, fit in fits.items():
        try:
            questions[k] = fit.send(answers[k])
        except StopIteration as end:
            done[k] = end.value
    return questions


@one_thread()
def _ask_each(questions: Sequence[Question]) -> list[tuple[Any, Costs]]:
    """Return the total of each question and its own costs, in one round trip."""
    sent = [federation.prepare(request) for federation, request in questions]
    pairs = zip(sent, exchange(sent), strict=True)
    return [(q.read(replies), Costs.of(q.request, replies)) for q, replies in pairs]


def after_rounds(count: int) -> Stop:
    """Stop after so many rounds in all."""
    return lambda run: run.state.round >= count


def within_uploads(vectors: float) -> Stop:
    """Stop before a round that would make a site send more than so many vectors."""
    return lambda run: run.uploads + run.next_upload > vectors


def within_trips(reserve: int = 0) -> Stop:
    """Stop when only so many round trips are left."""
    return lambda run: run.ledger.trips_left <= reserve


def any_of(*stops: Stop) -> Stop:
    """Stop when one of several rules does."""
    return lambda run: any(stop(run) for stop in stops)


def when_still(still: Callable[[Array, Array], bool], rounds: int) -> Stop:
    """Stop when the first candidate satisfies `still(before, now)`, or after so many rounds."""
    last: list[Array] = []

    def stop(run: Run[Any]) -> bool:
        now = run.models[:, 0]
        arrived = bool(last) and still(last[0], now)
        last[:] = [now]
        return arrived or run.state.round >= rounds

    return stop
