"""Computations that yield questions and receive answers, driven alone or side by side."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from fedlasso.errors import CannotFit, Refused
from fedlasso.federation import Prepared, ask_together

T = TypeVar("T")
# Yields the questions of one round trip, receives their answers, and returns a result.
Dialogue = Generator[Sequence[Prepared], tuple[Any, ...], T]
Send = Callable[[Sequence[Prepared]], tuple[Any, ...]]
# What a computation receives; it starts with None.
Received = Any


def ask_once(questions: Sequence[Prepared]) -> Dialogue[tuple[Any, ...]]:
    """Ask some questions in one round trip, side by side with other computations."""
    return (yield questions)


def drive(steps: Dialogue[T], send: Send = ask_together) -> T:
    """Run one computation to its end; each of its round trips is sent alone.

    A refusal is raised where the computation waits for the answers.
    """
    received: Received = None
    while True:
        try:
            refused = isinstance(received, Refused)
            questions = steps.throw(received) if refused else steps.send(received)
        except StopIteration as end:
            found: T = end.value
            return found
        try:
            received = send(questions)
        except Refused as refusal:
            received = refusal


def drive_together(several: Sequence[Dialogue[Any]]) -> list[Any]:
    """Run computations side by side: one round trip has the next questions of all of them.

    A result is the reason if a site refuses a question of a computation or it cannot go on.
    """
    results: dict[int, Any] = {}
    received: dict[int, Received] = dict.fromkeys(range(len(several)))
    while received:
        asked: dict[int, Sequence[Prepared]] = {}
        for k, answers in received.items():
            try:
                if isinstance(answers, Refused):
                    asked[k] = several[k].throw(answers)
                else:
                    asked[k] = several[k].send(answers)
            except StopIteration as end:
                results[k] = end.value
            except (Refused, CannotFit) as reason:
                results[k] = reason
        received = _exchange(asked)
    return [results[k] for k in range(len(several))]


def _exchange(asked: dict[int, Sequence[Prepared]]) -> dict[int, Received]:
    """Return the answers to each computation's questions, or the refusal of some."""
    try:
        answers = iter(ask_together([q for questions in asked.values() for q in questions]))
        return {k: tuple(next(answers) for _ in questions) for k, questions in asked.items()}
    except Refused as refusal:
        if len(asked) == 1:
            return dict.fromkeys(asked, refusal)
    # Sites rather refuse what they would send alone than sums over all sites.
    apart = [k for k, own in asked.items() if any(q.request.discloses.single for q in own)]
    sums = {k: own for k, own in asked.items() if k not in apart}
    groups = [{k: asked[k]} for k in apart]
    groups += [sums] if apart and sums else [{k: own} for k, own in sums.items()]
    return {k: answers for group in groups for k, answers in _exchange(group).items()}
