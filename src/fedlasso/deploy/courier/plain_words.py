"""What would leave with an answer, in plain words, for the person who must say yes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fedlasso.deploy.courier.contents import QuestionContents, short
from fedlasso.deploy.courier.envelope import Head
from fedlasso.errors import FedLassoError
from fedlasso.federation import Request
from fedlasso.federation.checking import printable
from fedlasso.federation.messages import questions
from fedlasso.governance import Door
from fedlasso.governance.consent import Transfer
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
    "numbers": "numbers, as a fraction of rows times columns",
    "splits": "cuts of the rows",
    "moments": "columns with second moments, as a fraction of those that may have them",
    "candidates": "models evaluated on held-out rows",
    "comparisons": "comparisons with the site's noise",
    "refusals": "refusals that depend on the records",
    "fit_refusals": "such refusals in one fit",
}
# Characters of a line with names of columns.
_WIDTH = 96


class Declined(BaseException):
    """Nobody said yes, for the reason `error` if there is one.

    It is no `Exception`, which a door would answer with a refusal, and charge.
    """

    def __init__(self, error: FedLassoError | None = None) -> None:
        super().__init__()
        self.error = error


@dataclass(eq=False)
class Consent:
    """Asks once for every answer, or shows it; raises `Declined` unless the answer is yes."""

    agree: ConfirmAnswer | None
    show: Callable[[str], None]
    head: Head
    question: QuestionContents
    door: Door
    requests: Sequence[Request[Any]]

    def ask_before(self) -> None:
        """Ask about names and counts, which are known before anything is computed."""
        self._ask(self._names_and_counts())

    def approve(self, transfers: Sequence[Transfer]) -> bool:
        """Ask about the numbers that would leave."""
        self._ask([*self._names_and_counts(), *self._numbers(transfers)])
        return True

    def _ask(self, lines: Sequence[str]) -> None:
        text = "\n".join([*self._who(), *lines, *self._budgets()])
        if self.agree is None:
            self.show(text)
            return
        try:
            agreed = self.agree(f"{text}\nWrite the answer? [y/N] ")
        except FedLassoError as error:
            raise Declined(error) from None
        if not agreed:
            raise Declined

    def _who(self) -> list[str]:
        head = self.head
        title = f", {self.question.title!r}" if self.question.title else ""
        author = f" by {printable(self.question.author)}" if self.question.author else ""
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
                rows = f"{records.rows} rows as a count"
                lines.append(f"Would leave: {rows}, and the names of {len(shown)} columns")
                lines += _list_all(shown)
            elif isinstance(request, OfferKey):
                lines.append("Would leave: a public key, with which all sites mask their sums")
            elif isinstance(request, AboutColumns):
                columns = f"{len(request.columns)} columns"
                what = f"Would take part in a fit with {columns}"
                if isinstance(request, DescribeColumns):
                    fewest = max(request.min_level, self.door.policy.min_level_rows)
                    levels = f"text levels of {fewest} rows or more"
                    what = f"Would leave: types, and {levels}, of {columns}"
                elif isinstance(request, FindOthers):
                    what = f"Would leave: which text columns have other levels, of {columns}"
                target = ", ".join(map(repr, request.outcome))
                lines.append(what)
                lines += [*_list_all(request.columns), f"  response {target}"]
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
        if len(transfers) < len(guarded):
            lines.append("Would be refused: the question after these, which may use a refusal")
        return lines

    def _budgets(self) -> list[str]:
        limits = self.door.policy.limits()
        lines = ["Left of this data file's budgets after this answer (before it):"]
        for budget in BUDGETS:
            if budget in limits:
                limit = limits[budget]
                charges = ((), self.door.pending)
                used = [self.door.lifetime.busiest(budget, new) for new in charges]
                before, after = (max(limit - each, 0) for each in used)
                left = f"{after:.3g} ({before:.3g}) of {limit:g}"
                lines.append(f"  {_BUDGETS[budget]}: {left}")
        return lines


def _list_all(names: Sequence[str]) -> list[str]:
    """Return lines with all names: the one that is not shown might be the one to refuse."""
    lines = [" "]
    for k, name in enumerate(names, start=1):
        shown = f" {name!r}" + ("," if k < len(names) else "")
        if len(lines[-1]) > 1 and len(lines[-1]) + len(shown) > _WIDTH:
            lines.append(" ")
        lines[-1] += shown
    return lines
