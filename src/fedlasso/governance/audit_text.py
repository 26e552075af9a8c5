"""An audit in words that a data protection officer reads."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fedlasso.errors import FedLassoError
from fedlasso.federation.messages import questions
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.lifetime import BUDGETS, BudgetName, Lifetime
from fedlasso.governance.policy import Policy

# What the door itself answers, before a fit is open.
_AT_THE_DOOR = {
    "Introduce": "the names of the columns shown, the number of rows, version, protocol and clock",
    "DescribeColumns": "what columns hold, and levels of text that many rows have",
    "FindOthers": "which text columns have rows at other levels",
    "OfferKey": "a public key for the masks of one session, signed",
    "Open": "that the site joins a fit",
    "SummariseAudit": "hashes of what was sent before",
}
_BUDGET_WORDS: dict[BudgetName, str] = {
    "vectors": "vectors of numbers given, over all fits",
    "splits": "ways in which the rows were split",
    "parts": "parts of the rows that sums were told of",
    "candidates": "models judged on the busiest set of held-out rows",
    "comparisons": "numbers that the site's noise was compared with",
    "refusals": "refusals that depend on the records",
}


@dataclass
class Asked:
    """One kind of question within a fit: how often it was answered, and how much left."""

    question: str
    reveals: str
    times: int = 0
    numbers: int = 0
    payload: int = 0


@dataclass
class FitBooks:
    """What left for one fit, and what was refused: questions and reasons, and how often.

    `fit` is its identity, empty for what belongs to no fit, and `about` its columns and target;
    `first` and `last` are times of answers. `splits` of the rows and `views` were asked about.
    """

    fit: str
    about: str
    first: str
    last: str
    asked: dict[str, Asked] = field(default_factory=dict)
    splits: dict[str, None] = field(default_factory=dict)
    views: dict[str, None] = field(default_factory=dict)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)


def reveals(question: str) -> str:
    """Say what a question reveals, in its own words."""
    if question in (known := questions()):
        return known[question].discloses.reveals
    return _AT_THE_DOOR.get(question, "nothing: it could not be read")


def tell_entry(entry: Entry) -> str:
    """Say one answer in a line."""
    fit = f"fit {entry.fit[:8]}" if entry.fit else "no fit"
    parts = [f"{entry.number:6d} {entry.time} {fit} {entry.question}"]
    if entry.verdict == "sent":
        parts.append(f"left: {reveals(entry.question)}")
        shapes = " ".join(f"{n}[{'x'.join(map(str, s))}]" for n, s in entry.shapes.items())
        masked = ", masked" if entry.clear else ""
        parts.append(f"{entry.numbers} numbers, {entry.payload} bytes{masked} {shapes}".rstrip())
    else:
        parts.append(f"refused: {entry.why}")
    parts += [f"split {entry.split}"] if entry.split else []
    parts += [f"view {entry.view}"] if entry.view else []
    parts += filter(None, (entry.about, entry.parameters))
    parts += [f"hash {entry.sha256[:12]}"] if entry.sha256 else []
    return "; ".join(parts)


def gather_fits(entries: Iterable[Entry]) -> list[FitBooks]:
    """Return what left for each fit, in the order of their first answers."""
    found: dict[str, FitBooks] = {}
    for entry in entries:
        books = found.setdefault(entry.fit, FitBooks(entry.fit, "", entry.time, entry.time))
        books.last = entry.time
        books.about = books.about or (entry.about if entry.fit else "")
        if entry.split:
            books.splits[entry.split] = None
        if entry.view:
            books.views[entry.view] = None
        if entry.verdict == "sent":
            question = Asked(entry.question, reveals(entry.question))
            asked = books.asked.setdefault(entry.question, question)
            asked.times += 1
            asked.numbers += entry.numbers
            asked.payload += entry.payload
        else:
            books.refused[entry.question, entry.why] += 1
    return list(found.values())


def tell_chain(audit: Audit) -> tuple[bool, str]:
    """Say whether the chain of the audit is whole, and ends where its anchor says."""
    try:
        lines = sum(1 for _ in audit.entries())
        audit.check_anchor()
    except FedLassoError as error:
        return False, str(error)
    return True, f"{lines} lines, chain unbroken, head {audit.head[:12]}"


def tell_budgets(audit: Audit, policy: Policy) -> Iterator[tuple[str, str, float, float | None]]:
    """Return of every data file what is used of each budget, and the limit where it is known."""
    limits = policy.limits(0)
    for data in dict.fromkeys(entry.data for entry in audit.entries() if entry.spent):
        lifetime = Lifetime.of(audit, data)
        for budget in BUDGETS:
            # Half of the rows, which the audit does not know.
            limit = None if budget == "parts" else limits[budget]
            yield data[:8], _BUDGET_WORDS[budget], lifetime.busiest(budget), limit


def check_ledgers(audit: Audit) -> str:
    """Say where a ledger has less than its audit; an empty text where none has."""
    spent: defaultdict[tuple[str, BudgetName], float] = defaultdict(float)
    together: tuple[BudgetName, ...] = ("vectors", "splits", "parts", "comparisons", "refusals")
    for entry in audit.entries():
        for budget in together:
            spent[entry.data, budget] += entry.spent.get(budget, 0.0)
    for (data, budget), amount in spent.items():
        if amount and Lifetime.of(audit, data).used(budget) < amount * (1 - 1e-9):
            return f"the ledger of data file {data[:8]} says less of {budget} than the audit does"
    return ""
