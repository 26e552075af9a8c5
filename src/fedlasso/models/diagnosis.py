"""The limit of federated averaging on given sites, as a page and as text."""

from fedlasso.fitting.examination.averaging_diagnosis import Diagnosis
from fedlasso.html import bullets, page, section, text_table
from fedlasso.models.charts import ChartLine, bar_chart, line_chart
from fedlasso.models.numbers import percent, some_of


def describe_diagnosis(found: Diagnosis) -> list[str]:
    """Return the findings as lines of text."""
    first, *_, last = found.limits
    active = int((found.pooled != 0).sum())
    counts = ", ".join(f"{site} {int((b != 0).sum())}" for site, b in found.alone.items())
    return [
        f"penalty {found.lam:.4g}; the pooled Lasso has {active} active columns",
        f"averaging converges to {percent(first.above)} above the best objective with "
        f"{_epochs(first.epochs)}, {percent(last.above)} with {last.epochs}",
        f"active columns there: {first.active} with {_epochs(first.epochs)}, "
        f"{last.active} with {last.epochs}, {last.extra} of them not in the pooled Lasso",
        f"active at each site alone: {counts}; at any site: {found.union}",
        *(f"only {site} selects {some_of(own, 8)}" for site, own in found.lonely.items() if own),
    ]


def draw_diagnosis(found: Diagnosis) -> str:
    """Return the findings as a page with charts."""
    limits = found.limits
    epochs = [float(limit.epochs) for limit in limits]
    gaps = [100 * max(limit.above, 1e-12) for limit in limits]
    pooled = float((found.pooled != 0).sum())
    x_title = "local epochs per round"
    averaging = ChartLine(epochs, gaps, "averaging", 1, dots=True)
    moves = line_chart([averaging], x_title, "% above the best objective")
    lines = [
        ChartLine(epochs, [float(limit.active) for limit in limits], "averaging", 1, dots=True),
        ChartLine(epochs, [pooled] * len(epochs), "pooled", 0),
        ChartLine(epochs, [float(found.union)] * len(epochs), "any site", 7),
    ]
    grows = line_chart(lines, x_title, "active columns", legend=True)
    counts = {site: len(names) for site, names in found.lonely.items()}
    lonely = bar_chart([(site, float(count), str(count)) for site, count in counts.items()])
    note = "At the common penalty; one site alone would bring each of them into an average."
    if not any(counts.values()):
        lonely = ""
        note = "None: at the common penalty, each column that a site selects is also another's."
    rows = [
        [_epochs(one.epochs), f"{one.rounds}", percent(one.above), f"{one.active}", f"{one.extra}"]
        for one in limits
    ]
    head = ["averaging with", "rounds", "above the optimum", "active", "not in the pooled Lasso"]
    title = "Can these sites be averaged?"
    limit_note = "Where averaging converges, whatever the number of rounds."
    support_note = "An average is active wherever any site's fit is."
    body = (
        f"<h1>{title}</h1><div class='lead'>{bullets(describe_diagnosis(found))}</div>"
        + section("Local epochs move the limit", limit_note, moves)
        + section("Averaging grows the support", support_note, grows + text_table(head, rows))
        + section("Columns that one site alone selects", note, lonely)
    )
    return page(title, "card", body)


def _epochs(count: int) -> str:
    return f"{count} local epoch{'s' * (count != 1)}"
