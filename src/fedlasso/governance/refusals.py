"""Why a site refuses, and how much of that is said to whoever asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fedlasso.errors import FedLassoError
from fedlasso.governance.lifetime import Charge, Lifetime
from fedlasso.governance.policy import Policy

T = TypeVar("T")
# Characters of a refusal: it may quote the question.
LONGEST = 1000
# All that is said where the reason would tell of the records.
SILENCE = "the site does not answer this question; its audit says why"


class Withheld(Exception):
    """A reason for refusing that depends on the records: for the audit only."""


class Mendable(FedLassoError):
    """A refusal that names columns and counts, which whoever asks needs in order to mend it."""


def tell(error: Exception, what: str = "the site") -> str:
    """Return an error in our own words, and of any other only its type."""
    ours = isinstance(error, FedLassoError | Withheld)
    return (str(error) if ours else f"{what} failed with {type(error).__name__}")[:LONGEST]


def depends_on_records(error: Exception) -> bool:
    """Whether a refusal for this reason tells something of the records by itself."""
    return isinstance(error, Mendable) or not isinstance(error, FedLassoError)


def say_refusal(error: Exception, policy: Policy) -> str:
    """Return what is said to whoever asked."""
    return tell(error) if isinstance(error, FedLassoError) and not policy.dry_run else SILENCE


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
        raise Mendable(str(error)) from None
