"""One page, "What left my site", for whoever answers for the records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from fedlasso.governance.audit import Audit
from fedlasso.governance.policy import Policy
from fedlasso.governance.telling import (
    FitBooks,
    check_ledgers,
    gather_fits,
    tell_budgets,
    tell_chain,
)

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6875; --line: #d8dee5;
  --paper: #ffffff; --good: #1d6b3f; --bad: #a32020; --bar: #2f6fab; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #a3b0bc;
  --line: #38434e; --paper: #161c22; --good: #6fce97; --bad: #ff8d85; --bar: #6fabdf; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: 0.2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 0.2rem; overflow-wrap: anywhere; }
p { margin: 0.4rem 0; } .soft { color: var(--soft); } .good { color: var(--good); }
.bad { color: var(--bad); font-weight: 600; } .wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.7rem 0.3rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: break-word; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td:first-child { overflow-wrap: normal; }
meter { width: 7rem; }
@media (max-width: 40rem) { .wide table { font-size: 0.85rem; } th, td { padding-right: 0.4rem; }
  .wide td:nth-child(2) { min-width: 9rem; } meter { width: 3rem; } }
@page { size: A4; margin: 14mm; }
@media print { tr, p { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""


def write_page(site: str, project: str, audit: Audit, policy: Policy) -> str:
    """Return the page as HTML that needs nothing else.

    Parameters
    ----------
    site, project : names
    audit : the site's book; a broken one is shown as broken, with nothing made of it
    policy : the rules whose limits are shown
    """
    whole, chain = tell_chain(audit)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>What left {escape(site)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>What left my site: {escape(site)}</h1>",
        f"<p class='soft'>Project {escape(project)}; written "
        f"{datetime.now(UTC).isoformat(timespec='minutes')} from the site's own audit.</p>",
        f"<p class='{'good' if whole else 'bad'}'>The audit: {escape(chain)}.</p>",
    ]
    if whole:
        parts += _body(audit, policy)
    return "\n".join([*parts, "</body></html>\n"])


def _body(audit: Audit, policy: Policy) -> Iterable[str]:
    fits = gather_fits(audit.entries())
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
    if words := check_ledgers(audit):
        yield f"<p class='bad'>{escape(words)}.</p>"
    yield _table(("data file", "", "used", "limit", ""), _budget_rows(audit, policy))
    yield "<h2>Fits</h2>"
    if not real:
        yield "<p>None yet.</p>"
    for books in real:
        yield from _fit(books)
    door = [books for books in fits if not books.fit]
    if door:
        yield "<h2>Before any fit</h2>"
        for books in door:
            yield _questions(books)
            yield _refusals(books)


def _budget_rows(audit: Audit, policy: Policy) -> Iterable[Sequence[str]]:
    for data, words, used, limit in tell_budgets(audit, policy):
        bar = ""
        if limit:
            share = min(used / limit, 1.0)
            bar = f"<meter value='{share:.3f}' high='0.8'>{share:.0%}</meter>"
        shown = "half of the rows" if limit is None else f"{limit:,.0f}"
        yield escape(data), escape(words), f"{used:,.1f}".removesuffix(".0"), shown, bar


def _fit(books: FitBooks) -> Iterable[str]:
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


def _questions(books: FitBooks) -> str:
    rows = [
        (escape(a.question), escape(a.reveals), f"{a.times:,}", f"{a.numbers:,}", f"{a.payload:,}")
        for a in books.asked.values()
    ]
    return _table(("question", "what it revealed", "times", "numbers", "bytes"), rows)


def _refusals(books: FitBooks) -> str:
    rows = [
        (escape(question), escape(why), f"{times:,}")
        for (question, why), times in books.refused.items()
    ]
    return _table(("refused", "why (this stays here)", "times"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or nothing where it has no rows; from the third on columns are numbers."""
    body = "".join(
        f"<tr>{''.join(_cell('td', at, text) for at, text in enumerate(row))}</tr>" for row in rows
    )
    if not body:
        return ""
    top = "".join(_cell("th", at, text) for at, text in enumerate(head))
    return f"<div class='wide'><table><tr>{top}</tr>{body}</table></div>"


def _cell(tag: str, at: int, text: str) -> str:
    kind = " class='number'" if at >= 2 else ""
    return f"<{tag}{kind}>{text}</{tag}>"
