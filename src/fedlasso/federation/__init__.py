"""The seam between server and sites: messages, codec, ledger, totals. It knows no record."""

from fedlasso.federation.codec import decode, encode
from fedlasso.federation.federation import Federation, InProcess
from fedlasso.federation.journal import Journal
from fedlasso.federation.ledger import Cost, Costs, Ledger, metered
from fedlasso.federation.messages import Message, Reply, Request

__all__ = [
    "Cost",
    "Costs",
    "Federation",
    "InProcess",
    "Journal",
    "Ledger",
    "Message",
    "Reply",
    "Request",
    "decode",
    "encode",
    "metered",
]
