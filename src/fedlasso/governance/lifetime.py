"""Budgets for the lifetime of a data file, over all fits: a ledger beside the audit.

Every line charges one budget for something that left: numbers, a cut of the rows, a
candidate evaluated on held-out rows, a number compared with the site's own, or a refusal that
depends on the records. Charges are on disk before anything leaves, so a kill can only overcount. An
exhausted budget is extended by a larger number in the policy; a missing ledger is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import msgspec

from fedlasso.atomic_files import writing
from fedlasso.errors import FedLassoError
from fedlasso.governance.audit import Audit, lock_file
from fedlasso.governance.counting import fraction_text
from fedlasso.sites.moment_rules import too_few_rows

BudgetName = Literal[
    "numbers", "splits", "moments", "candidates", "comparisons", "refusals", "fit_refusals"
]
BUDGETS: tuple[BudgetName, ...] = get_args(BudgetName)


class Charge(msgspec.Struct, frozen=True, array_like=True):
    """An amount of a budget, charged once per `key`, added up `within` a set of held-out rows."""

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
        self._used: defaultdict[tuple[BudgetName, str], float] = defaultdict(float)

    @classmethod
    def of(cls, audit: Audit, data: str) -> Lifetime:
        """Return the ledger beside an audit of the data file with this fingerprint."""
        ledger = cls(audit.path.with_name(f"{audit.path.stem}-{data[:32] or 'data'}.ledger"))
        if not ledger.path.exists() and any(e.spent for e in audit.entries() if e.data == data):
            raise FedLassoError(
                "the ledger of this data file is missing, but the audit refers to it; restore it"
            )
        return ledger

    def used(self, budget: BudgetName, within: str = "") -> float:
        self._refresh()
        return self._used.get((budget, within), 0.0)

    def knows(self, budget: BudgetName, beginning: str) -> bool:
        """Return whether anything was charged whose key has this beginning."""
        self._refresh()
        return any(of == budget and key.startswith(beginning) for of, _, key in self._known)

    def busiest(self, budget: BudgetName, planned: Iterable[Charge] = ()) -> float:
        """Return the maximum that was used of a budget within one set of rows.

        With `planned` charges it is the maximum after these.
        """
        self._refresh()
        used = self._used.copy()
        for place, amount in self._add_up(planned).items():
            used[place] += amount
        return max((amount for (of, _), amount in used.items() if of == budget), default=0.0)

    def check(self, charges: Iterable[Charge], limits: Mapping[BudgetName, float]) -> None:
        """Refuse what would use more than a limit."""
        for budget in self.exceeded(charges, limits):
            if budget == "moments":
                raise too_few_rows()
            limit = limits[budget]
            shown = fraction_text(limit) if budget == "numbers" else f"{limit:g}"
            raise FedLassoError(_EXHAUSTED[budget].format(shown))

    def exceeded(
        self, charges: Iterable[Charge], limits: Mapping[BudgetName, float]
    ) -> Iterator[BudgetName]:
        """Yield the budgets of which charges would use more than the limit."""
        self._refresh()
        for (budget, within), amount in self._add_up(charges).items():
            limit = limits.get(budget, float("inf"))
            # Fractions of numbers add up with rounding.
            if self._used.get((budget, within), 0.0) + amount > limit * (1 + 1e-9):
                yield budget

    def _add_up(self, charges: Iterable[Charge]) -> dict[tuple[BudgetName, str], float]:
        """Return what charges would newly use of every budget, within every set of rows."""
        new: defaultdict[tuple[BudgetName, str], float] = defaultdict(float)
        for place, charge in {_place(charge): charge for charge in charges}.items():
            if place not in self._known:
                new[charge.budget, charge.within] += charge.amount
        return new

    def charge(
        self, charges: Iterable[Charge], limits: Mapping[BudgetName, float]
    ) -> dict[str, float]:
        """Write charges to disk, and return what they newly use of every budget."""
        charges = list(charges)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with writing(self.path), self.path.open("a+b") as file:
            lock_file(file)
            self.check(charges, limits)
            # No reply followed a line that a kill cut short, so it is removed.
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
        """Read lines that another process has added."""
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


_EXHAUSTED: dict[BudgetName, str] = {
    "numbers": "the numbers sent from this data file over all fits would exceed {} of its rows "
    "times columns, and enough numbers determine the records; only the site's operator can raise "
    "max_numbers in policy.toml",
    "splits": "the rows of this data file have been cut in {} ways over all fits, and max_splits "
    "allows no more; use the cluster column of earlier fits, or none",
    "moments": "",
    "candidates": "{} models have been evaluated on these held-out rows over all fits, and "
    "max_candidates allows no more; hold out other rows",
    "comparisons": "this data file has been compared with {} numbers over all fits, and "
    "max_comparisons allows no more; enough of them would disclose the site's own number",
    "refusals": "this data file is closed after {} refused questions, until the site's operator "
    "raises max_refusals",
    "fit_refusals": "this fit is closed after {} refused questions; start another",
}


def short_hash(*parts: str | bytes) -> str:
    """Return a short hash of some parts, each with its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]
