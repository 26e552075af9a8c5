"""A coordinator who is after one site's own numbers, though they leave masked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from helpers.nets import COLUMNS, FIT, in_process, numbers, opening

from fedlasso import FedLassoError
from fedlasso.federation import decode, encode
from fedlasso.federation.fixed_point import OFFSET, Words, from_words, grid_of
from fedlasso.federation.messages import add_up
from fedlasso.governance import Door
from fedlasso.governance.door_messages import Opened, Refusal
from fedlasso.governance.masks import OfferKey
from fedlasso.sites import GradientAt, Standardise, Viewed


def ask(door: Door, request: Any) -> Any:
    return decode(door.answer_bytes(encode(request)))


def offers_of(doors: dict[str, Door], session: str = "one") -> tuple[str, ...]:
    return tuple(ask(door, OfferKey(FIT, session)).offer for door in doors.values())


class Isolating:
    """A coordinator who asks site a something and the others something that it knows the answer to.

    What all words come to together, minus what it knows, would be site a's own answer. It may name
    more sites than there are.
    """

    def __init__(self, doors: dict[str, Door], named: Sequence[str] = ()) -> None:
        self.doors = doors
        self.named = tuple(named or doors)
        self.number = 0

    def open(self, columns: dict[str, tuple[str, ...]] | None = None) -> None:
        offers = offers_of(self.doors)
        for name, door in self.doors.items():
            chosen = (columns or {}).get(name, COLUMNS)
            given = opening(numbers(chosen), session="one", offers=offers, sites=self.named)
            reply = ask(door, given)
            if isinstance(reply, Refusal):
                raise FedLassoError(reply.text)
            assert isinstance(reply, Opened)

    def keep(self, view: Standardise) -> None:
        for door in self.doors.values():
            ask(door, view)

    def sum(self, questions: dict[str, Any]) -> Words:
        self.number += 1
        replies = []
        for name, door in self.doors.items():
            reply = ask(door, replace(questions[name], number=self.number))
            assert isinstance(reply, Words), reply
            replies.append(reply)
        return add_up(tuple(replies))


def keep_as_it_is() -> Standardise:
    """A view of the records as they are, which says how large they are."""
    p = len(COLUMNS)
    powers = ("6",) * (p + 2)
    terms = ("8",) * p
    return Standardise(np.zeros(p), np.ones(p), 0.0, powers=powers, terms=terms)


def be_all_others(
    real: Door, shams: dict[str, Door], tables: dict[str, Path], named: Sequence[str] = ()
) -> float:
    """How far off a coordinator's guess at one site's gradient is, who is all other sites itself.

    It knows the records that it has invented, so it knows their part of a total. `tables` has the
    records of all, and `named` are the sites that are said to take part.
    """
    coordinator = Isolating({real.name: real} | shams, named)
    coordinator.open()
    p = len(COLUMNS)
    view = keep_as_it_is()
    coordinator.keep(view)
    asked = GradientAt(np.eye(p)[0], on=view.name, reach=10 + OFFSET)
    grid = grid_of(asked, view.magnitudes, p)
    assert grid is not None
    total = from_words(coordinator.sum(dict.fromkeys(coordinator.doors, asked)), asked, grid)
    guess = total.gradient - part_of({name: tables[name] for name in shams}, view, asked)
    own = part_of({real.name: tables[real.name]}, view, asked)
    return float(np.abs(guess - own).max() / np.abs(own).max())


def part_of(tables: dict[str, Path], view: Standardise, asked: GradientAt) -> Any:
    """What some sites' gradients come to together, by whoever has their records."""
    records = in_process(tables)
    records.ask(view)
    return add_up(Viewed(records, view).replies(replace(asked, reach=0))).gradient
