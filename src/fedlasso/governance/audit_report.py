"""An audit as text, and as a page, for a data protection officer."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fedlasso import html
from fedlasso.errors import FedLassoError
from fedlasso.federation.messages import questions
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.lifetime import BUDGETS, BudgetName, Lifetime
from fedlasso.governance.policy import Policy
from fedlasso.html import escape

# What the door itself discloses, before a fit is open.
_DOOR_REVEALS = {
    "Introduce": "the names of the columns shown, the number of rows, version, protocol and clock",
    "DescribeColumns": "types of the columns, and levels of text that many rows have",
    "FindOthers": "which text columns have rows at other levels",
    "OfferKey": "a public key for the masks of one session, signed",
    "Open": "that the site joined a fit",
    "SummariseAudit": "hashes of what was sent before",
}
_BUDGET_TEXTS: dict[BudgetName, str] = {
    "numbers": "numbers sent over all fits, as a fraction of rows times columns",
    "splits": "splits of the rows",
    "moments": "twice the columns with second moments, as a fraction of the rows summed over",
    "candidates": "models evaluated on the most used set of held-out rows",
    "comparisons": "numbers that the site's noise was compared with",
    "refusals": "refusals that depend on the records",
}


@dataclass
class QuestionTotals:
    """One kind of question within a fit: how often it was answered, and how much left."""

    question: str
    reveals: str
    times: int = 0
    numbers: int = 0
    payload: int = 0


@dataclass
class FitTransfers:
    """What left for one fit, and counts of refusals by question and reason.

    `fit` is its identity, empty for what belongs to no fit, and `about` its columns and target;
    `first` and `last` are times of answers. `splits` and `views` were used by its questions.
    """

    fit: str
    about: str
    first: str
    last: str
    questions: dict[str, QuestionTotals] = field(default_factory=dict)
    splits: dict[str, None] = field(default_factory=dict)
    views: dict[str, None] = field(default_factory=dict)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)


def reveals(question: str) -> str:
    if question in (known := questions()):
        return known[question].discloses.reveals
    return _DOOR_REVEALS.get(question, "nothing: it could not be read")


def entry_text(entry: Entry) -> str:
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


def transfers_by_fit(entries: Iterable[Entry]) -> list[FitTransfers]:
    """Return what left for each fit, in the order of their first answers."""
    fits: dict[str, FitTransfers] = {}
    for entry in entries:
        fit = fits.setdefault(entry.fit, FitTransfers(entry.fit, "", entry.time, entry.time))
        fit.last = entry.time
        fit.about = fit.about or (entry.about if entry.fit else "")
        if entry.split:
            fit.splits[entry.split] = None
        if entry.view:
            fit.views[entry.view] = None
        if entry.verdict == "sent":
            new = QuestionTotals(entry.question, reveals(entry.question))
            totals = fit.questions.setdefault(entry.question, new)
            totals.times += 1
            totals.numbers += entry.numbers
            totals.payload += entry.payload
        else:
            fit.refused[entry.question, entry.why] += 1
    return list(fits.values())


def chain_status(audit: Audit) -> tuple[bool, str]:
    """Return whether the audit's chain is intact and ends at its anchor, and a line about it."""
    try:
        lines = sum(1 for _ in audit.entries())
        audit.check_anchor()
    except FedLassoError as error:
        return False, str(error)
    return True, f"{lines} lines, hash chain valid, last hash {audit.head[:12]}"


def budget_usage(audit: Audit, policy: Policy) -> Iterator[tuple[str, str, float, float]]:
    """Yield data file, budget, amount used, and the limit."""
    limits = policy.limits()
    for data in dict.fromkeys(entry.data for entry in audit.entries() if entry.spent):
        lifetime = Lifetime.of(audit, data)
        for budget in BUDGETS:
            yield data[:8], _BUDGET_TEXTS[budget], lifetime.busiest(budget), limits[budget]


def check_ledgers(audit: Audit) -> str:
    """Describe the first ledger that has less than the audit; empty if none has."""
    spent: defaultdict[tuple[str, BudgetName], float] = defaultdict(float)
    together: tuple[BudgetName, ...] = ("numbers", "splits", "comparisons", "refusals")
    for entry in audit.entries():
        for budget in together:
            spent[entry.data, budget] += entry.spent.get(budget, 0.0)
    for (data, budget), amount in spent.items():
        if amount and Lifetime.of(audit, data).used(budget) < amount * (1 - 1e-9):
            return f"the ledger of data file {data[:8]} has less of {budget} than the audit"
    return ""


