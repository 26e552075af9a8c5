"""Figure "epoch contrasts": what going from the fewest to the most epochs does to F1."""

from __future__ import annotations

from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator

from fedlasso.report.figures import INK, WIDTH, Figure, look
from fedlasso.report.records import Results
from fedlasso.report.style import colours, label, markers, title
from fedlasso.study import contrast


def contrast_figure(results: Results) -> Figure | None:
    """Paired F1 change in every scenario; one column a method."""
    epochs, methods = results.values("epochs"), results.values("method")
    if len(epochs) < 2 or "f1" not in results.metrics:
        return None
    rows = results.at(**results.primary)[[*results.axes, "replicate", "f1"]]
    table = contrast(rows, "epochs", epochs[0], epochs[-1], ["f1"])
    scenarios = [s for s in results.values("scenario") if s in set(table["scenario"])]
    tints, shapes = colours(methods), markers(methods)
    with look():
        canvas, grid = plt.subplots(
            1, len(methods), figsize=(WIDTH, 0.9 + 0.2 * len(scenarios)),
            sharex=True, sharey=True, squeeze=False,
        )  # fmt: skip
        for axes, method in zip(grid[0], methods, strict=True):
            own = table[table["method"] == method]
            y = [scenarios.index(s) for s in own["scenario"]]
            axes.axvline(0, color=INK, lw=0.8)
            axes.errorbar(
                own["mean"], y, xerr=1.96 * own["se"].fillna(0), fmt=shapes[method],
                color=tints[method], elinewidth=1.1, capsize=2, markersize=3,
            )  # fmt: skip
            axes.set_title(method, color=tints[method], fontweight="bold")
            axes.grid(axis="y", visible=True)
            axes.tick_params(axis="y", length=0)
            axes.xaxis.set_major_locator(MaxNLocator(3))
        grid[0][0].set_yticks(range(len(scenarios)), [label("scenario", s) for s in scenarios])
        grid[0][0].set_ylim(len(scenarios) - 0.4, -0.6)
        canvas.supxlabel(f"change in F1, E = {epochs[-1]} minus E = {epochs[0]}", fontsize=8)
    at = ", ".join(title(a, v) for a, v in results.primary.items())
    caption = (
        f"Paired change in F1 from E = {epochs[0]} to E = {epochs[-1]}; {at}. Differences are "
        "taken within replicate; bars are 1.96 Monte Carlo standard errors either side. To the "
        "right of zero more local epochs select better on average; selection says nothing about "
        "prediction."
    )
    return Figure("contrasts", "Epoch contrasts", caption, canvas)
