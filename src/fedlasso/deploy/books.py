"""The books of a fit over a network: the journal, the receipts and the sites' audits agree."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fedlasso.deploy.network import Network
from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import Message, Reply, decode
from fedlasso.federation.ledger import read_journal
from fedlasso.governance.messages import AuditSummary, SummariseAudit

JOURNAL = "journal"
RECEIPTS = "receipts.txt"
# How many lines each site's audit had, and the hash of the last.
Heads = Mapping[str, tuple[int, str]]


@dataclass(frozen=True)
class Books:
    """What the books of a fit and of one site say about that site's replies.

    Attributes
    ----------
    used : replies that the fit used, by its journal
    arrived : replies that came over the line, also those of rounds that failed, but no refusals
    sent : replies that left for this fit, by the site's own audit
    lines : lines of that audit
    head : head of the chain of that audit
    clock_ahead : seconds that the site's clock is ahead
    version : the fedlasso that the site runs
    """

    used: int
    arrived: int
    sent: int
    lines: int
    head: str
    clock_ahead: int
    version: str


class _Reply(NamedTuple):
    """A reply in the journal: in which entry, and the hashes of the question and of the reply."""

    path: Path
    question: str
    digest: str


def compare_books(network: Network, fit: str, out: Path, heads: Heads) -> dict[str, Books]:
    """Compare journal, receipts and the sites' audits; whatever does not agree is an error.

    Parameters
    ----------
    network : the sites
    fit : identity of the fit
    out : folder of the fit
    heads : what the sites' audits ended with when they were last asked
    """
    used = _read_used(out / JOURNAL)
    arrived = _read_receipts(out / RECEIPTS)
    known = tuple(f"{site}:{lines}:{head}" for site, (lines, head) in heads.items())
    versions = {i.site: i.version for i in network.introductions}
    books = {}
    for summary in network.replies(SummariseAudit(fit, known)):
        site = summary.site
        _check_audit(summary, heads)
        came = arrived.get(site, [])
        kept = used.get(site, [])
        _check_kept(site, kept, summary, set(came))
        if unknown := Counter(came) - Counter(summary.hashes):
            raise Stopped(
                f"site {site!r}: {unknown.total()} replies arrived that its audit does not "
                "know; do not use this fit before this is explained"
            )
        books[site] = Books(
            used=len(kept),
            arrived=len(came),
            sent=len(summary.hashes),
            lines=summary.lines,
            head=summary.head,
            clock_ahead=round(network.ahead[site]),
            version=versions[site],
        )
    return books


def heads_of(books: Mapping[str, Books]) -> dict[str, tuple[int, str]]:
    """Return what the sites' audits ended with."""
    return {site: (entry.lines, entry.head) for site, entry in books.items()}


def _check_audit(summary: AuditSummary, heads: Heads) -> None:
    """Refuse an audit that has lost lines since it was last asked."""
    lines, _ = heads.get(summary.site, (0, ""))
    if summary.lost or summary.lines < lines:
        raise Stopped(
            f"site {summary.site!r}: its audit is not the one that had {lines} lines when this fit "
            "last asked; lines were removed or changed there: do not go on before this is explained"
        )


def _check_kept(site: str, kept: Sequence[_Reply], summary: AuditSummary, came: Set[str]) -> None:
    """Refuse a reply that the site did not send to that question, or that has no receipt."""
    sent = set(zip(summary.asked, summary.hashes, strict=False))
    for reply in kept:
        where = ""
        if (reply.question, reply.digest) not in sent:
            where = "the site's own audit"
        elif reply.digest not in came:
            where = RECEIPTS
        if where:
            raise Stopped(
                f"{reply.path}: the reply of site {site!r} is not the one in {where}; it was "
                "changed here: remove this entry and all later ones, then resume"
            )


def _read_used(folder: Path) -> dict[str, list[_Reply]]:
    """Return every site's replies in a journal."""
    used: dict[str, list[_Reply]] = {}
    for path, question, replies in read_journal(folder):
        for data in replies:
            reply: Message | None = None
            with suppress(FedLassoError):
                reply = decode(data)
            if not isinstance(reply, Reply):
                raise Stopped(
                    f"{path} holds what is no reply; remove it and all later entries, then resume"
                )
            digest = hashlib.sha256(data).hexdigest()
            used.setdefault(reply.site, []).append(_Reply(path, question, digest))
    return used


def _read_receipts(path: Path) -> dict[str, list[str]]:
    """Return the hashes of every site's replies as they arrived."""
    arrived: dict[str, list[str]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        site, _, digest = line.rpartition(" ")
        arrived.setdefault(site, []).append(digest)
    return arrived
