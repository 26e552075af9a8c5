"""The books of a fit over a network: the journal, the receipts and the sites' audits agree."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fedlasso.deploy.network import Network
from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import Message, Reply, decode
from fedlasso.federation.ledger import read_journal
from fedlasso.governance.door_messages import AuditSummary, SummariseAudit

JOURNAL = "journal"
RECEIPTS = "receipts.txt"
# How many lines each site's audit had, and the hash of the last.
Heads = Mapping[str, tuple[int, str]]
# A reply in the journal: in which entry, and the hashes of the question and of the reply.
_Kept = tuple[Path, str, str]


@dataclass(frozen=True)
class Books:
    """What the books of a fit and of one site say about that site's replies.

    Attributes
    ----------
    used : replies that the fit used, by its journal
    arrived : replies that came over the line, also those of rounds that failed, but no refusals
    sent : replies that left for this fit, by the site's own audit
    lines, head : lines of that audit, and head of its chain
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


def compare_books(network: Network, fit: str, out: Path, heads: Heads) -> dict[str, Books]:
    """Compare journal, receipts and the sites' audits; whatever does not agree is an error.

    `heads` is what the sites' audits ended with when they were last asked.
    """
    used = _read_used(out / JOURNAL)
    arrived = _read_receipts(out / RECEIPTS)
    known = tuple(f"{site}:{lines}:{head}" for site, (lines, head) in heads.items())
    versions = {i.site: i.version for i in network.introductions}
    books = {}
    for summary in network.replies(SummariseAudit(fit, known)):
        site = summary.site
        lines, _ = heads.get(site, (0, ""))
        if summary.lost or summary.lines < lines:
            other = f"its audit is not the one that had {lines} lines when this fit last asked"
            remedy = "lines were removed or changed there: do not go on before this is explained"
            raise Stopped(f"site {site!r}: {other}; {remedy}")
        came, kept = arrived[site], used[site]
        _check_kept(kept, summary, set(came))
        if unknown := Counter(came) - Counter(summary.hashes):
            many = f"{unknown.total()} replies arrived that its audit does not know"
            remedy = "do not use this fit before this is explained"
            raise Stopped(f"site {site!r}: {many}; {remedy}")
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


def _check_kept(kept: Sequence[_Kept], summary: AuditSummary, came: Set[str]) -> None:
    """Refuse a reply that the site did not send to that question, or that has no receipt."""
    sent = set(zip(summary.asked, summary.hashes, strict=False))
    for path, question, digest in kept:
        known = (question, digest) in sent
        if not known or digest not in came:
            where = RECEIPTS if known else "the site's own audit"
            other = f"the reply of site {summary.site!r} is not the one in {where}"
            remedy = "it was changed here: remove this entry and all later ones, then resume"
            raise Stopped(f"{path}: {other}; {remedy}")


def _read_used(folder: Path) -> dict[str, list[_Kept]]:
    """Return every site's replies in a journal."""
    used: dict[str, list[_Kept]] = defaultdict(list)
    for path, question, replies in read_journal(folder):
        for data in replies:
            reply: Message | None = None
            with suppress(FedLassoError):
                reply = decode(data)
            if not isinstance(reply, Reply):
                remove = "remove it and all later entries, then resume"
                raise Stopped(f"{path} holds what is no reply; {remove}")
            digest = hashlib.sha256(data).hexdigest()
            used[reply.site].append((path, question, digest))
    return used


def _read_receipts(path: Path) -> dict[str, list[str]]:
    """Return the hashes of every site's replies as they arrived."""
    arrived: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines() if path.exists() else ():
        site, _, digest = line.rpartition(" ")
        arrived[site].append(digest)
    return arrived
