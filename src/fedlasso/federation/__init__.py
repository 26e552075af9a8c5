"""The seam between server and sites: messages, codec, ledger, totals. It knows no record."""

from fedlasso.federation.codec import decode, encode
from fedlasso.federation.federation import Around, Federation, InProcess
from fedlasso.federation.journal import Journal
from fedlasso.federation.ledger import Cost, Costs, Exchange, Ledger, Listen, metered
from fedlasso.federation.messages import (
    AnyPoints,
    Columns,
    Disclosure,
    Message,
    Model,
    Models,
    PerCandidate,
    Point,
    Points,
    Purpose,
    Reply,
    Request,
    Role,
    Signed,
    Split,
    Steps,
    Weights,
)

__all__ = [
    "AnyPoints",
    "Around",
    "Columns",
    "Cost",
    "Costs",
    "Disclosure",
    "Exchange",
    "Federation",
    "InProcess",
    "Journal",
    "Ledger",
    "Listen",
    "Message",
    "Model",
    "Models",
    "PerCandidate",
    "Point",
    "Points",
    "Purpose",
    "Reply",
    "Request",
    "Role",
    "Signed",
    "Split",
    "Steps",
    "Weights",
    "decode",
    "encode",
    "metered",
]
