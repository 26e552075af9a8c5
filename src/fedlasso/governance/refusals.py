"""Why a site refuses, and how much of that is said to whoever asked."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from fedlasso.errors import FedLassoError, Refused, code_of
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.lifetime import Charge, Lifetime
from fedlasso.governance.policy import Policy

T = TypeVar("T")
# Where refusals are counted; to look it up may fail.
FindLedger = Callable[[], Lifetime]
# Characters of a refusal: it may quote the question.
LONGEST = 1000
# All that is said where the reason would tell of the records.
SILENCE = "the site does not answer this question; its audit says why"


class Withheld(Exception):
    """A reason for refusing that depends on the records: for the audit only."""


class CorrectableRefusal(Refused):
    """A refusal that names columns and counts, which whoever asks needs in order to correct it."""


def tell(error: Exception, what: str = "the site") -> str:
    """Return an error in our own words, and of any other only its type."""
    if isinstance(error, FedLassoError):
        text = error.unquoted
    elif isinstance(error, Withheld):
        text = str(error)
    else:
        text = f"{what} failed with {type(error).__name__}"
    return text[:LONGEST]


def say_refusal(error: Exception, policy: Policy) -> Refused:
    """Return the refusal as whoever asked may learn of it."""
    if isinstance(error, FedLassoError) and not policy.dry_run:
        return Refused(tell(error), code=code_of(error))
    return Refused(SILENCE)


def refuse(
    error: Exception, entry: Entry, policy: Policy, audit: Audit, key: str, ledger: FindLedger
) -> Refused:
    """Write a refusal down, count it where it depends on the records, and say what may be."""
    spent: dict[str, float] = {}
    # To be refused for such a reason tells something of the records by itself.
    depends = isinstance(error, CorrectableRefusal) or not isinstance(error, FedLassoError)
    if key and depends and not policy.dry_run:
        spent = ledger().charge([Charge("refusals", key, 1)], {})
    why = tell(error, entry.question)
    # What would have left is told by its size and hash; nothing did.
    audit.write(replace(entry, verdict="refused", why=why, spent=spent, sha256=""))
    return say_refusal(error, policy)


def check_open(lifetime: Lifetime, policy: Policy) -> None:
    """Refuse everything about a data file that was refused too often."""
    used = lifetime.used("refusals")
    if used and used >= policy.max_refusals:
        lifetime.check([Charge("refusals", "", 1)], {"refusals": policy.max_refusals})


def consult(ask: Callable[[], T]) -> T:
    """Return what the records say; what is wrong with them is told, and counted."""
    try:
        return ask()
    except FedLassoError as error:
        raise CorrectableRefusal(error.unquoted) from None
