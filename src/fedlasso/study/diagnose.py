"""Whether a study's numbers hold: what is finished, and what met its tolerance."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from fedlasso.study.store import Store


def diagnose(store: Store) -> str:
    """Lines a reader can check: what is finished, and what met its tolerance."""
    manifest = store.manifest()
    tasks = [(s, r) for s in manifest.scenarios for r in range(manifest.replicates)]
    parts = store.parts()
    failures = store.failures()
    lines = [f"replicates: {sum(t in parts for t in tasks)} of {len(tasks)} finished"]
    if failures:
        lines[0] += f", {len(failures)} failed"
    if parts:
        tables = store.tables(["reference", "penalty"])
        exact = "pooled Lasso fits that are exact (stationarity <= 1e-9)"
        lines += _met(exact, tables["reference"], "stationarity")
        exact = "penalty paths of sites that are exact (gap <= 1e-10)"
        lines += _met(exact, tables["penalty"], "worst_gap")
    return "\n".join(lines)


def _met(what: str, rows: pd.DataFrame, worst: str) -> list[str]:
    if rows.empty:
        return []
    missed = rows[~rows["met"].astype(bool)]
    line = f"{what}: {len(rows) - len(missed)} of {len(rows)} (worst {rows[worst].max():.1e})"
    return [line] + [f"  not met: {row.scenario} {row.replicate}" for row in missed.itertuples()]
