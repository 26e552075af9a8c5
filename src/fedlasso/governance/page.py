"""One page, "What left my site", for whoever answers for the records."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from fedlasso import html
from fedlasso.governance import audit_text
from fedlasso.governance.audit import Audit
from fedlasso.governance.policy import Policy
from fedlasso.html import escape


def write_page(site: str, project: str, audit: Audit, policy: Policy) -> str:
    """Return the page as HTML that needs nothing else.

    An audit that is broken is shown as broken, with nothing made of it.
    """
    whole, chain = audit_text.tell_chain(audit)
    parts = [
        f"<h1>What left my site: {escape(site)}</h1>",
        f"<p class='soft'>Project {escape(project)}; written "
        f"{datetime.now(UTC).isoformat(timespec='minutes')} from the site's own audit.</p>",
        f"<p class='{'good' if whole else 'bad'}'>The audit: {escape(chain)}.</p>",
    ]
    if whole:
        parts += _body(audit, policy)
    return html.page(f"What left {site}", "audit", "\n".join(parts))


def _body(audit: Audit, policy: Policy) -> Iterable[str]:
    fits = audit_text.gather_fits(audit.entries())
    real = [books for books in fits if books.fit]
    replies = sum(asked.times for books in real for asked in books.asked.values())
    numbers = sum(asked.numbers for books in real for asked in books.asked.values())
    refused = sum(books.refused.total() for books in fits)
    masked = sum(bool(entry.clear) for entry in audit.entries() if entry.verdict == "sent")
    yield (
        f"<p><b>{replies:,}</b> replies with <b>{numbers:,}</b> numbers have left for "
        f"<b>{len(real)}</b> fit{'s' * (len(real) != 1)}; <b>{refused:,}</b> "
        f"question{'s were' if refused != 1 else ' was'} refused. Replies are sums "
        "over rows, or models made from them; the privacy page of fedlasso says what somebody "
        f"could make of each. <b>{masked:,}</b> of the replies left masked: of these nobody can "
        "read more than the total over all sites.</p>"
    )
    yield "<h2>What is used up</h2>"
    yield (
        "<p class='soft'>Limits hold for the lifetime of a data file, over all fits. To allow "
        "more, raise the number in policy.toml.</p>"
    )
    if words := audit_text.check_ledgers(audit):
        yield f"<p class='bad'>{escape(words)}.</p>"
    yield _table(("data file", "", "used", "limit", ""), _budget_rows(audit, policy))
    yield "<h2>Fits</h2>"
    if not real:
        yield "<p>None yet.</p>"
    for books in real:
        yield from _fit(books)
    # At most one of the books belongs to no fit.
    for books in fits:
        if not books.fit:
            yield "<h2>Before any fit</h2>"
            yield _questions(books)
            yield _refusals(books)


def _budget_rows(audit: Audit, policy: Policy) -> Iterable[Sequence[str]]:
    for data, words, used, limit in audit_text.tell_budgets(audit, policy):
        share = min(used / limit, 1.0) if limit else 0.0
        bar = f"<meter value='{share:.3f}' high='0.8'>{share:.0%}</meter>" if limit else ""
        shown = "half of the rows" if limit is None else f"{limit:,.0f}"
        yield escape(data), escape(words), f"{used:,.1f}".removesuffix(".0"), shown, bar


def _fit(books: audit_text.FitBooks) -> Iterable[str]:
    yield f"<h3>Fit {escape(books.fit)}</h3>"
    yield f"<p class='soft'>{escape(books.first)} to {escape(books.last)}</p>"
    if books.about:
        yield f"<p>{escape(books.about.partition(': ')[2] or books.about)}</p>"
    yield _questions(books)
    if books.splits:
        listed = ", ".join(map(escape, books.splits))
        yield f"<p>Splits of the rows: {listed}; the site drew them with its own secret.</p>"
    if books.views:
        yield f"<p>Views of the records, centred and scaled: {len(books.views)}.</p>"
    yield _refusals(books)


def _questions(books: audit_text.FitBooks) -> str:
    rows = [
        (escape(a.question), escape(a.reveals), f"{a.times:,}", f"{a.numbers:,}", f"{a.payload:,}")
        for a in books.asked.values()
    ]
    return _table(("question", "what it revealed", "times", "numbers", "bytes"), rows)


def _refusals(books: audit_text.FitBooks) -> str:
    told = books.refused.items()
    rows = [(escape(question), escape(why), f"{times:,}") for (question, why), times in told]
    return _table(("refused", "why (this stays here)", "times"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or nothing where it has no rows; from the third on columns are numbers."""
    cells = list(rows)
    return f'<div class="wide">{html.table(head, cells)}</div>' if cells else ""
