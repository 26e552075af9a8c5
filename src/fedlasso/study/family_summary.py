"""Conclusions of the study of families: uploads to the pooled optimum, and means per method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedlasso.study.record_columns import display_name

if TYPE_CHECKING:
    import pandas as pd

# Methods that converge to the pooled optimum.
CONVERGENT = ("Newton", "FISTA")
# The number of uploads within which a fit should reach it.
FEW = 30
MEASURES = ("relative_gap", "f1", "active", "test_deviance", "upload_bytes", "round_trips")


def count_uploads(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per family, scenario and convergent method.

    Columns: replicates n, how many reached a relative gap of 1e-8, median and maximum uploads to
    it, the same until certified, and of round trips to it. A replicate that did not get there
    counts as infinite.
    """
    once = rows[(rows["budget"] == rows["budget"].max()) & rows["method"].isin(CONVERGENT)]
    # The records lack a column that no replicate reached.
    columns = ["uploads_needed", "uploads_certified", "trips_needed"]
    uploads = once.reindex(columns=columns).astype(float).fillna(np.inf)
    groups = once.assign(**uploads).groupby(["family", "scenario", "method"], sort=False)
    return groups.agg(
        n=("uploads_needed", "size"),
        reached=("uploads_needed", lambda own: int(np.isfinite(own).sum())),
        median=("uploads_needed", _median),
        worst=("uploads_needed", "max"),
        certified_median=("uploads_certified", _median),
        certified_worst=("uploads_certified", "max"),
        trips_median=("trips_needed", _median),
        trips_worst=("trips_needed", "max"),
    ).reset_index()


def _median(uploads: pd.Series[float]) -> float:
    """The lower median: a mean of two would be undefined if one is infinite."""
    return float(np.sort(uploads)[(len(uploads) - 1) // 2])


def count_text(median: float, worst: float) -> str:
    """Return "median (worst)", with a dash for what was not reached."""
    return f"{_number(median)} ({_number(worst)})"


def _number(uploads: float) -> str:
    return "–" if np.isinf(uploads) else f"{uploads:.3g}"


def family_conclusions(rows: pd.DataFrame) -> list[str]:
    """Return one sentence per family: how often Newton and FISTA needed few uploads."""
    lines = []
    once = rows[rows["budget"] == rows["budget"].max()]
    for family, own in once.groupby("family", sort=False):
        parts = []
        for method in CONVERGENT:
            needed = own.loc[own["method"] == method, "uploads_needed"].astype(float).fillna(np.inf)
            if len(needed):
                parts.append(
                    f"{method} in {(needed <= FEW).sum()} of {len(needed)} replicates (median "
                    f"{_number(_median(needed))}, maximum {_number(needed.max())} uploads)"
                )
        if parts:
            lines.append(
                f"{display_name('family', family)}: within {FEW} uploads, a relative gap of 1e−8 "
                f"to the pooled optimum is reached by {' and by '.join(parts)}."
            )
    return lines


def family_lines(rows: pd.DataFrame) -> list[str]:
    """Return the conclusions, then uploads by scenario and means by method for every family."""
    lines = family_conclusions(rows)
    counts = count_uploads(rows)
    last = rows[rows["budget"] == rows["budget"].max()]
    for family, own in last.groupby("family", sort=False):
        name = display_name("family", family)
        if len(counts):
            what = "uploads to a relative gap of 1e-8, until certified, and round trips to that gap"
            lines += ["", f"{name}: {what}"]
            lines += _upload_lines(counts[counts["family"] == family])
        means = own.assign(epochs=own["epochs"].fillna(0).astype(int))
        columns = [measure for measure in MEASURES if measure in own]
        table = means.groupby(["method", "epochs"], sort=False)[columns].mean()
        uploads = last["budget"].max()
        lines += ["", f"{name}: means over scenarios and replicates, {uploads} uploads"]
        lines += table.to_string(float_format="{:.4g}".format).splitlines()
    return [*lines, ""]


def _upload_lines(here: pd.DataFrame) -> list[str]:
    text = [
        f"{count_text(row.median, row.worst)}, "
        f"{count_text(row.certified_median, row.certified_worst)}, "
        f"{count_text(row.trips_median, row.trips_worst)}"
        for row in here.itertuples()
    ]
    table = here.assign(text=text).pivot(index="scenario", columns="method", values="text")
    shown: str = table.loc[here["scenario"].unique(), here["method"].unique()].to_string()
    return shown.splitlines()
