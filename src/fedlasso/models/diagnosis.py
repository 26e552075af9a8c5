"""The limit of federated averaging on given sites, as a page and as text."""

from typing import Any

from fedlasso.fitting.examination.averaging_diagnosis import Diagnosis
from fedlasso.html import bullets, page, section, text_table
from fedlasso.models.numbers import percent, some_of
from fedlasso.models.plots import COLOURS, GREY
from fedlasso.models.svg import draw_svg


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
    counts = [[site, str(len(names))] for site, names in found.lonely.items()]
    lonely = text_table(["site", "columns"], counts)
    note = "At the common penalty; one site alone would bring each of them into an average."
    if not any(found.lonely.values()):
        lonely = ""
        note = "None: at the common penalty, each column that a site selects is also another's."
    moves = draw_svg(lambda ax: _plot_gaps(found, ax), "Excess objective by local epochs")
    grows = draw_svg(lambda ax: _plot_active(found, ax), "Active columns by local epochs")
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


def _plot_gaps(found: Diagnosis, ax: Any) -> None:
    epochs = [limit.epochs for limit in found.limits]
    ax.plot(epochs, [100 * limit.above for limit in found.limits], "o-", color=COLOURS[1], ms=4)
    ax.set_ylabel("% above the best objective")
    _epochs_axis(ax, epochs)


def _plot_active(found: Diagnosis, ax: Any) -> None:
    epochs = [limit.epochs for limit in found.limits]
    ax.plot(epochs, [limit.active for limit in found.limits], "o-", color=COLOURS[1], ms=4)
    ends = {"pooled": (int((found.pooled != 0).sum()), COLOURS[0]), "any site": (found.union, GREY)}
    ends["averaging"] = (found.limits[-1].active, COLOURS[1])
    for name, (value, colour) in ends.items():
        if name != "averaging":
            ax.axhline(value, color=colour, lw=1.2)
        place: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        ax.annotate(name, (1, value), (4, 0), color=colour, va="center", fontsize=9, **place)
    ax.set_ylabel("active columns")
    ax.yaxis.get_major_locator().set_params(integer=True)
    _epochs_axis(ax, epochs)


def _epochs_axis(ax: Any, epochs: list[int]) -> None:
    ax.set_xscale("log")
    ax.set_xticks(epochs, [str(count) for count in epochs])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("local epochs per round")


def _epochs(count: int) -> str:
    return f"{count} local epoch{'s' * (count != 1)}"
