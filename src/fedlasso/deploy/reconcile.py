"""Compare the journal and receipts of a network fit with the sites' audits."""

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
# Number of lines of each site's audit, and the hash of the last.
Heads = Mapping[str, tuple[int, str]]
# A reply in the journal: its entry, and the hashes of question and reply.
_Kept = tuple[Path, str, str]


@dataclass(frozen=True)
class Reconciliation:
    """One site's replies in a fit's records and in the site's audit, as counts."""

    used: int  # in the journal
    arrived: int  # by the receipts, including those of failed rounds, without refusals
    sent: int  # for this fit, by the site's audit
    lines: int  # of that audit
    head: str  # hash of its last line
    clock_ahead: int  # seconds
    version: str  # of the site's fedlasso


def reconcile(network: Network, fit: str, out: Path, heads: Heads) -> dict[str, Reconciliation]:
    """Compare journal, receipts and audits, which must continue `heads`; refuse differences."""
    used = _read_used(out / JOURNAL)
    arrived = _read_receipts(out / RECEIPTS)
    known = tuple(f"{site}:{lines}:{head}" for site, (lines, head) in heads.items())
    versions = {i.site: i.version for i in network.introductions}
    reconciled = {}
    for summary in network.replies(SummariseAudit(fit, known)):
        site = summary.site
        lines, _ = heads.get(site, (0, ""))
        if summary.lost or summary.lines < lines:
            other = f"its audit does not continue the {lines} lines that this fit has seen"
            raise Stopped(f"site {site!r}: {other}; ask the site why lines were changed")
        came, kept = arrived[site], used[site]
        _check_kept(kept, summary, set(came))
        if unknown := Counter(came) - Counter(summary.hashes):
            many = f"{unknown.total()} replies arrived that are not in its audit"
            raise Stopped(f"site {site!r}: {many}; do not use this fit, and ask the site")
        reconciled[site] = Reconciliation(
            used=len(kept),
            arrived=len(came),
            sent=len(summary.hashes),
            lines=summary.lines,
            head=summary.head,
            clock_ahead=round(network.ahead[site]),
            version=versions[site],
        )
    return reconciled


def _check_kept(kept: Sequence[_Kept], summary: AuditSummary, came: Set[str]) -> None:
    """Refuse a journal's reply without a receipt, or not in the audit for its question."""
    sent = set(zip(summary.asked, summary.hashes, strict=False))
    for path, question, digest in kept:
        known = (question, digest) in sent
        if not known or digest not in came:
            where = RECEIPTS if known else "the site's own audit"
            other = f"the reply of site {summary.site!r} is not in {where}, so it was changed here"
            raise Stopped(f"{path}: {other}; remove this entry and all later ones, then resume")


def _read_used(folder: Path) -> dict[str, list[_Kept]]:
    used: dict[str, list[_Kept]] = defaultdict(list)
    for path, question, replies in read_journal(folder):
        for data in replies:
            reply: Message | None = None
            with suppress(FedLassoError):
                reply = decode(data)
            if not isinstance(reply, Reply):
                raise Stopped(f"{path} is damaged; remove it and all later entries, then resume")
            digest = hashlib.sha256(data).hexdigest()
            used[reply.site].append((path, question, digest))
    return used


def _read_receipts(path: Path) -> dict[str, list[str]]:
    """Return the hashes of each site's replies in order of arrival."""
    arrived: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines() if path.exists() else ():
        site, _, digest = line.rpartition(" ")
        arrived[site].append(digest)
    return arrived
