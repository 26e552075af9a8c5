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
from fedlasso.governance.officer_summary import (
    FileSummary,
    at_chosen_model,
    find_unusual,
    kind_of_answer,
    participants,
    summarise_files,
)
from fedlasso.governance.policy import Policy
from fedlasso.html import escape

# What the door itself discloses, before a fit is open.
_DOOR_REVEALS = {
    "Introduce": "the names of the columns shown, the number of rows, version, protocol and clock",
    "DescribeColumns": "types of the columns, and levels of text that many rows have",
    "FindOthers": "which text columns have rows at other levels",
    "OfferKey": "a public key for the masks of one session, signed",
    "Open": "that the site joined a fit",
    "AcceptMembers": "nothing: the operator accepted other sites",
    "SummariseAudit": "hashes of what was sent before",
}
_BUDGET_TEXTS: dict[BudgetName, str] = {
    "numbers": "numbers sent over all fits, as a fraction of rows times columns",
    "splits": "splits of the rows",
    "moments": "twice the columns with second moments, as a fraction of the rows summed over",
    "candidates": "models evaluated on the most used set of held-out rows",
    "comparisons": "numbers that the site's noise was compared with",
    "refusals": "refusals that depend on the records",
    "fit_refusals": "refusals that depend on the records, in the fit with most of them",
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
    entries = list(audit.entries())
    fits = transfers_by_fit(entries)
    real = [transfers for transfers in fits if transfers.fit]
    yield from _in_short(entries, real)
    yield "<h2>Who took part</h2>"
    yield _table(("site", "its key (fingerprint)", "fits"), _participants(entries))
    yield "<h2>Which data</h2>"
    yield from _files(entries)
    yield "<h2>What was sent</h2>"
    if not real:
        yield "<p>Nothing yet.</p>"
    for transfers in real:
        yield from _fit(transfers)
    for transfers in fits:
        if not transfers.fit:
            yield "<h3>Before and around the fits</h3>"
            yield from _answers(transfers)
    yield "<h2>What was refused</h2>"
    yield _refusals(fits)
    yield "<h2>Limits of this site</h2>"
    yield (
        "<p class='soft'>They hold for the lifetime of a data file, over all fits. The site sets "
        "them in policy.toml.</p>"
    )
    if problem := check_ledgers(audit):
        yield f"<p class='bad'>{escape(problem)}.</p>"
    yield _table(("data file", "", "used", "limit", ""), _budget_rows(audit, policy))


def _in_short(entries: Sequence[Entry], real: Sequence[FitTransfers]) -> Iterable[str]:
    sent = [entry for entry in entries if entry.verdict == "sent" and entry.fit]
    refused = sum(entry.verdict == "refused" for entry in entries)
    numbers = sum(entry.numbers for entry in sent)
    hidden = sum(bool(entry.clear) for entry in sent)
    chosen = [entry for entry in sent if at_chosen_model(entry.question)]
    yield (
        f"<p>This site took part in <b>{len(real)}</b> fit{'s' * (len(real) != 1)} and sent "
        f"<b>{len(sent):,}</b> answers with <b>{numbers:,}</b> numbers. It sent no record: each "
        "number is a sum or a count over many records, or was computed from such sums.</p>"
        f"<p><b>{hidden:,}</b> of the answers were hidden by random numbers that cancel only in "
        "the total over all sites: this site's part of them can be read only if all other sites "
        "help the coordinator. "
        f"<b>{len(chosen):,}</b> answers depend on a model that the coordinator chose. "
        f"<b>{refused:,}</b> question{'s were' if refused != 1 else ' was'} refused.</p>"
    )
    unusual = list(find_unusual(entries))
    for line in unusual:
        yield f"<p class='bad'>Unusual: {escape(line)}.</p>"
    if not unusual:
        yield "<p class='good'>Nothing unusual was asked.</p>"
    yield (
        "<p class='soft'>Many sums about few records can disclose records. The percentage below "
        "compares the numbers sent with the values in the data; what sums cannot promise is on "
        "the privacy page of fedlasso.</p>"
    )


def _participants(entries: Sequence[Entry]) -> Iterator[Sequence[str]]:
    for (site, key), fits in participants(entries).items():
        shown = " ".join(key[k : k + 4] for k in range(0, len(key), 4))
        yield escape(site), escape(shown or "not signed"), f"{len(fits):,}"


def _files(entries: Sequence[Entry]) -> Iterator[str]:
    files = [each for each in summarise_files(entries) if each.rows]
    if not files:
        yield "<p>The audit has no opened fit with its number of records.</p>"
    for each in files:
        yield (
            f"<p>Data file {escape(each.data[:8])}: <b>{each.rows:,}</b> records, "
            f"<b>{len(each.columns):,}</b> columns used. In {len(each.fits):,} "
            f"fit{'s' * (len(each.fits) != 1)} <b>{each.numbers:,}</b> numbers were sent: "
            f"<b>{each.percent:.3g}%</b> as many as the values that they are about.</p>"
            f"<p class='soft'>{_explain_percent(each)}</p>"
        )
        listed = ", ".join(map(escape, sorted(each.columns)))
        yield f"<details><summary>The columns used</summary><p>{listed}</p></details>"


def _explain_percent(file: FileSummary) -> str:
    """Return in plain words what numbers are compared with; `max_numbers` limits the same."""
    values = " and ".join(
        f"{rows:,} records in {columns:,} columns, which are {rows * columns:,} values"
        for rows, columns in file.compared
    )
    hidden = any(rows > file.rows for rows, _ in file.compared)
    about = (
        "A number that can be read only in the total over all sites is about the records of all "
        f"sites: {values}. Another site counts with at most {file.rows:,} records, as many as are "
        f"here. A number that this site sends alone is about its own {file.rows:,} records."
        if hidden
        else f"Every number is about the records of this site alone: {values}."
    )
    again = f" Another {file.again:,} numbers had been sent before." if file.again else ""
    return (
        f"{about} Columns are counted as the model has them: without the outcome, text as one "
        "column for each level, and with one for the constant term of some models. The same answer "
        f"to the same question counts once.{again} The limit max_numbers of this site counts in "
        "the same way; above 100% there would be more numbers than values."
    )


def _budget_rows(audit: Audit, policy: Policy) -> Iterable[Sequence[str]]:
    for data, budget, used, limit in budget_usage(audit, policy):
        fraction = min(used / limit, 1.0) if limit else 0.0
        bar = f"<meter value='{fraction:.3f}' high='0.8'>{fraction:.0%}</meter>" if limit else ""
        shown = f"{limit:,g}"
        shown_use = f"{used:,.3g}" if used < 10 else f"{used:,.0f}"
        yield escape(data), escape(budget), shown_use, shown, bar


def _fit(transfers: FitTransfers) -> Iterable[str]:
    yield f"<h3>Fit {escape(transfers.fit)}</h3>"
    first, last = (
        escape(time[:16].replace("T", " ")) for time in (transfers.first, transfers.last)
    )
    yield f"<p class='soft'>{first} to {last} UTC</p>"
    if transfers.about:
        yield f"<p>{escape(transfers.about.partition(': ')[2] or transfers.about)}</p>"
    yield from _answers(transfers)


def _answers(transfers: FitTransfers) -> Iterable[str]:
    """Yield what was sent, by kind in plain words, and by question for specialists."""
    kinds: dict[str, list[int]] = {}
    for totals in transfers.questions.values():
        kind = kinds.setdefault(kind_of_answer(totals.question), [0, 0])
        kind[0] += totals.times
        kind[1] += totals.numbers
    rows = [
        (f"{times:,}", escape(kind), f"{numbers:,}") for kind, (times, numbers) in kinds.items()
    ]
    yield _table(("answers", "what they held", "numbers"), rows)
    yield "<details><summary>By question, for specialists</summary>"
    yield _questions(transfers)
    if transfers.splits:
        listed = ", ".join(map(escape, transfers.splits))
        yield f"<p>Splits of the rows: {listed}; the site drew them with its own secret.</p>"
    if transfers.views:
        yield f"<p>Views of the records, centred and scaled: {len(transfers.views)}.</p>"
    yield "</details>"


def _questions(transfers: FitTransfers) -> str:
    rows = [
        (escape(a.question), escape(a.reveals), f"{a.times:,}", f"{a.numbers:,}", f"{a.payload:,}")
        for a in transfers.questions.values()
    ]
    return _table(("question", "what it revealed", "times", "numbers", "bytes"), rows)


def _refusals(fits: Sequence[FitTransfers]) -> str:
    rows = [
        (escape(transfers.fit[:8] or "none"), escape(f"{question}: {why}"), f"{times:,}")
        for transfers in fits
        for (question, why), times in transfers.refused.items()
    ]
    if not rows:
        return "<p>Nothing.</p>"
    return _table(("fit", "question, and the reason (which stays here)", "times"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = list(rows)
    return f'<div class="wide">{html.table(head, cells)}</div>' if cells else ""
