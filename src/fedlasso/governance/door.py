"""The door of a site on a network: it introduces itself, opens for a fit, and answers or refuses.

Everything that comes in is bytes and everything that goes out is an encoded message: a refusal is
one too, in the site's own words, so that no exception and no traceback ever crosses the wire. The
site behind the door is guarded: its policy and its audit stand between the records and the wire.
"""

import hashlib
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply, Request, encode
from fedlasso.federation.messages import PROTOCOL
from fedlasso.governance import door_messages
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.consent import Approve, ask_leave
from fedlasso.governance.datafile import DataFile, check_cells, check_columns
from fedlasso.governance.door_messages import (
    AboutColumns,
    DescribeColumns,
    FindOthers,
    Introduce,
    Open,
)
from fedlasso.governance.entries import describe_fit, describe_question
from fedlasso.governance.guard import GuardedSite, read_question
from fedlasso.governance.identity import Identity
from fedlasso.governance.lifetime import Lifetime, short_hash
from fedlasso.governance.masks import KeyOffered, Masks, Offer, OfferKey, Ring
from fedlasso.governance.policy import Policy, Rare
from fedlasso.governance.refusals import check_open, consult, refuse, say_refusal
from fedlasso.sites import Memory


@dataclass(eq=False)
class Door:
    """A site that answers every message with a message, and never raises.

    `memory` is the folder for what procedures keep at the site between rounds, `version` that of
    the software here, which speaks a `protocol`, and `approve` is asked before a reply leaves, if
    the policy wants it. With an `identity` sums are masked as the policy says; a door without one,
    in a process of its own coordinator's, has nobody to mask them from.
    """

    name: str
    records: DataFile
    policy: Policy
    audit: Audit
    memory: Path
    version: str
    approve: Approve = None
    identity: Identity | None = None
    protocol: str = PROTOCOL
    _site: GuardedSite | None = field(default=None, init=False)
    _ring: Ring | None = field(default=None, init=False)
    _ledger: tuple[str, Lifetime] | None = field(default=None, init=False)

    @property
    def lifetime(self) -> Lifetime:
        """What the data file has given away over all fits."""
        fingerprint = self.records.fingerprint
        if self._ledger is None or self._ledger[0] != fingerprint:
            self._ledger = (fingerprint, Lifetime.of(self.audit, fingerprint))
        return self._ledger[1]

    def answer_bytes(self, data: bytes) -> bytes:
        """Return the reply, or a `Refusal`."""
        try:
            return self._answer(data)
        except Exception as error:
            refused = say_refusal(error, Policy())
            return encode(door_messages.Refusal(str(refused), refused.code, site=self.name))

    def _answer(self, data: bytes) -> bytes:
        entry = Entry("", "unreadable", "refused", data=self.records.fingerprint)
        request: Request[Any] | None = None
        try:
            self.records.check_unchanged()
            request = read_question(data, self.policy.max_bytes)
            entry = replace(entry, question=type(request).__name__, about=describe_fit(request))
            own = self._answer_here(request)
            if own is not None:
                # Names and counts leave here too; they belong to no fit.
                answer = encode(own)
                hashed = hashlib.sha256(answer).hexdigest()
                self.audit.write(replace(entry, verdict="sent", size=len(answer), sha256=hashed))
                return answer
            if self._site is None:
                raise FedLassoError("no fit is open here")
            site = self._site
        except Exception as error:
            key = _opening_scope(request, Rare()) if isinstance(request, AboutColumns) else ""
            raise refuse(
                error, entry, self.policy, self.audit, key, lambda: self.lifetime
            ) from None
        # What is asked of the site, its guard writes down.
        return site.answer_bytes(data, request)

    def _answer_here(self, request: Request[Any]) -> Reply | None:
        """Return the reply to what is asked of the door itself, else nothing."""
        if isinstance(request, Introduce):
            here = self.records
            shown = tuple(filter(self.policy.shows, here.columns))
            told = (self.version, shown, here.fingerprint, here.rows, time.time())
            return door_messages.Introduction(*told, self._sums, self.protocol, site=self.name)
        if isinstance(request, OfferKey):
            return self._offer(request)
        if isinstance(request, DescribeColumns | FindOthers):
            return self._describe(request)
        if isinstance(request, Open):
            return self._open(request)
        if isinstance(request, door_messages.SummariseAudit):
            return self._summarise(request)
        return None

    def _summarise(self, asked: door_messages.SummariseAudit) -> door_messages.AuditSummary:
        head = self.audit.head
        entries = list(self.audit.entries())
        sent = [e for e in entries if e.fit == asked.fit and e.verdict == "sent"]
        hashes = tuple(e.sha256 for e in sent)
        questions = tuple(e.asked for e in sent)
        here = {f"{self.name}:{e.number - 1}:{e.before}" for e in entries}
        here.add(f"{self.name}:{len(entries)}:{head}")
        mine = [known for known in asked.heads if known.rsplit(":", 2)[0] == self.name]
        lost = tuple(known for known in mine if known not in here)
        return door_messages.AuditSummary(
            hashes, questions, len(entries), head, lost, site=self.name
        )

    @property
    def _sums(self) -> str:
        return "clear" if self.identity is None else self.policy.sums

    def _offer(self, asked: OfferKey) -> KeyOffered:
        """Draw a key for the masks of a session; the one before is forgotten."""
        _check_identity(asked.fit)
        if self.identity is None:
            raise FedLassoError("there is no certificate here to sign a key with")
        self._ring = Ring(self.name, self.identity, asked.fit, asked.session)
        return KeyOffered(self._ring.offer().write(), site=self.name)

    def _agree_on_masks(self, opening: Open) -> Masks | None:
        """Return the masks of a session, once the other sites' keys are found to be theirs."""
        if not opening.offers:
            if self._sums == "masked":
                raise FedLassoError("the policy here joins fits with masked sums only")
            return None
        offers = [Offer.read(text) for text in opening.offers]
        ring = self._ring
        self._ring = None
        if ring is None or (ring.fit, ring.session) != (opening.fit, opening.session):
            raise FedLassoError("no key was drawn here for this session; begin a new one")
        names = {offer.name for offer in offers}
        check_named(names, opening.sites)
        strangers = sorted(names - {self.name, *self.policy.peers}) if self.policy.peers else []
        if strangers:
            raise FedLassoError(
                f"the policy here takes part with {', '.join(self.policy.peers)} only, and not "
                f"with {', '.join(strangers)}"
            )
        return ring.close(offers, encode(opening))

    def _describe(self, asked: DescribeColumns | FindOthers) -> Reply:
        """Tell of columns, once the policy and whoever approves agree."""
        check_open(self.lifetime, self.policy)
        _check_identity(asked.fit)
        check_columns(self.records, self.policy, asked)
        rare = self.policy.rare
        reply: Reply
        if isinstance(asked, FindOthers):
            found = consult(lambda: self.records.find_others(self.name, asked, rare))
            reply = door_messages.Others(found, site=self.name)
        else:
            fewest = max(asked.min_level, self.policy.min_level_rows)
            reply = consult(lambda: self.records.describe(self.name, asked, fewest, rare))
        hashed = hashlib.sha256(encode(asked)).hexdigest()
        entry = Entry(asked.fit, "", "sent", asked=hashed, about=describe_fit(asked))
        entry = describe_question(entry, asked)
        what = f"what {len(asked.columns)} columns hold"
        ask_leave(self.policy, self.approve, entry, reply, what)
        return reply

    def _open(self, opening: Open) -> door_messages.Opened:
        check_open(self.lifetime, self.policy)
        if len(set(opening.sites)) < self.policy.min_sites:
            raise FedLassoError(
                f"a fit of {len(set(opening.sites))} sites, and the policy here joins "
                f"{self.policy.min_sites} or more"
            )
        _check_identity(opening.fit)
        check_columns(self.records, self.policy, opening)
        for began in opening.fingerprints:
            name, _, fingerprint = began.rpartition(":")
            if name == self.name and fingerprint != self.records.fingerprint:
                raise FedLassoError(
                    "the data file is not the one that this fit began with; restore it, or start "
                    "a new fit"
                )
        masks = self._agree_on_masks(opening)
        site = consult(lambda: self.records.site(self.name, opening, self.policy.rare))
        check_cells(site, opening, self.policy)
        fingerprint = self.records.fingerprint
        scope = _opening_scope(opening, self.policy.rare)
        # Views are kept here too, so a restarted site still knows them; other columns have others.
        room = short_hash(fingerprint, scope)[:16]
        site.memory = Memory(self.memory / opening.fit / room)
        self._site = GuardedSite(
            site,
            self.policy,
            self.audit,
            opening.fit,
            self.approve,
            data=fingerprint,
            scope=scope,
            about=describe_fit(opening),
            lifetime=self.lifetime,
            masks=masks,
            strict=self.identity is not None,
        )
        return door_messages.Opened(site=self.name)


def _opening_scope(asked: AboutColumns, rare: Rare) -> str:
    """Return a hash of all that answers about some columns depend on, but the data file."""
    parts = [type(asked).__name__, asked.target, repr(asked.columns), repr(asked.na), repr(rare)]
    parts += [getattr(asked, "schema", ""), getattr(asked, "missing", "")]
    if isinstance(asked, Open):
        parts.append(repr((asked.ties, asked.intercept, asked.effects)))
    return short_hash(*parts)


def _check_identity(fit: str) -> None:
    if not re.fullmatch(r"[0-9a-f]{8,64}", fit):
        raise FedLassoError("the fit has no proper identity")


def check_named(offered: Collection[str], sites: Sequence[str]) -> None:
    """Refuse a number of sites that these have not signed for themselves."""
    if set(offered) != set(sites):
        raise FedLassoError("the keys that were passed on are not those of the sites named")