def write_audit_page(site: str, project: str, audit: Audit, policy: Policy) -> str:
    """Return the page "What left my site"; of a damaged audit it shows only that it is damaged."""
    intact, chain = chain_status(audit)
    parts = [
        f"<h1>What left my site: {escape(site)}</h1>",
        f"<p class='soft'>Project {escape(project)}; written "
        f"{datetime.now(UTC).isoformat(timespec='minutes')} from the site's own audit.</p>",
        f"<p class='{'good' if intact else 'bad'}'>The audit: {escape(chain)}.</p>",
    ]
    if intact:
        parts += _body(audit, policy)
    return html.page(f"What left {site}", "audit", "\n".join(parts))


def _body(audit: Audit, policy: Policy) -> Iterable[str]:
    fits = transfers_by_fit(audit.entries())
    real = [transfers for transfers in fits if transfers.fit]
    totals = [each for transfers in real for each in transfers.questions.values()]
    replies = sum(each.times for each in totals)
    numbers = sum(each.numbers for each in totals)
    refused = sum(transfers.refused.total() for transfers in fits)
    masked = sum(bool(entry.clear) for entry in audit.entries() if entry.verdict == "sent")
    yield (
        f"<p><b>{replies:,}</b> replies with <b>{numbers:,}</b> numbers have left for "
        f"<b>{len(real)}</b> fit{'s' * (len(real) != 1)}; <b>{refused:,}</b> "
        f"question{'s were' if refused != 1 else ' was'} refused. Replies are sums "
        "over rows, or models computed from them; the privacy page of fedlasso explains what "
        f"each could disclose. <b>{masked:,}</b> of the replies left masked: of these only the "
        "total over all sites can be read.</p>"
    )
    yield "<h2>Budgets</h2>"
    yield (
        "<p class='soft'>Limits apply to the lifetime of a data file, over all fits. To allow "
        "more, raise the number in policy.toml.</p>"
    )
    if problem := check_ledgers(audit):
        yield f"<p class='bad'>{escape(problem)}.</p>"
    yield _table(("data file", "", "used", "limit", ""), _budget_rows(audit, policy))
    yield "<h2>Fits</h2>"
    if not real:
        yield "<p>None yet.</p>"
    for transfers in real:
        yield from _fit(transfers)
    for transfers in fits:
        if not transfers.fit:
            yield "<h2>Before any fit</h2>"
            yield _questions(transfers)
            yield _refusals(transfers)


def _budget_rows(audit: Audit, policy: Policy) -> Iterable[Sequence[str]]:
    for data, budget, used, limit in budget_usage(audit, policy):
        fraction = min(used / limit, 1.0) if limit else 0.0
        bar = f"<meter value='{fraction:.3f}' high='0.8'>{fraction:.0%}</meter>" if limit else ""
        shown = f"{limit:,g}"
        shown_use = f"{used:,.3g}" if used < 10 else f"{used:,.0f}"
        yield escape(data), escape(budget), shown_use, shown, bar


def _fit(transfers: FitTransfers) -> Iterable[str]:
    yield f"<h3>Fit {escape(transfers.fit)}</h3>"
    yield f"<p class='soft'>{escape(transfers.first)} to {escape(transfers.last)}</p>"
    if transfers.about:
        yield f"<p>{escape(transfers.about.partition(': ')[2] or transfers.about)}</p>"
    yield _questions(transfers)
    if transfers.splits:
        listed = ", ".join(map(escape, transfers.splits))
        yield f"<p>Splits of the rows: {listed}; the site drew them with its own secret.</p>"
    if transfers.views:
        yield f"<p>Views of the records, centred and scaled: {len(transfers.views)}.</p>"
    yield _refusals(transfers)


def _questions(transfers: FitTransfers) -> str:
    rows = [
        (escape(a.question), escape(a.reveals), f"{a.times:,}", f"{a.numbers:,}", f"{a.payload:,}")
        for a in transfers.questions.values()
    ]
    return _table(("question", "what it revealed", "times", "numbers", "bytes"), rows)


def _refusals(transfers: FitTransfers) -> str:
    refused = transfers.refused.items()
    rows = [(escape(question), escape(why), f"{times:,}") for (question, why), times in refused]
    return _table(("refused", "reason (stays here)", "times"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = list(rows)
    return f'<div class="wide">{html.table(head, cells)}</div>' if cells else ""
