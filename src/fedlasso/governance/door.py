"""The network interface of a site: it introduces itself, joins a fit, and answers or refuses.

Input is bytes and output an encoded message. A refusal is a message too, so no exception and no
traceback ever crosses the wire. The site behind the door is guarded by its policy and its audit.
"""

import hashlib
import re
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedlasso.atomic_files import CannotWrite
from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply, Request, encode
from fedlasso.federation.codec import is_batch, pack
from fedlasso.federation.messages import PROTOCOL
from fedlasso.governance import door_messages
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.consent import Approve, describe_fit, describe_question, require_approval
from fedlasso.governance.counting import count_rows
from fedlasso.governance.cuts import keep_cut, recall_cut
from fedlasso.governance.door_messages import AboutColumns, DescribeColumns, FindOthers, Open
from fedlasso.governance.guard import GuardedSite, read_batch, read_question
from fedlasso.governance.identity import Identity
from fedlasso.governance.lifetime import Charge, Lifetime, short_hash
from fedlasso.governance.masks import KeyOffered, Masks, Offer, OfferKey, Ring
from fedlasso.governance.membership import Members, check_members
from fedlasso.governance.policy import Policy, Rare
from fedlasso.governance.record_checks import (
    DataFile,
    check_cells,
    check_columns,
)
from fedlasso.governance.refusals import check_open, public_refusal, read_records, refuse
from fedlasso.sites import Memory
from fedlasso.sites.cells import level_rows


