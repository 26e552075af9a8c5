"""A ledger counts what passes between server and sites, and a journal stores it.

Procedures are pure functions of the replies. To resume is to run the same fit again: questions that
are in the journal are answered from it, and the first one that is not goes to the sites.
"""

from __future__ import annotations

import hashlib
import operator
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from itertools import accumulate, chain, islice, pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from fedlasso.atomic_files import make_private, write_atomically
from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation.codec import decode, encode, seal, size
from fedlasso.federation.federation import Around, Federation, Forwarding, check_replies, recipients
from fedlasso.federation.messages import R, Reply, Request

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one kind of exchange at one site, or a sum of such costs."""

    upload: int = 0
    download: int = 0
    framing: int = 0
    messages: int = 0
    steps: int = 0
    operations: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.upload + other.upload,
            self.download + other.download,
            self.framing + other.framing,
            self.messages + other.messages,
            self.steps + other.steps,
            self.operations + other.operations,
        )

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*map(operator.sub, _counts(self), _counts(other)))


_counts = operator.attrgetter(*(f.name for f in fields(Cost)))


@dataclass(frozen=True)
class Costs:
    """Costs by (kind, site), seconds by kind, and round trips; added and subtracted together."""

    entries: Mapping[tuple[str, str], Cost] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    trips: int = 0

    @classmethod
    def of(cls, request: Request[Any], replies: Sequence[Reply]) -> Costs:
        """Return the costs of one question with its replies, in a round trip."""
        download, head = size(request)
        entries = {}
        for reply in replies:
            upload, framing = size(reply)
            cost = Cost(upload, download, head + framing, 1, reply.steps, reply.operations)
            entries[request.kind, reply.site] = cost
        return cls(entries, trips=1)

    def total(self, kind: str | None = None, site: str | None = None) -> Cost:
        """Sum over every kind or one, and over every site or one."""
        costs = self.entries.items()
        return sum((c for (k, s), c in costs if kind in (None, k) and site in (None, s)), Cost())

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(k for k, _ in self.entries))

    @property
    def sites(self) -> tuple[str, ...]:
        return tuple(sorted({s for _, s in self.entries}))

    @property
    def most_sent(self) -> int:
        """Bytes sent by the site that sent the most."""
        return max((self.total(None, site).upload for site in self.sites), default=0)

    def most_steps(self, kind: str | None = None) -> int:
        """Return the local steps of the site that took most."""
        return max((self.total(kind, site).steps for site in self.sites), default=0)

    def __add__(self, other: Costs) -> Costs:
        keys = {**self.entries, **other.entries}
        kinds = {**self.seconds, **other.seconds}
        entries = {k: self.entries.get(k, Cost()) + other.entries.get(k, Cost()) for k in keys}
        seconds = {k: self.seconds.get(k, 0.0) + other.seconds.get(k, 0.0) for k in kinds}
        return Costs(entries, seconds, self.trips + other.trips)

    def __sub__(self, earlier: Costs) -> Costs:
        entries = {k: c - earlier.entries.get(k, Cost()) for k, c in self.entries.items()}
        seconds = {k: s - earlier.seconds.get(k, 0.0) for k, s in self.seconds.items()}
        exchanged = {k: c for k, c in entries.items() if c.messages}
        trips = self.trips - earlier.trips
        return Costs(exchanged, {k: s for k, s in seconds.items() if s > 0.0}, trips)


@dataclass(frozen=True)
class Exchange:
    """A round trip: its number, its questions, the costs of all so far, and its own seconds.

    `expected` is the estimated number of all round trips, 0 without an estimate.
    """

    number: int
    requests: tuple[Request[Any], ...]
    costs: Costs
    seconds: float
    expected: int = 0

    @property
    def progress(self) -> str:
        """The number of the round trip, such as "round 4 of about 12"."""
        about = f" of about {self.expected}" if 0 < self.number <= self.expected else ""
        return f"round {self.number}{about}"


Listen = Callable[[Exchange], None]
# Receives one line for the user: a plan, the end of a stage, a warning.
Notify = Callable[[str], None]


class Ledger(Around):
    """A federation that meters another one.

    Parameters
    ----------
    federation : the sites
    listen : called after every round trip

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Ledger, Site
    >>> from fedlasso.sites import Rows
    >>> ledger = Ledger(InProcess([Site("a", np.eye(2), [1, 2])]))
    >>> ledger.ask(Rows())[0].rows, ledger.costs.total().upload
    (2, 8)
    """

    def __init__(self, federation: Federation, listen: Listen | None = None) -> None:
        super().__init__(federation)
        self._entries: dict[tuple[str, str], Cost] = {}
        self._seconds: dict[str, float] = {}
        self._trips = 0
        self._expected = 0
        self._limit: int | None = None
        self._last = 0
        self._listen = listen

    @property
    def costs(self) -> Costs:
        return Costs(dict(self._entries), dict(self._seconds), self._trips)

    @property
    def trips_left(self) -> float:
        """Round trips that are still allowed; infinite without a limit."""
        return inf if self._limit is None else self._last - self._trips

    @contextmanager
    def limit_trips(self, count: int | None) -> Iterator[None]:
        """Allow so many round trips inside, any without a count; one more raises an error.

        An estimate of `expect` ends here too.
        """
        self._limit = count
        self._last = self._trips + (count or 0)
        try:
            yield
        finally:
            self._limit = None
            self._expected = 0

    def expect(self, trips: int) -> None:
        """Estimate how many round trips are still to come, for those who listen."""
        self._expected = self._trips + trips

    @contextmanager
    def clock(self, *kinds: str) -> Iterator[None]:
        """Add the time spent inside to the seconds of kinds, to each the same part."""
        start = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - start
            for kind in kinds:
                self._seconds[kind] = self._seconds.get(kind, 0.0) + elapsed / len(kinds)

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Ask the federation, and count what passed."""
        (replies,) = self.replies_together([request])
        return cast(tuple[R, ...], replies)

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        """Ask the federation in one round trip, and count what passed for each question."""
        if self.trips_left <= 0:
            raise FedLassoError(
                f"`round_trips` is {self._limit}, and this fit takes more; give more"
            )
        start = time.perf_counter()
        with self.clock(*(request.kind for request in requests)):
            answered = self.inner.replies_together(requests)
            answered = _check_together(self.sites, requests, answered)
        for request, replies in zip(requests, answered, strict=True):
            for key, cost in Costs.of(request, replies).entries.items():
                self._entries[key] = self._entries.get(key, Cost()) + cost
        self._trips += 1
        if self._listen is not None:
            seconds = time.perf_counter() - start
            asked = tuple(requests)
            self._listen(Exchange(self._trips, asked, self.costs, seconds, self._expected))
        return answered


