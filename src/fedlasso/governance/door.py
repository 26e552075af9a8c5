"""The door of a site on a network: it introduces itself, opens for a fit, and answers or refuses.

Everything that comes in is bytes and everything that goes out is an encoded message: a refusal is
one too, in the site's own words, so that no exception and no traceback ever crosses the wire. The
site behind the door is guarded: its policy and its audit stand between the records and the wire.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply, Request, encode
from fedlasso.federation.codec import decode_question, size
from fedlasso.federation.messages import layout
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.policy import Policy, values_of
from fedlasso.sites import Memory, Site, folds_in

Approve = Callable[[Entry, Reply], bool]
# Characters of a refusal: it may quote the question.
LONGEST = 1000


class Introduction(Reply):
    """Version, columns shown, the data file's fingerprint and rows, and seconds since 1970, UTC."""

    version: str
    columns: tuple[str, ...]
    fingerprint: str
    rows: int
    clock: float


class Introduce(Request[Introduction]):
    """Who are you, and which columns do you have?"""


class Opened(Reply):
    """The site has joined the fit."""


class Open(Request[Opened]):
    """Join a fit: predictors in this order, this response.

    `fingerprints` lists ``site:fingerprint`` of the data that the fit began with.
    """

    fit: str
    target: str
    columns: tuple[str, ...]
    sites: tuple[str, ...]
    fingerprints: tuple[str, ...]


class AuditSummary(Reply):
    """Hashes of the replies that left for a fit, in order, and the head of the audit's chain."""

    hashes: tuple[str, ...]
    head: str


class SummariseAudit(Request[AuditSummary]):
    """What has left for this fit, by your own books?"""

    fit: str


class Refusal(Reply):
    """Why the site does not answer, in its own words."""

    text: str


def tell(error: Exception, what: str = "the site") -> str:
    """Return what may leave of an error: our own words, and of any other only its type."""
    ours = isinstance(error, FedLassoError)
    return (str(error) if ours else f"{what} failed with {type(error).__name__}")[:LONGEST]


def read_question(data: bytes, max_bytes: int) -> Request[Any]:
    """Return the question in some bytes; too many bytes are not even read."""
    if len(data) > max_bytes:
        raise FedLassoError(f"the question is longer than {max_bytes} bytes")
    return decode_question(data)


@dataclass(eq=False)
class GuardedSite:
    """A site that answers a fit as `Site` does, or refuses, and writes down which before it does.

    `approve` is asked before a reply leaves, if the policy wants it.
    """

    site: Site
    policy: Policy
    audit: Audit
    fit: str
    approve: Approve | None = None

    def __post_init__(self) -> None:
        self.name = self.site.name
        self.columns = self.site.columns
        self.loss = self.site.loss
        # Numbers already sent for this fit, by question: asking again gives nothing new.
        sent = [e for e in self.audit.entries(self.fit) if e.verdict == "sent"]
        self._sent = {e.asked: _per_row(e) for e in sent}
        self._splits = {e.split for e in sent if e.split}
        # The last question, asked again, has the same answer.
        self._last: tuple[str, Reply] | None = None

    def answer_bytes(self, data: bytes, request: Request[Any] | None = None) -> bytes:
        """Return the reply in bytes; a refusal or a failure is an error that carries no data.

        `request` is what the bytes say, where they have been read already.
        """
        asked = hashlib.sha256(data).hexdigest()
        question = "unreadable"
        try:
            request = request or read_question(data, self.policy.max_bytes)
            question = type(request).__name__
            self.policy.check(request, self.site)
            (split,) = values_of(request, "split") or [""]
            self._check_budget(asked, split, 1)
            if self._last is None or self._last[0] != asked:
                self._last = (asked, self.site.answer(request))
            reply = self._last[1]
            answer = encode(reply)
            entry = self._entry(question, asked, split, reply, answer)
            self._check_budget(asked, split, _per_row(entry))
            if self.policy.dry_run:
                raise FedLassoError(f"dry run: {entry.numbers} numbers would have left")
            if self.policy.approval and (self.approve is None or not self.approve(entry, reply)):
                raise FedLassoError("the transfer was not approved here")
        except Exception as error:
            why = tell(error, question)
            self.audit.write(Entry(self.fit, question, "refused", why, asked=asked))
            raise FedLassoError(why) from None
        self.audit.write(entry, answer if self.policy.keep_payloads else None)
        self._sent[asked] = _per_row(entry)
        self._splits |= {split} - {""}
        return answer

    def _entry(self, question: str, asked: str, split: str, reply: Reply, answer: bytes) -> Entry:
        names = [name for name, kind in layout(type(reply)) if "array" in kind]
        arrays = {name: array for name in names if (array := getattr(reply, name)) is not None}
        payload, _ = size(reply)
        return Entry(
            self.fit,
            question,
            "sent",
            shapes={name: list(array.shape) for name, array in arrays.items()},
            numbers=payload // 8,
            payload=payload,
            size=len(answer),
            sha256=hashlib.sha256(answer).hexdigest(),
            asked=asked,
            split=split,
        )

    def _check_budget(self, asked: str, split: str, numbers: int) -> None:
        allowed = self.policy.max_vectors * len(self.columns)
        if asked not in self._sent and sum(self._sent.values()) + numbers > allowed:
            raise FedLassoError(
                f"this fit has had {self.policy.max_vectors} vectors from here, and the policy "
                "allows no more; enough of them would determine all second moments"
            )
        if split and len(self._splits | {split}) > self.policy.max_splits:
            raise FedLassoError(
                f"this fit has asked about {self.policy.max_splits} splits of the rows, and the "
                "policy allows no more; sums over enough of them would tell single rows"
            )


