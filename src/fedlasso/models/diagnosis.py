"""What averaging does on some sites, as a page and in words."""

from fedlasso.fitting.examination.averaging_diagnosis import Diagnosis
from fedlasso.html import bullets, page, section, text_table
from fedlasso.models.charts import ChartLine, bar_chart, line_chart
from fedlasso.models.numbers import percent
from fedlasso.models.text_warnings import some_of


def describe_diagnosis(found: Diagnosis) -> list[str]:
    """The findings, in words."""
    first, *_, last = found.limits
    active = int((found.pooled != 0).sum())
    mine = ", ".join(f"{site} {int((b != 0).sum())}" for site, b in found.alone.items())
    lonely = found.lonely.items()
    return [
        f"penalty {found.lam:.4g}; the pooled Lasso has {active} active columns",
        f"limit of averaging: {percent(first.above)} above the best objective with "
        f"{_epochs(first.epochs)}, {percent(last.above)} with {last.epochs}",
        f"active columns of that limit: {first.active} with {_epochs(first.epochs)}, "
        f"{last.active} with {last.epochs}, of which {last.extra} the pooled Lasso leaves out",
        f"active at each site alone: {mine}; at any site: {found.union}",
        *(f"only {site} selects {some_of(names, 8)}" for site, names in lonely if names),
    ]


def draw_diagnosis(found: Diagnosis) -> str:
    """The same as a page with pictures."""
    limits = found.limits
    epochs = [float(limit.epochs) for limit in limits]
    gaps = [100 * max(limit.above, 1e-12) for limit in limits]
    pooled = float((found.pooled != 0).sum())
    averaging = ChartLine(epochs, gaps, "averaging", 1, dots=True)
    moves = line_chart([averaging], "local epochs per round", "% above the best objective")
    lines = [
        ChartLine(epochs, [float(limit.active) for limit in limits], "averaging", 1, dots=True),
        ChartLine(epochs, [pooled] * len(epochs), "pooled", 0),
        ChartLine(epochs, [float(found.union)] * len(epochs), "any site", 7),
    ]
    grows = line_chart(lines, "local epochs per round", "active columns", legend=True)
    counts = {site: len(names) for site, names in found.lonely.items()}
    lonely = bar_chart([(site, float(count), str(count)) for site, count in counts.items()])
    word = "At the common penalty; each would enter an average on the word of one site."
    if not any(counts.values()):
        lonely = ""
        word = "None: at the common penalty, each column that a site selects is another's as well."
    rows = [
        [_epochs(one.epochs), f"{one.rounds}", percent(one.above), f"{one.active}", f"{one.extra}"]
        for one in limits
    ]
    head = ["averaging with", "rounds", "above the best objective", "active"]
    limits_table = text_table([*head, "not in the pooled Lasso"], rows)
    title = "Can these sites be averaged?"
    ends = "Where averaging ends, however many rounds it is given."
    wherever = "An average is active wherever any site's fit is."
    body = (
        f"<h1>{title}</h1><div class='lead'>{bullets(describe_diagnosis(found))}</div>"
        + section("Local epochs move the limit", ends, moves)
        + section("Averaging grows the support", wherever, grows + limits_table)
        + section("Columns that one site alone selects", word, lonely)
    )
    return page(title, "card", body)


def _epochs(count: int) -> str:
    return f"{count} local epoch{'s' * (count != 1)}"
