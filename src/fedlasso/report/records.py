"""What a results folder holds, read once: rows, provenance, and what is missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fedlasso.errors import FedLassoError
from fedlasso.study import Store
from fedlasso.study.manifest import Manifest
from fedlasso.study.record_columns import RECORDS, axes, known


@dataclass(frozen=True, eq=False)
class Results:
    """Everything a report reads; nothing is computed again."""

    manifest: Manifest
    outcome: pd.DataFrame
    candidate: pd.DataFrame
    reference: pd.DataFrame
    penalty: pd.DataFrame
    trace: pd.DataFrame
    progress: pd.DataFrame
    failures: dict[tuple[str, int], str]

    @cached_property
    def axes(self) -> list[str]:
        """What tells one cell from another, beside the replicate."""
        return known("axis", self.outcome)

    @property
    def on_real_data(self) -> bool:
        """Whether the records are about data sets, and not about simulated scenarios."""
        return "split" in self.axes

    @property
    def order(self) -> list[str]:
        """The axes as cells are sorted by them: scenario, what is fixed, then what is compared."""
        first = ["scenario", *self.primary]
        return first + [axis for axis in self.axes if axis not in first]

    @cached_property
    def metrics(self) -> list[str]:
        """Outcomes that were measured."""
        return known("metric", self.outcome)

    def measured(self, *metrics: str) -> list[str]:
        """Those of some outcomes that were measured."""
        return [metric for metric in metrics if metric in self.metrics]

    @property
    def several_epochs(self) -> bool:
        """Whether some method was run with more than one number of local epochs."""
        return len([number for number in self.values("epochs") if number > 0]) > 1

    def values(self, axis: str) -> list[Any]:
        """Values of an axis in the order of the records (numbers: in their own order)."""
        return list(self._values.get(axis, []))

    @cached_property
    def _values(self) -> dict[str, list[Any]]:
        found = ((axis, self.outcome[axis].unique().tolist()) for axis in self.axes)
        return {axis: sorted(own) if axes()[axis].number else own for axis, own in found}

    @property
    def first_scenario(self) -> str:
        """The scenario that is shown where only one is."""
        scenarios: list[str] = self.values("scenario")
        return "baseline" if "baseline" in scenarios else scenarios[0]

    @cached_property
    def primary(self) -> dict[str, Any]:
        """The paper's cell: largest budget, joint limits, minimum validation error."""
        chosen = {}
        for name, axis in axes().items():
            if (values := self.values(name)) and axis.usual is not None:
                usual = values[-1] if axis.number else axis.usual
                chosen[name] = usual if usual in values else values[0]
        return chosen

    def usual(self, table: pd.DataFrame) -> pd.DataFrame:
        """Rows of the paper's cell in a table of every cell, without the axes that it fixes."""
        return _select(table, self.primary).drop(columns=list(self.primary), errors="ignore")

    @cached_property
    def arms(self) -> list[str]:
        """Axes of which a figure shows one value at a time and a table prints all."""
        return [a for a in self.axes if axes()[a].control and a not in ("scenario", *self.primary)]

    def at(self, **where: Any) -> pd.DataFrame:
        """Outcome rows with these values; an axis this study does not have is no condition."""
        return _select(self.outcome, where)

    @property
    def missing(self) -> list[str]:
        """What the manifest asks for and the folder does not hold, one line per scenario."""
        lines = []
        for row in self.progress.itertuples():
            if row.finished < row.asked:
                failed = f", {row.failed} failed" if row.failed else ""
                lines.append(f"{row.scenario}: {row.finished} of {row.asked} replicates{failed}")
        return lines

    @property
    def completeness(self) -> str:
        """One sentence that heads every page."""
        asked = int(self.progress["asked"].sum())
        finished = int(self.progress["finished"].sum())
        if finished == asked:
            kind = "data set" if self.on_real_data else "scenario"
            return (
                f"Complete: {'the' if asked == 1 else 'all'} {count_of(asked, 'replicate')} of "
                f"{count_of(len(self.progress), kind)}."
            )
        return (
            f"Incomplete: {finished} of {asked} replicates are finished; means and standard "
            "errors below use those alone."
        )


def count_of(number: int, word: str, most: int | None = None) -> str:
    """A number of things, or from how many to how many.

    Examples
    --------
    >>> from fedlasso.report.records import count_of
    >>> count_of(1, "replicate"), count_of(2, "replicate"), count_of(1, "replicate", 3)
    ('1 replicate', '2 replicates', '1 to 3 replicates')
    """
    if most is not None and most > number:
        return f"{number:,} to {most:,} {word}s"
    return f"{number:,} {word}{'s' * (number != 1)}"


def read_results(folder: Path) -> Results:
    """Read a results folder; an empty or foreign one is one clear error."""
    store = Store(folder)
    manifest = store.manifest()
    tables = store.tables(RECORDS)
    tables["outcome"] = _fitted_only(_whole_axes(tables["outcome"]))
    if tables["outcome"].empty:
        raise FedLassoError(
            f"{folder} has no finished replicate yet; see `fedlasso study status {folder}`"
        )
    parts = store.parts()
    failures = store.failures()
    progress = pd.DataFrame(
        {
            "scenario": name,
            "asked": manifest.replicates,
            "finished": sum((name, number) in parts for number in range(manifest.replicates)),
            "failed": sum(task[0] == name for task in failures),
        }
        for name in manifest.scenarios
    )
    return Results(manifest, progress=progress, failures=failures, **tables)


def _select(table: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    for axis, value in where.items():
        if axis in table:
            table = table[table[axis] == value]
    return table


def _fitted_only(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows where a fit without a single round has no outcome: its budget did not pay for one.

    The record holds the empty model that such a procedure begins with, which is not what it fits.
    """
    if "rounds" not in rows:
        return rows
    metrics = known("metric", rows)
    unpaid = rows["rounds"] == 0
    return rows.assign(**rows[metrics].astype(float).mask(unpaid)) if unpaid.any() else rows


def _whole_axes(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows where every axis has a value: one that only some methods have is 0 or a dash for others.

    An axis that is not needed to tell the rows apart is no axis.
    """
    rows = rows.copy()
    for axis in [name for name in known("axis", rows) if rows[name].isna().any()]:
        others = [name for name in (*known("axis", rows), "replicate") if name != axis]
        if not rows.duplicated(others).any():
            rows = rows.drop(columns=axis)
        elif pd.api.types.is_numeric_dtype(rows[axis]):
            rows[axis] = rows[axis].fillna(0).astype(int)
        else:
            rows[axis] = rows[axis].fillna("–")
    return rows