@dataclass(eq=False)
class Door:
    """A site that answers every message with a message, and never raises.

    `memory` is the folder for state between rounds, `version` and `protocol` are those of the
    software here, and `approve` is called before a reply leaves if the policy requires approval.
    With an `identity` sums are masked as the policy requires; a door in its coordinator's own
    process has none and does not mask.
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
    # Why the last refusals were none of the site's: its disk is full or cannot be written to.
    unwritten: CannotWrite | None = field(default=None, init=False)
    _site: GuardedSite | None = field(default=None, init=False)
    _ring: Ring | None = field(default=None, init=False)
    _ledger: tuple[str, Lifetime] | None = field(default=None, init=False)
    # The sites of the opening in hand, with the fingerprints of their keys.
    _members: dict[str, str] = field(default_factory=dict, init=False)

    @property
    def lifetime(self) -> Lifetime:
        """The ledger of what the data file has disclosed over all fits."""
        fingerprint = self.records.fingerprint
        if self._ledger is None or self._ledger[0] != fingerprint:
            self._ledger = (fingerprint, Lifetime.of(self.audit, fingerprint))
        return self._ledger[1]

    @property
    def pending(self) -> Sequence[Charge]:
        """What the replies in hand would be charged, where approval is asked."""
        return self._site.pending if self._site else ()

    @property
    def secret(self) -> bytes:
        """The key drawn for a session that is not open yet, for `resume`; empty without one."""
        return self._ring.secret if self._ring else b""

    def resume(self, offer: OfferKey, secret: bytes, opening: Open | None, last: int) -> None:
        """Go on with a session after a restart, as after the question with the number `last`.

        `secret` is the key that was drawn for `offer`; `opening` is what opened the fit, if it is
        open. Both must be as they were.
        """
        if self.identity is not None:
            self._ring = Ring(
                self.name, self.identity, offer.fit, offer.session, secret, self.records.rows
            )
        if opening is None:
            return
        self._open(opening)
        if self._site is not None and self._site.masks is not None:
            self._site.masks.go_on(last)

    def answer_bytes(self, data: bytes) -> bytes:
        """Return the reply, or a `Refusal`."""
        try:
            return self._answer(data)
        except Exception as error:
            return self._refusal(error)

    def _refusal(self, error: Exception) -> bytes:
        self.unwritten = self.unwritten or _disk_error(error)
        refused = public_refusal(error, Policy())
        return encode(door_messages.Refusal(str(refused), refused.code, site=self.name))

    def _answer_each(self, asked: Sequence[bytes], site: GuardedSite) -> Iterator[bytes]:
        """Yield the replies to a batch of questions up to the first refusal, which ends it."""
        try:
            yield from site.answer_each(asked)
        except Exception as error:
            yield self._refusal(error)

    def _answer(self, data: bytes) -> bytes:
        entry = Entry("", "unreadable", "refused", data=self.records.fingerprint)
        request: Request[Any] | None = None
        asked: Sequence[bytes] = ()
        self._members = {}
        try:
            self.records.check_unchanged()
            own = None
            if is_batch(data):
                asked = read_batch(data, self.policy.max_bytes)
                entry = replace(entry, question="batch")
            else:
                request = read_question(data, self.policy.max_bytes)
                entry = replace(entry, question=type(request).__name__, about=describe_fit(request))
                own = self._answer_here(request)
            if own is not None:
                # Names and counts, which belong to no fit, are audited too.
                answer = encode(own)
                hashed = hashlib.sha256(answer).hexdigest()
                entry = replace(entry, sites=self._members, verdict="sent")
                if isinstance(request, Open) and self._site is not None:
                    entry = describe_records(entry, request, self._site)
                self.audit.write(replace(entry, size=len(answer), sha256=hashed))
                return answer
            if self._site is None:
                raise FedLassoError("no fit is open here")
            site = self._site
        except Exception as error:
            key = _opening_scope(request, Rare()) if isinstance(request, AboutColumns) else ""
            entry = replace(entry, sites=self._members)
            fit = getattr(request, "fit", "")
            raise refuse(
                error, entry, self.policy, self.audit, key, lambda: self.lifetime, fit
            ) from None
        # The guard audits questions to the site.
        if asked:
            return pack(list(self._answer_each(asked, site)))
        return site.answer_bytes(data, request)

    def _answer_here(self, request: Request[Any]) -> Reply | None:
        """Return the reply to a question to the door itself, or None."""
        if isinstance(request, door_messages.Introduce):
            here = self.records
            shown = tuple(filter(self.policy.shows, here.columns))
            own = (self.version, shown, here.fingerprint, here.rows, time.time())
            return door_messages.Introduction(*own, self._sums, self.protocol, site=self.name)
        if isinstance(request, OfferKey):
            return self._offer(request)
        if isinstance(request, DescribeColumns | FindOthers):
            return self._describe(request)
        if isinstance(request, Open):
            return self._open(request)
        if isinstance(request, door_messages.SummariseAudit):
            return self._summarise(request)
        return None

    def _summarise(self, request: door_messages.SummariseAudit) -> door_messages.AuditSummary:
        head = self.audit.head
        entries = list(self.audit.entries())
        sent = [e for e in entries if e.fit == request.fit and e.verdict == "sent"]
        hashes = (tuple(e.sha256 for e in sent), tuple(e.asked for e in sent))
        here = {f"{self.name}:{e.number - 1}:{e.before}" for e in entries}
        here.add(f"{self.name}:{len(entries)}:{head}")
        mine = [known for known in request.heads if known.rsplit(":", 2)[0] == self.name]
        lost = tuple(known for known in mine if known not in here)
        return door_messages.AuditSummary(*hashes, len(entries), head, lost, site=self.name)

    @property
    def _sums(self) -> str:
        return "clear" if self.identity is None else self.policy.sums

    def _offer(self, request: OfferKey) -> KeyOffered:
        """Draw a key for the masks of a session, in place of the one before."""
        _check_identity(request.fit)
        if self.identity is None:
            raise FedLassoError("this site has no certificate to sign a key with")
        self._ring = Ring(
            self.name, self.identity, request.fit, request.session, rows=self.records.rows
        )
        return KeyOffered(self._ring.offer().write(), site=self.name)

    def _agree_on_masks(self, opening: Open) -> Masks | None:
        """Return the masks of a session, once the other sites' keys are verified."""
        if not opening.offers:
            if self._sums == "masked":
                raise FedLassoError("the policy here requires masked sums")
            return None
        offers = [Offer.read(text) for text in opening.offers]
        ring = self._ring
        self._ring = None
        if ring is None or (ring.fit, ring.session) != (opening.fit, opening.session):
            raise FedLassoError("no key was drawn here for this session; start a new one")
        names = {offer.name for offer in offers}
        check_named(names, opening.sites)
        strangers = sorted(names - {self.name, *self.policy.peers}) if self.policy.peers else []
        if strangers:
            allowed = f"the policy here allows fits with {', '.join(self.policy.peers)} only"
            raise FedLassoError(f"{allowed}, and not with {', '.join(strangers)}")
        return ring.close(offers, encode(opening))

    def _describe(self, request: DescribeColumns | FindOthers) -> Reply:
        """Describe columns, if the policy allows it and the operator approves."""
        check_open(self.lifetime, self.policy, request.fit)
        _check_identity(request.fit)
        check_columns(self.records, self.policy, request)
        rare = self.policy.rare
        reply: Reply
        if isinstance(request, FindOthers):
            others = read_records(lambda: self.records.find_others(self.name, request, rare))
            reply = door_messages.Others(others, site=self.name)
        else:
            fewest = max(level_rows(request.min_level), self.policy.min_level_rows)
            reply = read_records(lambda: self.records.describe(self.name, request, fewest, rare))
        hashed = hashlib.sha256(encode(request)).hexdigest()
        entry = Entry(request.fit, "", "sent", asked=hashed, about=describe_fit(request))
        entry = replace(entry, opening=hashed)
        entry = describe_question(entry, request)
        what = f"the types of {len(request.columns)} columns"
        require_approval(self.policy, self.approve, entry, reply, what)
        return reply

    def _open(self, opening: Open) -> door_messages.Opened:
        check_open(self.lifetime, self.policy, opening.fit)
        if len(set(opening.sites)) < self.policy.min_sites:
            required = f"the policy here requires at least {self.policy.min_sites}"
            raise FedLassoError(f"the fit has {len(set(opening.sites))} sites, but {required}")
        _check_identity(opening.fit)
        check_columns(self.records, self.policy, opening)
        for began in opening.fingerprints:
            name, _, fingerprint = began.rpartition(":")
            if name == self.name and fingerprint != self.records.fingerprint:
                remedy = "restore it, or start a new fit"
                raise FedLassoError(f"the data file has changed since this fit began; {remedy}")
        masks = self._agree_on_masks(opening)
        fingerprint = self.records.fingerprint
        self._members = masks.members if masks else dict.fromkeys(opening.sites, "")
        if masks:
            check_members(self.audit, fingerprint, masks.members, self.name)
        site = read_records(lambda: self.records.site(self.name, opening, self.policy.rare))
        if site.draw.secret:
            recall_cut(site, self.lifetime)
        check_cells(site, opening, self.policy)
        if site.draw.secret:
            keep_cut(site, self.lifetime)
        scope = _opening_scope(opening, self.policy.rare)
        # Views are kept here too, so that they outlive a restart; other columns have others.
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
            opening=_opening_hash(opening, self._members),
            strict=self.identity is not None,
        )
        return door_messages.Opened(site.atoms, site=self.name)


