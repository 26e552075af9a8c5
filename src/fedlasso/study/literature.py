"""The literature under one ledger: objective gap against uploads, for every procedure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.procedures import REGISTRY, find_procedure
from fedlasso.study.outcomes import TARGET, Reader, Record, Trial, Watch
from fedlasso.study.paper import PaperStudy

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LiteratureStudy(PaperStudy):
    """How close every procedure comes to the pooled Lasso within 5, 10, 20, 30 and 100 uploads.

    An upload is p numbers from every site, on average over the sites. Procedures with local epochs
    use five. ``uploads_needed`` is the number of uploads until some candidate is within a relative
    gap of 1e-8 of the pooled optimum, all candidates charged; missing if none is. ``trips_needed``
    counts the exchanges with the sites until then: candidates share them.
    """

    name: ClassVar[str] = "literature"
    methods: tuple[str, ...] = tuple(REGISTRY)
    epochs: tuple[int, ...] = (5,)
    budgets: tuple[int, ...] = (5, 10, 20, 30, 100)

    def __post_init__(self) -> None:
        super().__post_init__()
        if list(self.budgets) != sorted(set(self.budgets)):
            raise FedLassoError(f"budgets is {self.budgets}; give increasing numbers from 1 up")

    def rows(self, trial: Trial) -> Iterator[Record]:
        for epochs, method in product(self.epochs, self.methods):
            procedure = find_procedure(method)(epochs=epochs)
            watch = Watch(trial)
            reader = Reader(trial, procedure, watch.look)
            cell: dict[str, Any] = {"method": procedure.name, "epochs": procedure.epochs}
            limits = {"panel": "upload", "rule": "min"}
            rows = [reader.read(budget, **cell, budget=budget, **limits) for budget in self.budgets]
            yield from (row | watch.needed for row in rows)

    @staticmethod
    def conclude(rows: pd.DataFrame) -> list[str]:
        """Return how often Secant converged, gaps by budget, and uploads to the pooled optimum."""
        lines = []
        at30 = rows[(rows["method"] == "Secant") & (rows["budget"] == 30)]
        if len(at30):
            within = int((at30["relative_gap"] <= TARGET).sum())
            lines.append(
                f"Secant within a relative gap of 1e-8 at 30 uploads: {within} of {len(at30)} "
                f"replicates (worst {at30['relative_gap'].max():.1e})"
            )
        gaps = rows.pivot_table("relative_gap", "method", "budget", "median", sort=False)
        last = rows[rows["budget"] == rows["budget"].max()]
        reached = last["uploads_needed"].notna()
        mostly = reached.groupby(last["method"]).transform("mean") > 1 / 2
        groups = last[mostly].groupby(["scenario", "method"], sort=False)
        needed = groups["uploads_needed"].agg(_needed).unstack()
        trips = groups["trips_needed"].agg(_needed).unstack() if "trips_needed" in last else needed
        unpaid = last[last["rounds"] == 0]["method"].unique()
        most = last["budget"].max()
        return [
            *lines,
            f"median relative gap by number of uploads, {last['scenario'].nunique()} scenario(s)",
            *gaps.to_string(float_format=_gap).splitlines(),
            "uploads to a relative gap of 1e-8, for methods that reach it in most replicates: "
            "median (maximum), or how many replicates did",
            *needed.to_string().splitlines(),
            "round trips to the same gap",
            *trips.to_string().splitlines(),
            *(f"{name}: empty model, since one round exceeds {most} uploads" for name in unpaid),
            "",
        ]


def _gap(value: float) -> str:
    return f"{value:.0e}" if value > 1e-14 else "<1e-14"


def _needed(uploads: pd.Series[float]) -> str:
    if uploads.isna().any():
        return f"{int(uploads.notna().sum())} of {len(uploads)}"
    return f"{np.median(uploads):.3g} ({uploads.max():.3g})"
