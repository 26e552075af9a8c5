"""The seam: sites, questions, and the ledger that meters them."""

# Every message of the room is known to whoever enters it, so that any process can read any.
from fedlasso.federation import door
from fedlasso.federation.codec import decode, encode
from fedlasso.federation.federation import Federation, InProcess
from fedlasso.federation.files import write_atomically
from fedlasso.federation.journal import Journal
from fedlasso.federation.ledger import Cost, Costs, Ledger, metered
from fedlasso.federation.memory import Memory
from fedlasso.federation.messages import Message, Reply, Request
from fedlasso.federation.questions import (
    ErrorSums,
    FitAt,
    FitSums,
    GradientAt,
    GradientSum,
    LargestEigenvalue,
    MeanEigenvalue,
    ResponseSquares,
    Rows,
    ValidationErrors,
)
from fedlasso.federation.site import Site
from fedlasso.federation.views import Scaling, Viewed, standardise

__all__ = [
    "Cost",
    "Costs",
    "ErrorSums",
    "Federation",
    "FitAt",
    "FitSums",
    "GradientAt",
    "GradientSum",
    "InProcess",
    "Journal",
    "LargestEigenvalue",
    "Ledger",
    "MeanEigenvalue",
    "Memory",
    "Message",
    "Reply",
    "Request",
    "ResponseSquares",
    "Rows",
    "Scaling",
    "Site",
    "ValidationErrors",
    "Viewed",
    "decode",
    "door",
    "encode",
    "metered",
    "standardise",
    "write_atomically",
]
