"""What a data file has given away in its lifetime, over all fits: a small ledger beside the audit.

Every line charges one budget for something that left: vectors of numbers, a draw of the rows, a
candidate that was judged on held-out rows, a number that the site's own was compared with, or a
refusal that depends on the records. Charges are on disk before anything leaves, so a kill can only
count too much. A budget that is used up is renewed by whoever writes the policy, with a larger
number; a ledger that is missing is not a new one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import msgspec

from fedlasso.errors import FedLassoError
from fedlasso.governance.audit import Audit, lock

BudgetName = Literal["vectors", "splits", "parts", "candidates", "comparisons", "refusals"]
BUDGETS: tuple[BudgetName, ...] = get_args(BudgetName)


class Charge(msgspec.Struct, frozen=True, array_like=True):
    """One thing that left, or is about to, and the amount of a budget that it uses up.

    The same `key` is charged once. Charges count together `within` one set of held-out rows.
    """

    budget: BudgetName
    key: str
    amount: float
    within: str = ""


@dataclass(eq=False)
class Lifetime:
    """The ledger of one data file."""

    path: Path
    _known: set[tuple[str, str, str]] = field(default_factory=set, init=False)
    _read: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._used: defaultdict[tuple[str, str], float] = defaultdict(float)

    @classmethod
    def of(cls, audit: Audit, data: str) -> Lifetime:
        """Return the ledger beside an audit of the data file with this fingerprint."""
        ledger = cls(audit.path.with_name(f"{audit.path.stem}-{data[:32] or 'data'}.ledger"))
        if not ledger.path.exists() and any(e.spent for e in audit.entries() if e.data == data):
            raise FedLassoError(
                "the ledger of this data file is missing, and the audit says that there was one; "
                "restore it"
            )
        return ledger

    def used(self, budget: BudgetName, within: str = "") -> float:
        """Return how much of a budget is used up."""
        self._refresh()
        return self._used.get((budget, within), 0.0)

    def busiest(self, budget: BudgetName) -> float:
        """Return the most that was used of a budget in one place."""
        self._refresh()
        return max((used for (of, _), used in self._used.items() if of == budget), default=0.0)

    def check(self, charges: Iterable[Charge], limits: Mapping[BudgetName, float]) -> None:
        """Refuse what would use more than a limit."""
        self._refresh()
        asked: defaultdict[tuple[BudgetName, str], float] = defaultdict(float)
        for place, charge in {_place(charge): charge for charge in charges}.items():
            if place not in self._known:
                asked[charge.budget, charge.within] += charge.amount
        for (budget, within), amount in asked.items():
            limit = limits.get(budget, float("inf"))
            # Shares of vectors add up with rounding.
            if self._used.get((budget, within), 0.0) + amount > limit * (1 + 1e-9):
                raise FedLassoError(_WORDS[budget].format(int(limit)))

    def charge(
        self, charges: Iterable[Charge], limits: Mapping[BudgetName, float]
    ) -> dict[str, float]:
        """Write charges down, and return what they newly use of every budget."""
        charges = list(charges)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            lock(file)
            self.check(charges, limits)
            # A line torn by a kill was never followed by a reply: it is taken back.
            file.truncate(self._read)
            spent: defaultdict[str, float] = defaultdict(float)
            for charge in charges:
                if _place(charge) not in self._known:
                    line = msgspec.json.encode(charge) + b"\n"
                    file.write(line)
                    self._read += len(line)
                    self._add(charge)
                    spent[charge.budget] += charge.amount
            file.flush()
            os.fsync(file.fileno())
        self.path.chmod(0o600)
        return dict(spent)

    def _refresh(self) -> None:
        """Read what another process has added."""
        if not self.path.exists() or self.path.stat().st_size == self._read:
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            added = file.read()
        for line in added.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                return
            try:
                charge = msgspec.json.decode(line, type=Charge)
            except (msgspec.MsgspecError, json.JSONDecodeError):
                raise FedLassoError("the ledger of this data file is damaged; restore it") from None
            self._add(charge)
            self._read += len(line)

    def _add(self, charge: Charge) -> None:
        self._known.add(_place(charge))
        self._used[charge.budget, charge.within] += charge.amount


def _place(charge: Charge) -> tuple[str, str, str]:
    return charge.budget, charge.within, charge.key


_WORDS: dict[BudgetName, str] = {
    "vectors": (
        "this data file has given {} vectors over all fits, and the policy here allows no more; "
        "enough of them would determine the records"
    ),
    "splits": (
        "this data file has been split in {} ways over all fits, and the policy here allows no "
        "more; use the seeds, shares and folds of earlier fits"
    ),
    "parts": (
        "sums over {} parts of the rows have been told over all fits, half as many as there are "
        "rows, and no more will be; use the seeds, shares and folds of earlier fits"
    ),
    "candidates": (
        "{} models have been judged on these held-out rows over all fits, and the policy here "
        "allows no more; hold out other rows"
    ),
    "comparisons": (
        "this data file has been compared with {} numbers over all fits, and the policy here "
        "allows no more; enough of them would tell the site's own number"
    ),
    "refusals": (
        "this data file is closed after {} refused questions, until whoever runs the site raises "
        "max_refusals"
    ),
}


def short_hash(*parts: str | bytes) -> str:
    """Return a short hash of some parts, none of which runs into the next."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]