def describe_records(entry: Entry, opening: Open, site: GuardedSite) -> Entry:
    """Return an entry with the records and columns of a fit, and what numbers count against."""
    rows = site.site.table.n
    others = site.masks.other_rows if site.masks is not None else ()
    return replace(
        entry,
        rows=rows,
        columns=[*opening.columns, *opening.outcome],
        total_rows=round(count_rows(rows, others)),
        encoded=len(site.columns),
    )


def _opening_scope(request: AboutColumns, rare: Rare) -> str:
    """Return a hash of all that answers about some columns depend on, except the data file."""
    parts = [type(request).__name__, request.target]
    parts += map(repr, (request.columns, request.na, rare))
    parts += [getattr(request, "schema", ""), getattr(request, "missing", "")]
    if isinstance(request, Open):
        parts.append(repr((request.ties, request.intercept, request.effects)))
    return short_hash(*parts)


def _opening_hash(opening: Open, members: Members) -> str:
    """Return a hash of all that a fit is opened with, the same in every session."""
    lasting = replace(opening, session="", offers=(), sites=tuple(sorted(opening.sites)))
    return short_hash(encode(lasting), repr(sorted(members.items())))


def _check_identity(fit: str) -> None:
    if not re.fullmatch(r"[0-9a-f]{8,64}", fit):
        raise FedLassoError("the fit's identity is not valid")


def check_named(offered: Collection[str], sites: Sequence[str]) -> None:
    """Refuse sites that have not signed a key of their own."""
    if set(offered) != set(sites):
        raise FedLassoError("the keys received are not those of the sites named")


def _disk_error(error: BaseException | None) -> CannotWrite | None:
    """Return the failed write that an error follows from, if there is one."""
    while error is not None and not isinstance(error, CannotWrite):
        error = error.__context__
    return error
