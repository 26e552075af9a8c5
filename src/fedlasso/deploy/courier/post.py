"""The coordinator's end of a fit by files: a line that stops where answers are not there yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import msgspec

from fedlasso.atomic_files import write_atomically
from fedlasso.deploy import schemas
from fedlasso.deploy.courier.contents import AnswerContents, read, session_of
from fedlasso.deploy.network import Answer, Network
from fedlasso.errors import FedLassoError, Interrupted, Stopped
from fedlasso.federation import Reply, Request, decode
from fedlasso.fitting import Settings
from fedlasso.governance.door_messages import (
    DescribeColumns,
    Described,
    Introduce,
    Introduction,
    Open,
    Opened,
    SummariseAudit,
)
from fedlasso.governance.masks import KeyOffered, OfferKey
from fedlasso.models import NetworkSource
from fedlasso.tables import Schema

# Writes one site's question file of a round trip, given its questions and the head of its audit.
WriteQuestion = Callable[[int, str, bytes, tuple[str, ...]], None]


class Awaiting(Interrupted):
    """The fit goes on once these sites have answered."""

    def __init__(self, trip: int, sites: Sequence[str]) -> None:
        super().__init__(f"round trip {trip}: awaiting {', '.join(sites)}")
        self.trip = trip
        self.sites = tuple(sites)


class AskedOtherwise(Stopped):
    """Another version of the software would ask other questions."""


@dataclass(eq=False)
class PostedLine:
    """A line whose answers are in files: one that is not there ends the fit for now.

    The fit starts anew with every answer. Its questions follow from the answers, so it asks the
    same ones again, and the answers in `folder` are found there.
    """

    folder: Path
    write_question: WriteQuestion
    trip: int = 0

    def __post_init__(self) -> None:
        # The last summary of each site's audit.
        self.audits: dict[str, bytes] = {}

    def exchange(self, sites: Sequence[str], question: bytes, seconds: float) -> list[Answer]:
        """Return the answers of a round trip, or write the questions and stop."""
        self.trip += 1
        folder = trip_folder(self.folder, self.trip)
        asked = folder / "question"
        if not asked.exists():
            write_atomically(asked, question, private=True)
        elif asked.read_bytes() != question:
            remedy = "finish this fit with the version that started it, or start a new fit"
            change = f"round trip {self.trip} would ask something else than before"
            raise AskedOtherwise(f"{change}; {remedy}")
        missing = [site for site in sites if not answer_path(folder, site).exists()]
        for site in missing:
            self.write_question(self.trip, site, question, self._heads(site))
        if missing:
            raise Awaiting(self.trip, missing)
        answers = []
        for site in sites:
            answered = read(answer_path(folder, site).read_bytes(), AnswerContents)
            self.audits[site] = answered.audit
            answers.append(Answer(site, "reply", answered.replies))
        return answers

    def _heads(self, site: str) -> tuple[str, ...]:
        """Return where a site's audit ended, which its next summary must continue."""
        if site not in self.audits:
            return ()
        summary: Any = decode(self.audits[site])
        return (f"{site}:{summary.lines}:{summary.head}",)


def trip_folder(folder: Path, trip: int) -> Path:
    return folder / f"{trip:03d}"


def answer_path(folder: Path, site: str) -> Path:
    return folder / f"{site}.answer"


class PostedNetwork(Network):
    """Sites that answer by files; questions share a round trip wherever they can.

    The first round trip asks who the sites are, what their columns hold, and for their keys. The
    question to join travels with the first question of the fit, and a summary of the audit with
    every answer.
    """

    def __init__(self, line: PostedLine, sites: Sequence[str]) -> None:
        super().__init__(line, sites, float("inf"))
        self._posted = line
        self._first: tuple[Any, ...] = ()
        self._pending: list[Request[Any]] = []

    def open(self, source: NetworkSource, settings: Settings | None = None) -> NetworkSource:
        """Ask all that is known beforehand at once, then agree and join as over a network."""
        outcome = source.outcome(settings or Settings())
        roles = schemas.name_outcome(outcome)
        how = (source.fit, outcome.target, source.columns, source.na, source.min_level)
        offer = OfferKey(source.fit, session_of(source.fit))
        self._first = self.replies_together([Introduce(), offer, DescribeColumns(*how, **roles)])
        return super().open(source, settings)

    def introduce(self) -> None:
        """Take the introductions of the first round trip; clocks cannot be compared by files."""
        self._note_introductions(cast(tuple[Introduction, ...], self._first[0]))
        self.ahead = dict.fromkeys(self.sites, 0.0)

    def _draw_keys(self, fit: str) -> tuple[str, tuple[str, ...]]:
        offered = cast(tuple[KeyOffered, ...], self._first[1])
        return session_of(fit), tuple(reply.offer for reply in offered)

    def _describe(self, request: DescribeColumns) -> tuple[Described, ...]:
        described = cast(tuple[Described, ...], self._first[2])
        return tuple(_select(reply, request.columns) for reply in described)

    def _join(self, opening: Open) -> None:
        self._pending = [opening]

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        if isinstance(requests[0], SummariseAudit):
            return (self._summaries(requests[0]),)
        pending, self._pending = self._pending, []
        try:
            answered = super().replies_together([*pending, *requests])
        except FedLassoError:
            # A site may have refused before it joined.
            self._pending = pending
            raise
        if pending:
            self.count_atoms(cast(tuple[Opened, ...], answered[0]))
        return answered[len(pending) :]

    def _summaries(self, request: SummariseAudit) -> tuple[Reply, ...]:
        """Return the summaries of the sites' audits in their last answers."""
        audits = self._posted.audits
        answers = [Answer(site, "reply", audits[site]) for site in self.sites]
        return tuple(self._receive(request, answer, None) for answer in answers)


def _select(reply: Described, columns: Sequence[str]) -> Described:
    """Return the description of some columns, in their order."""
    try:
        schema = msgspec.json.decode(reply.schema, type=Schema)
        by_name = {column.name: column for column in schema.columns}
        kept = replace(schema, columns=tuple(by_name[name] for name in columns))
    except (ValueError, KeyError, RecursionError):
        raise Stopped(
            f"site {reply.site!r} did not describe its columns; start a new fit"
        ) from None
    numbers = tuple(name for name in reply.row_numbers if name in columns)
    return replace(reply, schema=schemas.write_schema(kept), row_numbers=numbers)
