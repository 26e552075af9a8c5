"""The gap to the pooled optimum against uploads."""

from functools import lru_cache

import pandas as pd

from fedlasso.report.records import Results


@lru_cache(maxsize=1)
def follow_gaps(results: Results) -> pd.DataFrame | None:
    """Return one row per scenario, method, epoch count and number of uploads; None without gaps.

    ``uploads`` counts vectors of p numbers per site; ``gap`` is the median relative gap over
    replicates, ``low`` and ``high`` are its quartiles. Gaps come from traces if the study records
    them, else from outcomes at its budgets.
    """
    rows = results.trace if len(results.trace) else _at_budgets(results)
    if rows is None:
        return None
    if len(results.trace):
        rows = rows.assign(epochs=rows["epochs"].fillna(0).astype(int))
    keys = ("scenario", "method", "epochs", *results.arms, "uploads")
    by = [name for name in keys if name in rows]
    groups = rows.dropna(subset=["relative_gap"]).groupby(by, sort=False)["relative_gap"]
    levels = {"gap": 0.5, "low": 0.25, "high": 0.75}
    table = pd.DataFrame({name: groups.quantile(level) for name, level in levels.items()})
    return table.assign(n=groups.size()).reset_index()


def _at_budgets(results: Results) -> pd.DataFrame | None:
    if not {"upload_bytes", "relative_gap", "budget"} <= set(results.outcome.columns):
        return None
    rows = results.at(**{a: v for a, v in results.primary.items() if a != "budget"})
    scenarios = results.manifest.scenarios
    bytes_of = {name: 8 * each.p * len(each.sizes) for name, each in scenarios.items()}
    uploads = rows["upload_bytes"] / rows["scenario"].map(bytes_of)
    # Replicates of a cell may differ in a scalar or two.
    by = [axis for axis in results.axes if axis in rows]
    mean = uploads.groupby([rows[axis] for axis in by]).transform("mean")
    return rows.assign(uploads=mean.round(2), epochs=rows.get("epochs", 0))
