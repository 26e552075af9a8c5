"""What a results folder holds, read once: rows, provenance, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fedlasso.errors import FedLassoError
from fedlasso.study import Store
from fedlasso.study.summary import CELL, METRICS

KINDS = ("outcome", "candidate", "reference", "penalty")
PREFERRED = {"panel": "joint", "rule": "min"}


@dataclass(frozen=True, eq=False)
class Results:
    """Everything a report reads; nothing is computed again."""

    folder: Path
    manifest: dict[str, Any]
    outcome: pd.DataFrame
    candidate: pd.DataFrame
    reference: pd.DataFrame
    penalty: pd.DataFrame
    progress: pd.DataFrame
    failures: dict[tuple[str, int], str]

    @property
    def study(self) -> str:
        """Name of the study."""
        return str(self.manifest["study"].get("name", "unnamed"))

    @cached_property
    def axes(self) -> list[str]:
        """What tells one cell from another, beside the replicate."""
        return [name for name in CELL if name in self.outcome and self.outcome[name].notna().all()]

    @cached_property
    def metrics(self) -> list[str]:
        """Outcomes that were measured."""
        return [name for name in METRICS if name in self.outcome]

    def values(self, axis: str) -> list[Any]:
        """Values of an axis in the order of the records (numbers: in their own order)."""
        found = list(dict.fromkeys(self.outcome[axis].tolist())) if axis in self.axes else []
        return sorted(found) if axis in ("epochs", "budget") else found

    @cached_property
    def primary(self) -> dict[str, Any]:
        """The paper's cell: largest budget, joint limits, minimum validation error."""
        chosen = {}
        for axis in ("budget", "panel", "rule"):
            if values := self.values(axis):
                preferred = PREFERRED.get(axis, values[-1])
                chosen[axis] = preferred if preferred in values else values[0]
        return chosen

    def at(self, **where: Any) -> pd.DataFrame:
        """Outcome rows with these values; an axis this study does not have is no condition."""
        rows = self.outcome
        for axis, value in where.items():
            if axis in self.axes:
                rows = rows[rows[axis] == value]
        return rows

    @property
    def missing(self) -> list[str]:
        """What the manifest asks for and the folder does not hold, one line a scenario."""
        lines = []
        for row in self.progress.itertuples():
            if row.finished < row.asked:
                failed = f", {row.failed} failed" if row.failed else ""
                lines.append(f"{row.scenario}: {row.finished} of {row.asked} replicates{failed}")
        return lines

    @property
    def completeness(self) -> str:
        """One sentence that heads every page."""
        asked, finished = int(self.progress["asked"].sum()), int(self.progress["finished"].sum())
        if finished == asked:
            return f"Complete: all {asked} replicates of {len(self.progress)} scenarios."
        return (
            f"Incomplete: {finished} of {asked} replicates are finished; means and standard "
            "errors below use those alone."
        )


def read_results(folder: Path) -> Results:
    """Read a results folder; an empty or foreign one is one clear error."""
    store = Store(folder)
    manifest = store.manifest()
    if "scenarios" not in manifest or "replicates" not in manifest:
        raise FedLassoError(f"{store.manifest_file} is not the manifest of a study")
    tables = store.tables(KINDS)
    if tables["outcome"].empty:
        raise FedLassoError(
            f"{folder} has no finished replicate yet; see `fedlasso study status {folder}`"
        )
    asked, parts, failures = store.tasks(), store.parts(), store.failures()
    progress = pd.DataFrame(
        {
            "scenario": name,
            "asked": sum(task[0] == name for task in asked),
            "finished": sum(task[0] == name for task in asked if task in parts),
            "failed": sum(task[0] == name for task in failures),
        }
        for name in manifest["scenarios"]
    )
    return Results(folder, manifest, progress=progress, failures=failures, **tables)
