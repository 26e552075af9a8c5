"""Refusals: the full reason goes to the audit, and the coordinator learns what it may."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from fedlasso.errors import FedLassoError, Refused, code_of
from fedlasso.federation.checking import LONGEST_REFUSAL
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.lifetime import BudgetName, Charge, Lifetime
from fedlasso.governance.policy import Policy

T = TypeVar("T")
# Returns the ledger that counts refusals; this may fail.
FindLedger = Callable[[], Lifetime]
# The whole text where the reason would disclose something about the records.
SILENCE = "the site does not answer this question; its audit has the reason"


class Withheld(Exception):
    """A refusal whose reason depends on the records: for the audit only."""


class CorrectableRefusal(Refused):
    """A refusal that names columns, so that the coordinator can correct the fit.

    Counts and values are in `full` only, which stays in the audit.
    """

    def __init__(self, text: str, full: str = "") -> None:
        super().__init__(text)
        self.full = full or text


def error_text(error: Exception, what: str = "the site") -> str:
    """Return the text of our own errors without records, and of any other only its type."""
    if isinstance(error, FedLassoError):
        text = error.unquoted
    elif isinstance(error, Withheld):
        text = str(error)
    else:
        text = f"{what} failed with {type(error).__name__}"
    return text[:LONGEST_REFUSAL]


def public_refusal(error: Exception, policy: Policy) -> Refused:
    if isinstance(error, FedLassoError) and not policy.dry_run:
        return Refused(error_text(error), code=code_of(error))
    return Refused(SILENCE)


def refuse(
    error: Exception,
    entry: Entry,
    policy: Policy,
    audit: Audit,
    key: str,
    ledger: FindLedger,
    fit: str,
) -> Refused:
    """Audit a refusal, charge it if it depends on the records, and return its public form."""
    spent: dict[str, float] = {}
    # A refusal for such a reason by itself discloses something about the records.
    depends = isinstance(error, CorrectableRefusal) or not isinstance(error, FedLassoError)
    if key and depends and not policy.dry_run:
        charges = [Charge("refusals", key, 1), Charge("fit_refusals", key, 1, fit)]
        spent = ledger().charge(charges, {})
    why = error_text(error, entry.question)
    if isinstance(error, CorrectableRefusal):
        why = error.full[:LONGEST_REFUSAL]
    # Nothing left, so the entry has no hash.
    audit.write(replace(entry, verdict="refused", why=why, spent=spent, sha256=""))
    return public_refusal(error, policy)


def check_open(lifetime: Lifetime, policy: Policy, fit: str) -> None:
    """Refuse every question of a fit, or about a data file, once its refusals are used."""
    limits: dict[BudgetName, float] = {
        "refusals": policy.max_refusals,
        "fit_refusals": policy.max_fit_refusals,
    }
    for charge in (Charge("refusals", "", 1), Charge("fit_refusals", "", 1, fit)):
        if lifetime.used(charge.budget, charge.within) > 0:
            lifetime.check([charge], limits)


def read_records(read: Callable[[], T]) -> T:
    """Return what is read from the records; their errors are disclosed, and charged."""
    try:
        return read()
    except FedLassoError as error:
        raise CorrectableRefusal(error.unquoted, str(error)) from None
