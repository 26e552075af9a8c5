"""The books of both ends compared: what a fit used, what arrived, what the sites say they sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fedlasso.deploy.network import Network
from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply, decode
from fedlasso.federation.ledger import read_replies
from fedlasso.files import write_atomically
from fedlasso.governance.door import SummariseAudit

JOURNAL = "journal"
RECEIPTS = "receipts.txt"


@dataclass(frozen=True)
class Books:
    """What the books of a fit and of one site say about that site's replies.

    Attributes
    ----------
    used : replies that the fit used, by its journal
    arrived : replies that came over the line, also those of rounds that failed, but no refusals
    sent : replies that left for this fit, by the site's own audit
    head : head of the chain of that audit
    clock_ahead : seconds that the site's clock is ahead
    """

    used: int
    arrived: int
    sent: int
    head: str
    clock_ahead: int


def compare_books(network: Network, fit: str, out: Path) -> dict[str, Books]:
    """Compare the sites' audits with what arrived; a reply that no audit knows is an error."""
    used = Counter[str]()
    for replies in read_replies(out / JOURNAL):
        used.update(reply.site for reply in map(decode, replies) if isinstance(reply, Reply))
    arrived = {name: Counter[str]() for name in network.sites}
    for line in (out / RECEIPTS).read_text().splitlines():
        site, _, digest = line.partition(" ")
        arrived[site][digest] += 1
    books = {}
    for summary in network.replies(SummariseAudit(fit)):
        sent = Counter(summary.hashes)
        here = arrived[summary.site]
        if unknown := here - sent:
            raise FedLassoError(
                f"site {summary.site!r}: {unknown.total()} replies arrived that its audit does not "
                "know; do not use this fit before this is explained"
            )
        books[summary.site] = Books(
            used=used[summary.site],
            arrived=here.total(),
            sent=sent.total(),
            head=summary.head,
            clock_ahead=round(network.ahead[summary.site]),
        )
    return books


def write_books(out: Path, books: Mapping[str, Books]) -> None:
    """Keep the comparison beside the model."""
    values = {site: asdict(entry) for site, entry in books.items()}
    write_atomically(out / "audit.json", json.dumps(values, indent=1).encode())
