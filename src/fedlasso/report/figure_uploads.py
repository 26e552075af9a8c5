"""Figure "uploads": how near to the pooled optimum each procedure gets for what it uploads."""

from __future__ import annotations

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

from fedlasso.report.figures import WIDTH, Figure, label_ends, look
from fedlasso.report.means import means
from fedlasso.report.records import Results
from fedlasso.report.style import colours, label, markers, title

FLOOR = 1e-16  # a gap below rounding is drawn at rounding


def upload_figure(results: Results) -> Figure | None:
    """Mean relative gap against mean uploads: one line a method, at its best epoch count."""
    if not {"upload_bytes", "relative_gap"} <= set(results.outcome.columns):
        return None
    scenarios = results.values("scenario")
    scenario = "baseline" if "baseline" in scenarios else scenarios[0]
    fixed = {a: v for a, v in results.primary.items() if a != "budget"}
    rows = results.at(scenario=scenario, **fixed)
    table = means(results, rows, ["relative_gap", "upload_bytes"])
    methods = list(dict.fromkeys(table["method"]))
    tints, shapes = colours(methods), markers(methods)
    with look():
        canvas, axes = plt.subplots(figsize=(WIDTH * 0.8, 2.2 + 0.12 * len(methods)))
        ends = []
        for method in methods:
            own = _best(table[table["method"] == method]).sort_values("upload_bytes")
            x, y = own["upload_bytes"] / 1024, own["relative_gap"].clip(lower=FLOOR)
            axes.plot(x, y, color=tints[method], marker=shapes[method])
            ends.append((float(y.iloc[-1]), _name(method, own), tints[method], float(x.iloc[-1])))
        axes.set(xscale="log", yscale="log", xlabel="mean uploads, KiB", ylabel="mean relative gap")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.08, y=0.12)
        canvas.canvas.draw()
        label_ends(axes, ends, gap=0.075)
    at = ", ".join(title(a, v) for a, v in fixed.items())
    caption = (
        f"Distance to the pooled optimum against what is uploaded, {label('scenario', scenario)} "
        f"scenario{', ' + at if at else ''}; tuning included. Each method at the epoch count "
        "(in brackets) with its smallest gap at its largest budget. A small gap says that the "
        "pooled Lasso was reached, not that it selects or predicts well."
    )
    return Figure("uploads", "Objective gap against uploads", caption, canvas)


def _best(own: pd.DataFrame) -> pd.DataFrame:
    if "epochs" not in own:
        return own
    last = own if "budget" not in own else own[own["budget"] == own["budget"].max()]
    return own[own["epochs"] == last.loc[last["relative_gap"].idxmin(), "epochs"]]


def _name(method: str, own: pd.DataFrame) -> str:
    return f"{method} (E = {own['epochs'].iloc[0]})" if "epochs" in own else method
