"""Figure "theory": the limiting gap against E, and the best epoch count against r."""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt

from fedlasso.report.figures import FAINT, INK, WIDTH, Figure, look
from fedlasso.report.records import Results
from fedlasso.report.style import PLAIN
from fedlasso.theory import CorrelatedPair

PAIR = CorrelatedPair(r=0.8, a=2, d=1)
EPOCHS = tuple(range(1, 11))


def theory_figure(results: Results | None = None) -> Figure:
    """Exact formulas only; the records are not looked at."""
    with look():
        canvas, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.5))
        colour = PLAIN.colour
        real = np.linspace(1, EPOCHS[-1], 400)
        left.plot(real, [PAIR.gap(e) for e in real], color=colour, lw=0.9, alpha=0.6)
        left.plot(EPOCHS, [PAIR.gap(e) for e in EPOCHS], "o", color=colour)
        floor = PAIR.d**2 * PAIR.r**4 / (32 * (4 - PAIR.r**2))
        left.axhline(floor, color=INK, lw=0.8, ls=(0, (4, 3)))
        left.text(EPOCHS[-1], floor * 0.9, "no E goes below this", ha="right", va="top",
                  fontsize=7.5, color=INK)  # fmt: skip
        best = PAIR.best_whole_epochs
        left.annotate(
            f"smallest at E = {best}", (best, PAIR.gap(best)), (best + 1.4, PAIR.gap(best) * 1.25),
            fontsize=7.5, va="center", color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkB": 4},
        )  # fmt: skip
        left.set(xlabel="local epochs E", ylabel="limiting objective gap", xticks=EPOCHS)
        left.set_ylim(0, None)
        left.set_title(f"Limiting gap (r = {PAIR.r}, a = {PAIR.a}, d = {PAIR.d})")

        r = np.linspace(0.01, 0.98, 400)
        right.plot(r, [CorrelatedPair(v, PAIR.a, PAIR.d).best_epochs for v in r], color=colour)
        right.axvline(PAIR.r, color=FAINT, lw=0.8, zorder=0)
        right.plot(PAIR.r, PAIR.best_epochs, "o", color=colour)
        right.annotate(
            f"r = {PAIR.r}: {PAIR.best_epochs:.2f}", (PAIR.r, PAIR.best_epochs), (-8, 6),
            textcoords="offset points", ha="right", fontsize=7.5, color=colour,
        )  # fmt: skip
        right.set(xlabel="correlation r at site 2", ylabel="minimising epoch count", xlim=(0, 1))
        right.set_ylim(1, None)
        right.set_title("Real epoch count with the smallest gap")
    caption = (
        "Exact calculations for the correlated two-site construction. Left: the limiting objective "
        f"gap at r = {PAIR.r}, a = {PAIR.a}, d = {PAIR.d}; dots are whole epoch counts. Right: the "
        "real epoch count that minimises it, against r. These are deterministic formulas, not "
        "simulation averages, and no rule for choosing E in other data."
    )
    return Figure("theory", "Theory", caption, canvas)
