"""The contents of a results folder, read once: rows, provenance, and what is missing."""

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
    """Everything that a report reads."""

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
        """Columns that distinguish cells, besides the replicate."""
        return known("axis", self.outcome)

    @property
    def on_real_data(self) -> bool:
        """Whether the scenarios are real data sets."""
        return "split" in self.axes

    @property
    def order(self) -> list[str]:
        """The axes in sorting order: scenario, fixed axes, then compared ones."""
        first = ["scenario", *self.primary]
        return first + [axis for axis in self.axes if axis not in first]

    @cached_property
    def metrics(self) -> list[str]:
        return known("metric", self.outcome)

    def measured(self, *metrics: str) -> list[str]:
        """Return those of these metrics that were measured."""
        return [metric for metric in metrics if metric in self.metrics]

    @property
    def several_epochs(self) -> bool:
        """Whether some method was run with more than one number of local epochs."""
        return len([number for number in self.values("epochs") if number > 0]) > 1

    def values(self, axis: str) -> list[Any]:
        """Return the values of an axis in the order of the records; numbers are sorted."""
        return list(self._values.get(axis, []))

    @cached_property
    def _values(self) -> dict[str, list[Any]]:
        found = ((axis, self.outcome[axis].unique().tolist()) for axis in self.axes)
        return {axis: sorted(own) if axes()[axis].number else own for axis, own in found}

    @property
    def first_scenario(self) -> str:
        """The scenario shown if only one is: the baseline, else the first."""
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
        """Return the rows of the paper's cell, without the axes that it fixes."""
        return _select(table, self.primary).drop(columns=list(self.primary), errors="ignore")

    @cached_property
    def arms(self) -> list[str]:
        """Axes of which a figure shows one value at a time and a table shows all."""
        return [a for a in self.axes if axes()[a].control and a not in ("scenario", *self.primary)]

    def at(self, **where: Any) -> pd.DataFrame:
        """Return outcome rows with these values; axes that the study lacks are ignored."""
        return _select(self.outcome, where)

    @property
    def missing(self) -> list[str]:
        """Replicates that are requested but not finished, one line per scenario."""
        lines = []
        for row in self.progress.itertuples():
            if row.finished < row.requested:
                failed = f", {row.failed} failed" if row.failed else ""
                lines.append(
                    f"{row.scenario}: {row.finished} of {row.requested} replicates{failed}"
                )
        return lines

    @property
    def completeness(self) -> str:
        """The sentence at the top of every page."""
        requested = int(self.progress["requested"].sum())
        finished = int(self.progress["finished"].sum())
        if finished == requested:
            kind = count_of(len(self.progress), "data set" if self.on_real_data else "scenario")
            return f"Complete: {count_of(requested, 'replicate')} of {kind}."
        return (
            f"Incomplete: {finished} of {requested} replicates are finished; means and standard "
            "errors use those only."
        )


def count_of(number: int, word: str, most: int | None = None) -> str:
    """Return a count or range such as '1 replicate', '2 replicates' or '1 to 3 replicates'."""
    if most is not None and most > number:
        return f"{number:,} to {most:,} {word}s"
    return f"{number:,} {word}{'s' * (number != 1)}"


def read_results(folder: Path) -> Results:
    """Read a results folder that has at least one finished replicate."""
    store = Store(folder)
    manifest = store.manifest()
    tables = store.tables(RECORDS)
    tables["outcome"] = _fitted_only(_whole_axes(tables["outcome"]))
    if tables["outcome"].empty:
        remedy = f"see `fedlasso study status {folder}`"
        raise FedLassoError(f"{folder} has no finished replicate yet; {remedy}")
    parts = store.parts()
    failures = store.failures()
    rows = []
    for name in manifest.scenarios:
        finished = sum((name, number) in parts for number in range(manifest.replicates))
        failed = sum(scenario == name for scenario, _ in failures)
        row = {"scenario": name, "requested": manifest.replicates}
        rows.append(row | {"finished": finished, "failed": failed})
    progress = pd.DataFrame(rows)
    return Results(manifest, progress=progress, failures=failures, **tables)


def _select(table: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    for axis, value in where.items():
        if axis in table:
            table = table[table[axis] == value]
    return table


def _fitted_only(rows: pd.DataFrame) -> pd.DataFrame:
    """Remove outcomes of fits whose budget was too small for one round: the empty model."""
    if "rounds" not in rows:
        return rows
    metrics = known("metric", rows)
    unpaid = rows["rounds"] == 0
    return rows.assign(**rows[metrics].astype(float).mask(unpaid)) if unpaid.any() else rows


def _whole_axes(rows: pd.DataFrame) -> pd.DataFrame:
    """Fill axes that only some methods have with 0 or a dash; drop those that are not needed."""
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
