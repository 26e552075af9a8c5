"""Figure "epoch contrasts": what going from the fewest to the most epochs does to F1."""

from __future__ import annotations

from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator

from fedlasso.report.figures import INK, WIDTH, Figure, look
from fedlasso.report.records import Results
from fedlasso.report.style import colours, markers, titles
from fedlasso.study import contrast


def contrast_figure(results: Results) -> Figure | None:
    """Paired F1 change in every scenario; one column a method."""
    epochs = [e for e in results.values("epochs") if e]
    if len(epochs) < 2 or "f1" not in results.metrics:
        return None
    rows = results.at(**results.primary)[[*results.axes, "replicate", "f1"]]
    table = contrast(rows, "epochs", epochs[0], epochs[-1], ["f1"])
    by = ["scenario", *results.arms]
    table["row"] = [
        titles(dict(zip(by, v, strict=True))) for v in table[by].itertuples(index=False)
    ]
    rows_shown = list(dict.fromkeys(table["row"]))
    everyone = results.values("method")
    methods = [m for m in everyone if m in set(table["method"])]
    tints, shapes = colours(everyone), markers(everyone)
    with look():
        canvas, grid = plt.subplots(
            1, len(methods), figsize=(WIDTH, 0.9 + 0.2 * len(rows_shown)),
            sharex=True, sharey=True, squeeze=False,
        )  # fmt: skip
        for axes, method in zip(grid[0], methods, strict=True):
            own = table[table["method"] == method]
            y = [rows_shown.index(row) for row in own["row"]]
            axes.axvline(0, color=INK, lw=0.8)
            axes.errorbar(
                own["mean"], y, xerr=1.96 * own["se"].fillna(0), fmt=shapes[method],
                color=tints[method], elinewidth=1.1, capsize=2, markersize=3,
            )  # fmt: skip
            axes.set_title(method, color=tints[method], fontweight="bold")
            axes.grid(axis="y", visible=True)
            axes.tick_params(axis="y", length=0)
            axes.xaxis.set_major_locator(MaxNLocator(3))
        grid[0][0].set_yticks(range(len(rows_shown)), rows_shown)
        grid[0][0].set_ylim(len(rows_shown) - 0.4, -0.6)
        canvas.supxlabel(f"change in F1, E = {epochs[-1]} minus E = {epochs[0]}", fontsize=8)
    caption = (
        f"Paired change in F1 from E = {epochs[0]} to E = {epochs[-1]}; {titles(results.primary)}. "
        "Differences are taken within replicate; bars are 1.96 Monte Carlo standard errors either "
        "side. To the right of zero more local epochs select better on average; selection says "
        "nothing about prediction."
    )
    return Figure("contrasts", "Epoch contrasts", caption, canvas)
