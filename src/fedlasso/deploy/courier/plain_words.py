"""What would leave with an answer, in plain words, for the person who must say yes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedlasso.deploy.courier.contents import QuestionContents, short
from fedlasso.deploy.courier.envelope import Head
from fedlasso.federation import Request
from fedlasso.federation.messages import questions
from fedlasso.governance import Door
from fedlasso.governance.consent import Transfer, list_names
from fedlasso.governance.door_messages import (
    AboutColumns,
    DescribeColumns,
    FindOthers,
    Introduce,
    Open,
)
from fedlasso.governance.lifetime import BUDGETS
from fedlasso.governance.masks import OfferKey

# Shows a text that ends with a question, and returns whether the answer is yes.
ConfirmAnswer = Callable[[str], bool]
_BUDGETS = {
    "numbers": "times as many numbers as rows times columns",
    "splits": "cuts of the rows",
    "moments": "of the columns that may have second moments, as a fraction",
    "candidates": "models evaluated on held-out rows",
    "comparisons": "comparisons with the site's noise",
    "refusals": "refusals that depend on the records",
    "fit_refusals": "of these in one fit",
}


@dataclass(eq=False)
class Consent:
    """Asks once for every answer; `declined` is whether the answer was no."""

    agree: ConfirmAnswer
    head: Head
    question: QuestionContents
    door: Door
    requests: Sequence[Request[Any]]
    declined: bool = field(default=False, init=False)

    def ask_before(self) -> bool:
        """Ask about names and counts, which are known before anything is computed."""
        return self._ask(self._names_and_counts())

    def approve(self, transfers: Sequence[Transfer]) -> bool:
        """Ask about the numbers that would leave."""
        return self._ask([*self._names_and_counts(), *self._numbers(transfers)])

    def _ask(self, lines: Sequence[str]) -> bool:
        text = "\n".join([*self._who(), *lines, *self._budgets(), "Write the answer? [y/N] "])
        self.declined = not self.agree(text)
        return not self.declined

    def _who(self) -> list[str]:
        head = self.head
        title = f", {self.question.title!r}" if self.question.title else ""
        author = f" by {self.question.author}" if self.question.author else ""
        lines = [
            f"Project {head.project!r} asks site {self.door.name!r}: "
            f"fit {short(head.fit)}{title}{author}, question {head.trip}",
        ]
        openings = [request for request in self.requests if isinstance(request, Open)]
        return [*lines, *(f"All sites of the fit: {', '.join(o.sites)}" for o in openings)]

    def _names_and_counts(self) -> list[str]:
        """Describe the answers of the door itself."""
        lines = []
        records = self.door.records
        for request in self.requests:
            if isinstance(request, Introduce):
                shown = [name for name in records.columns if self.door.policy.shows(name)]
                lines.append(f"Would leave: {records.rows} rows as a count, and the names of")
                lines.append(f"  {list_names(shown)}")
            elif isinstance(request, OfferKey):
                lines.append("Would leave: a public key, with which all sites mask their sums")
            elif isinstance(request, AboutColumns):
                what = "Would take part in a fit with the"
                if isinstance(request, DescribeColumns):
                    fewest = max(request.min_level, self.door.policy.min_level_rows)
                    what = f"Would leave: types, and text levels of {fewest} rows or more, of"
                elif isinstance(request, FindOthers):
                    what = "Would leave: which text columns have other levels, of"
                target = ", ".join(map(repr, request.outcome))
                lines.append(what)
                lines.append(f"  {list_names(request.columns)}, response {target}")
        return lines

    def _numbers(self, transfers: Sequence[Transfer]) -> list[str]:
        """Describe the sums over rows that would leave."""
        guarded = [
            r for r in self.requests if not isinstance(r, Introduce | OfferKey | AboutColumns)
        ]
        numbers: Counter[tuple[str, bool]] = Counter()
        asked: Counter[tuple[str, bool]] = Counter()
        masked = self.door.policy.sums == "masked"
        # A refusal ends the replies.
        for request, (entry, _) in zip(guarded, transfers, strict=False):
            kind = (entry.question, masked and request.reach > 0)
            numbers[kind] += entry.numbers
            asked[kind] += 1
        lines = [f"Would leave: {numbers.total()} numbers, by question"]
        known = questions()
        for (name, hidden), count in asked.items():
            how = "masked: only the total of all sites can be read" if hidden else "in clear"
            lines.append(f"  {count} x {name}: {numbers[name, hidden]} numbers, {how}")
            lines.append(f"    {known[name].discloses.reveals}")
        return lines

    def _budgets(self) -> list[str]:
        ledger = self.door.lifetime
        limits = self.door.policy.limits()
        left = []
        for budget in BUDGETS:
            if budget in limits:
                rest = max(limits[budget] - ledger.busiest(budget), 0)
                left.append(f"{rest:.3g} of {limits[budget]:g} {_BUDGETS[budget]}")
        return ["Left of this data file's budgets, before this answer:", "  " + "; ".join(left)]
