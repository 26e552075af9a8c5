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
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from fedlasso.atomic_files import make_private, write_atomically
from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation.codec import decode, encode, seal, size
from fedlasso.federation.federation import Around, Federation, Forwarding, check_replies, recipients
from fedlasso.federation.messages import R, Request

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
    """Costs by (kind, site), and seconds by kind; they can be added and subtracted."""

    entries: Mapping[tuple[str, str], Cost] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

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

    def most_steps(self, kind: str | None = None) -> int:
        """Return the local steps of the site that took most."""
        return max((self.total(kind, site).steps for site in self.sites), default=0)

    def __add__(self, other: Costs) -> Costs:
        keys = {**self.entries, **other.entries}
        kinds = {**self.seconds, **other.seconds}
        entries = {k: self.entries.get(k, Cost()) + other.entries.get(k, Cost()) for k in keys}
        seconds = {k: self.seconds.get(k, 0.0) + other.seconds.get(k, 0.0) for k in kinds}
        return Costs(entries, seconds)

    def __sub__(self, earlier: Costs) -> Costs:
        entries = {k: c - earlier.entries.get(k, Cost()) for k, c in self.entries.items()}
        seconds = {k: s - earlier.seconds.get(k, 0.0) for k, s in self.seconds.items()}
        exchanged = {k: c for k, c in entries.items() if c.messages}
        return Costs(exchanged, {k: s for k, s in seconds.items() if s > 0.0})


@dataclass(frozen=True)
class Exchange:
    """An answered question, with number and costs of all so far, and the seconds of this one."""

    number: int
    request: Request[Any]
    costs: Costs
    seconds: float


Listen = Callable[[Exchange], None]
# Receives one line for the user: a plan, the end of a stage, a warning.
Notify = Callable[[str], None]


class Ledger(Around):
    """A federation that meters another one.

    Parameters
    ----------
    federation : the sites
    listen : called with every answered question

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
        self._listen = listen
        self._number = 0

    @property
    def costs(self) -> Costs:
        return Costs(dict(self._entries), dict(self._seconds))

    @contextmanager
    def clock(self, kind: str) -> Iterator[None]:
        """Add the time spent inside to the seconds of one kind."""
        start = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - start
            self._seconds[kind] = self._seconds.get(kind, 0.0) + elapsed

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Ask the federation, and count what passed."""
        start = time.perf_counter()
        with self.clock(request.kind):
            replies = check_replies(recipients(self.sites, request), self.inner.replies(request))
        download, head = size(request)
        for reply in replies:
            upload, framing = size(reply)
            cost = Cost(upload, download, head + framing, 1, reply.steps, reply.operations)
            key = (request.kind, reply.site)
            self._entries[key] = self._entries.get(key, Cost()) + cost
        if self._listen is not None:
            self._number += 1
            seconds = time.perf_counter() - start
            self._listen(Exchange(self._number, request, self.costs, seconds))
        return replies


class _Reader(Forwarding, Ledger):
    """A ledger above another one, whose counts it shows."""

    def __init__(self, federation: Federation, below: Ledger) -> None:
        super().__init__(federation)
        self._entries = below._entries
        self._seconds = below._seconds


def metered(federation: Federation) -> Ledger:
    """Return a federation's ledger, or that below it, or a new one: none counts anything twice."""
    below = federation
    while not isinstance(below, Ledger):
        if not isinstance(below, Around):
            return Ledger(federation)
        below = below.inner
    return below if below is federation else _Reader(federation, below)


class Journal(Around):
    """A federation that stores the replies of another one, one file per question in a folder.

    Every entry holds the hash of the question, the hash of the entry before, the replies, and a
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
        request = seal(request)
        question = hashlib.sha256(encode(request)).hexdigest()
        path = self._folder / f"{self._asked:06d}.entry"
        if path.exists():
            head, kept, digest = _read_entry(path)
            if head.question != question or head.before != self._last:
                raise Stopped(
                    f"{self._folder} belongs to another fit; resume with the same settings and "
                    "data, or use another folder"
                )
            replies = tuple(cast(R, decode(data)) for data in kept)
        else:
            replies = self.inner.replies(request)
            kept = [encode(reply) for reply in replies]
            written = msgspec.json.encode(_Head(question, self._last, tuple(map(len, kept))))
            body = b"".join((_LENGTH.pack(len(written)), written, *kept))
            digest = hashlib.sha256(body).hexdigest()
            data = body + bytes.fromhex(digest)
            write_atomically(path, data, private=True, durable=self._durable)
        self._last = digest
        self._asked += 1
        return check_replies(recipients(self.sites, request), replies)


class _Head(msgspec.Struct, frozen=True):
    """The hashes of a question and of the entry before, and the lengths of the replies."""

    question: str
    before: str
    sizes: tuple[int, ...]


def _read_entry(path: Path) -> tuple[_Head, Sequence[bytes], str]:

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
    replies = []
    for count in head.sizes:
        replies.append(body[at : at + count])
        at += count
    return head, replies, digest.hex()


class JournalEntry(NamedTuple):
    """One file of a journal: the hash of a question, and the replies to it."""

    path: Path
    question: str
    replies: Sequence[bytes]


def read_journal(folder: Path) -> Iterator[JournalEntry]:
    for path in sorted(folder.glob("*.entry")):
        head, replies, _ = _read_entry(path)
        yield JournalEntry(path, head.question, replies)
