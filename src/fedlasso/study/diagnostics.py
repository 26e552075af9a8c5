"""Whether a study's numbers hold: what is finished, and what met its tolerance."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from fedlasso.study.store import Store


def diagnose(store: Store) -> str:
    """Lines a reader can check: what is finished, and what met its tolerance."""
    tasks = store.tasks()
    parts = store.parts()
    failures = store.failures()
    lines = [f"replicates: {sum(t in parts for t in tasks)} of {len(tasks)} finished"]
    if failures:
        lines[0] += f", {len(failures)} failed"
    if parts:
        tables = store.tables(["reference", "penalty"])
        references = tables["reference"]
        penalties = tables["penalty"]
        lines += _met("pooled references at stationarity <= 1e-9", references, "stationarity")
        lines += _met("local penalty paths at relative gap <= 1e-10", penalties, "worst_gap")
    return "\n".join(lines)


def _met(what: str, rows: pd.DataFrame, worst: str) -> list[str]:
    if rows.empty:
        return []
    missed = rows[~rows["met"].astype(bool)]
    line = f"{what}: {len(rows) - len(missed)} of {len(rows)} (worst {rows[worst].max():.1e})"
    return [line] + [f"  not met: {row.scenario} {row.replicate}" for row in missed.itertuples()]
