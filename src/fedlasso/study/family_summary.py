"""What the study of families found: uploads to the pooled optimum, and every method beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedlasso.study.record_columns import display_name

if TYPE_CHECKING:
    import pandas as pd

# Methods that go to the pooled optimum.
ARRIVING = ("Newton", "FISTA")
# A fit is to need no more uploads than this.
FEW = 30
MEASURES = ("relative_gap", "f1", "active", "test_deviance", "upload_bytes")


def count_uploads(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per family, scenario and method that goes to the optimum.

    Median and largest number of uploads to a relative gap of 1e-8, the same until certified, how
    many replicates got there, and how many there are. A replicate that did not get there counts as
    infinitely many.
    """
    once = rows[(rows["budget"] == rows["budget"].max()) & rows["method"].isin(ARRIVING)]
    # What no replicate reached is no column of the records.
    columns = ["uploads_needed", "uploads_certified"]
    uploads = once.reindex(columns=columns).astype(float).fillna(np.inf)
    groups = once.assign(**uploads).groupby(["family", "scenario", "method"], sort=False)
    return groups.agg(
        n=("uploads_needed", "size"),
        reached=("uploads_needed", lambda own: int(np.isfinite(own).sum())),
        median=("uploads_needed", _middle),
        worst=("uploads_needed", "max"),
        certified_median=("uploads_certified", _middle),
        certified_worst=("uploads_certified", "max"),
    ).reset_index()


def _middle(uploads: pd.Series[float]) -> float:
    """The median, where half of the infinite ones must not make it undefined."""
    return float(np.sort(uploads)[(len(uploads) - 1) // 2])


def tell_count(median: float, worst: float) -> str:
    """Median (worst) as text; what was not reached is a dash."""
    return f"{_tell(median)} ({_tell(worst)})"


def _tell(uploads: float) -> str:
    return "–" if np.isinf(uploads) else f"{uploads:.3g}"


def find_promises(rows: pd.DataFrame) -> list[str]:
    """One sentence per family: how often Newton needed few uploads, with FISTA beside it."""
    lines = []
    once = rows[rows["budget"] == rows["budget"].max()]
    for family, own in once.groupby("family", sort=False):
        parts = []
        for method in ARRIVING:
            needed = own.loc[own["method"] == method, "uploads_needed"].astype(float).fillna(np.inf)
            if len(needed):
                parts.append(
                    f"{method} in {(needed <= FEW).sum()} of {len(needed)} replicates (uploads "
                    f"needed, median and worst: {_tell(_middle(needed))} and {_tell(needed.max())})"
                )
        if parts:
            lines.append(
                f"{display_name('family', family)}: a relative gap of 1e−8 to the pooled optimum "
                f"is reached within {FEW} uploads by {' and by '.join(parts)}."
            )
    return lines


def tell_families(rows: pd.DataFrame) -> list[str]:
    """Lines: the promise, uploads by scenario, and means of every method, family by family."""
    lines = find_promises(rows)
    counts = count_uploads(rows)
    last = rows[rows["budget"] == rows["budget"].max()]
    for family, own in last.groupby("family", sort=False):
        name = display_name("family", family)
        if len(counts):
            lines += ["", f"{name}: uploads to a relative gap of 1e-8, and until certified"]
            lines += _tell_uploads(counts[counts["family"] == family])
        means = own.assign(epochs=own["epochs"].fillna(0).astype(int))
        columns = [measure for measure in MEASURES if measure in own]
        table = means.groupby(["method", "epochs"], sort=False)[columns].mean()
        uploads = last["budget"].max()
        lines += ["", f"{name}: means over scenarios and replicates, {uploads} uploads"]
        lines += table.to_string(float_format="{:.4g}".format).splitlines()
    return [*lines, ""]


def _tell_uploads(here: pd.DataFrame) -> list[str]:
    """Lines of a table of one family: scenarios down, methods across."""
    text = [
        f"{tell_count(row.median, row.worst)}, "
        f"{tell_count(row.certified_median, row.certified_worst)}"
        for row in here.itertuples()
    ]
    table = here.assign(text=text).pivot(index="scenario", columns="method", values="text")
    shown: str = table.loc[here["scenario"].unique(), here["method"].unique()].to_string()
    return shown.splitlines()
