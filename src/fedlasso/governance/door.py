"""The door of a site on a network: it introduces itself, opens for a fit, and answers or refuses.

Everything that comes in is bytes and everything that goes out is an encoded message: a refusal is
one too, in the site's own words, so that no exception and no traceback ever crosses the wire.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply, Request, encode
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.guard import Approve, GuardedSite, read_question, tell
from fedlasso.governance.policy import Policy
from fedlasso.sites import Memory, Site


class Introduction(Reply):
    """Version, columns that the policy shows, fingerprint of the data file, rows, and the clock.

    `clock` is the site's time in seconds since 1970, UTC.
    """

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
    """Answers every message with a message, and never raises.

    Attributes
    ----------
    name : the site
    records : its data
    policy, audit : its rules and its books
    memory : folder for what procedures keep at the site between rounds
    version : version of the software here
    approve : who is asked before a reply leaves, if the policy wants it
    """

    name: str
    records: DataFile
    policy: Policy
    audit: Audit
    memory: Path
    version: str
    approve: Approve | None = None

    def __post_init__(self) -> None:
        self._site: GuardedSite | None = None

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
                return self._log(question, own)
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
            return self._introduce()
        if isinstance(request, Open):
            return self._open(request)
        if isinstance(request, SummariseAudit):
            sent = [e for e in self.audit.entries(request.fit) if e.verdict == "sent"]
            return AuditSummary(tuple(e.sha256 for e in sent), self.audit.head, site=self.name)
        return None

    def _log(self, question: str, reply: Reply) -> bytes:
        # Names and counts leave here too; they belong to no fit.
        answer = encode(reply)
        hashed = hashlib.sha256(answer).hexdigest()
        self.audit.write(Entry("", question, "sent", size=len(answer), sha256=hashed))
        return answer

    def _introduce(self) -> Introduction:
        records = self.records
        shown = tuple(filter(self.policy.shows, records.columns))
        return Introduction(
            self.version, shown, records.fingerprint, records.rows, time.time(), site=self.name
        )

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