def _per_row(entry: Entry) -> int:
    """Numbers that one row takes part in: sums over folds are about other rows each."""
    return -(-entry.numbers // folds_in(entry.split))


class DataFile(Protocol):
    """A site's data file: names of all columns, number of rows, a keyed hash as it was read."""

    columns: tuple[str, ...]
    rows: int
    fingerprint: str

    def check_unchanged(self) -> None:
        """Refuse if the file is not what was read."""

    def site(self, name: str, columns: tuple[str, ...], target: str) -> Site:
        """All records of some columns as a site."""


@dataclass(eq=False)
class Door:
    """A site that answers every message with a message, and never raises.

    `memory` is the folder for what procedures keep at the site between rounds, `version` that of
    the software here, and `approve` is asked before a reply leaves, if the policy wants it.
    """

    name: str
    records: DataFile
    policy: Policy
    audit: Audit
    memory: Path
    version: str
    approve: Approve | None = None
    _site: GuardedSite | None = field(default=None, init=False)

    def answer_bytes(self, data: bytes) -> bytes:
        """Return the reply, or a `Refusal`."""
        try:
            return self._answer(data)
        except Exception as error:
            return encode(Refusal(tell(error), site=self.name))

    def _answer(self, data: bytes) -> bytes:
        question = "unreadable"
        try:
            self.records.check_unchanged()
            request = read_question(data, self.policy.max_bytes)
            question = type(request).__name__
            own = self._answer_here(request)
            if own is not None:
                # Names and counts leave here too; they belong to no fit.
                answer = encode(own)
                hashed = hashlib.sha256(answer).hexdigest()
                self.audit.write(Entry("", question, "sent", size=len(answer), sha256=hashed))
                return answer
            if self._site is None:
                raise FedLassoError("no fit is open here")
            site = self._site
        except Exception as error:
            self.audit.write(Entry("", question, "refused", tell(error)))
            raise
        # What is asked of the site, its guard writes down.
        return site.answer_bytes(data, request)

    def _answer_here(self, request: Request[Any]) -> Reply | None:
        """Return the reply to what is asked of the door itself, else nothing."""
        if isinstance(request, Introduce):
            here = self.records
            shown = tuple(filter(self.policy.shows, here.columns))
            return Introduction(
                self.version, shown, here.fingerprint, here.rows, time.time(), site=self.name
            )
        if isinstance(request, Open):
            return self._open(request)
        if isinstance(request, SummariseAudit):
            sent = [e for e in self.audit.entries(request.fit) if e.verdict == "sent"]
            return AuditSummary(tuple(e.sha256 for e in sent), self.audit.head, site=self.name)
        return None

    def _open(self, opening: Open) -> Opened:
        if len(set(opening.sites)) < self.policy.min_sites:
            raise FedLassoError(
                f"a fit of {len(set(opening.sites))} sites, and the policy here joins "
                f"{self.policy.min_sites} or more"
            )
        if not re.fullmatch(r"[0-9a-f]{8,64}", opening.fit):
            raise FedLassoError("the fit has no proper identity")
        wanted = (opening.target, *opening.columns)
        here = set(self.records.columns)
        for column in wanted:
            if column not in here or not self.policy.shows(column):
                raise FedLassoError(f"there is no column {column!r} here")
        if len(set(wanted)) < len(wanted):
            raise FedLassoError("a column is named twice; name each once")
        for began in opening.fingerprints:
            name, _, fingerprint = began.rpartition(":")
            if name == self.name and fingerprint != self.records.fingerprint:
                raise FedLassoError(
                    "the data file is not the one that this fit began with; restore it, or start "
                    "a new fit"
                )
        site = self.records.site(self.name, opening.columns, opening.target)
        # Views are kept here too, so a restarted site still knows them.
        site.memory = Memory(self.memory / opening.fit)
        self._site = GuardedSite(site, self.policy, self.audit, opening.fit, self.approve)
        return Opened(site=self.name)