def _check_together(
    sites: Sequence[str], requests: Sequence[Request[Any]], answered: Sequence[Sequence[Reply]]
) -> tuple[tuple[Reply, ...], ...]:
    pairs = zip(requests, answered, strict=True)
    return tuple(check_replies(recipients(sites, request), replies) for request, replies in pairs)


class _Reader(Forwarding, Ledger):
    """A ledger above another one, whose counts it shows."""

    def __init__(self, federation: Federation, below: Ledger) -> None:
        super().__init__(federation)
        self._below = below
        self._seconds = below._seconds

    @property
    def costs(self) -> Costs:
        return self._below.costs

    @property
    def trips_left(self) -> float:
        return self._below.trips_left

    @contextmanager
    def limit_trips(self, count: int | None) -> Iterator[None]:
        with self._below.limit_trips(count):
            yield

    def expect(self, trips: int) -> None:
        self._below.expect(trips)


def metered(federation: Federation) -> Ledger:
    """Return a federation's ledger, or that below it, or a new one: none counts anything twice."""
    below = federation
    while not isinstance(below, Ledger):
        if not isinstance(below, Around):
            return Ledger(federation)
        below = below.inner
    return below if below is federation else _Reader(federation, below)


class Journal(Around):
    """A federation that stores the replies of another one, one file per round trip in a folder.

    Every entry holds the hashes of its questions, the hash of the entry before, the replies, and a
    hash of all of it; it is written atomically. An altered entry is an error. Unless `durable`,
    entries may be lost in a power failure, but they cost much less time.
    """

    def __init__(self, federation: Federation, folder: Path, durable: bool = True) -> None:
        super().__init__(federation)
        self._folder = folder
        self._durable = durable
        self._asked = 0
        self._last = ""
        try:
            make_private(folder)
        except OSError as error:
            raise FedLassoError(f"cannot write to {folder}: {error.strerror}") from error

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Answer from the journal if the question is in it, else from the sites."""
        (replies,) = self.replies_together([request])
        return cast(tuple[R, ...], replies)

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        """Answer from the journal if the round trip is in it, else from the sites."""
        requests = [seal(request) for request in requests]
        questions = tuple(hashlib.sha256(encode(request)).hexdigest() for request in requests)
        path = self._folder / f"{self._asked:06d}.entry"
        if path.exists():
            head, kept, digest = _read_entry(path)
            if head.questions != questions or head.before != self._last:
                raise Stopped(
                    f"{self._folder} belongs to another fit; resume with the same settings and "
                    "data, or use another folder"
                )
            answered = tuple(tuple(cast(Reply, decode(data)) for data in part) for part in kept)
        else:
            answered = self.inner.replies_together(requests)
            kept = [[encode(reply) for reply in replies] for replies in answered]
            sizes = tuple(tuple(map(len, part)) for part in kept)
            written = msgspec.json.encode(_Head(questions, self._last, sizes))
            body = b"".join((_LENGTH.pack(len(written)), written, *chain.from_iterable(kept)))
            digest = hashlib.sha256(body).hexdigest()
            data = body + bytes.fromhex(digest)
            write_atomically(path, data, private=True, durable=self._durable)
        self._last = digest
        self._asked += 1
        return _check_together(self.sites, requests, answered)


class _Head(msgspec.Struct, frozen=True):
    """The hashes of questions and of the entry before, and the lengths of each one's replies."""

    questions: tuple[str, ...]
    before: str
    sizes: tuple[tuple[int, ...], ...]


def _read_entry(path: Path) -> tuple[_Head, Sequence[Sequence[bytes]], str]:
    data = path.read_bytes()
    body = data[:-32]
    digest = data[-32:]
    damaged = Stopped(f"{path} is damaged; remove it and all later entries, then resume")
    if hashlib.sha256(body).digest() != digest:
        raise damaged
    try:
        (length,) = _LENGTH.unpack_from(body)
        at = _LENGTH.size + length
        head = msgspec.json.decode(body[_LENGTH.size : at], type=_Head)
    except (ValueError, struct.error):
        raise damaged from None
    ends = accumulate(chain.from_iterable(head.sizes), initial=at)
    replies = iter([body[start:end] for start, end in pairwise(ends)])
    return head, [list(islice(replies, len(part))) for part in head.sizes], digest.hex()


class JournalEntry(NamedTuple):
    """A question in a file of a journal, by its hash, and the replies to it."""

    path: Path
    question: str
    replies: Sequence[bytes]


def read_journal(folder: Path) -> Iterator[JournalEntry]:
    for path in sorted(folder.glob("*.entry")):
        head, answered, _ = _read_entry(path)
        for question, replies in zip(head.questions, answered, strict=True):
            yield JournalEntry(path, question, replies)
