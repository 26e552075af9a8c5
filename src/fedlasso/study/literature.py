"""The literature under one ledger: objective gap against uploads, for every procedure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs
from fedlasso.fitting import Run, validate, within_uploads
from fedlasso.numerics import one_thread
from fedlasso.procedures import REGISTRY, Procedure, State, find_procedure
from fedlasso.study.outcomes import Record
from fedlasso.study.scenario import Scenario
from fedlasso.study.trial import Trial

if TYPE_CHECKING:
    import pandas as pd

TARGET = 1e-8


@dataclass(frozen=True)
class LiteratureStudy:
    """Every procedure in the registry, read at 5, 10, 20, 30 and 100 uploads.

    An upload is p numbers from every site, on average over the sites. Procedures with local epochs
    take five. ``uploads_needed`` says when some candidate of a procedure first came within a
    relative gap of 1e-8 of the pooled optimum, all candidates charged; missing where none did.
    """

    name: ClassVar[str] = "literature"
    seed: int = 1
    methods: tuple[str, ...] = tuple(REGISTRY)
    budgets: tuple[int, ...] = (5, 10, 20, 30, 100)
    epochs: tuple[int, ...] = (5,)

    def __post_init__(self) -> None:
        for method in self.methods:
            find_procedure(method)
        if list(self.budgets) != sorted(set(self.budgets)) or self.budgets[0] < 1:
            raise FedLassoError(f"budgets is {self.budgets}; give increasing numbers from 1 up")

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        """All records of one replicate."""
        trial = Trial(scenario, self.seed, number)
        records = trial.records()
        for epochs in self.epochs:
            for method in self.methods:
                records += self._follow(trial, find_procedure(method)(epochs=epochs))
        return records

    def _follow(self, trial: Trial, procedure: Procedure[Any]) -> list[Record]:
        """One procedure up to the largest budget, never beyond a budget when it is read."""
        run = Run(trial.ledger, procedure, trial.problem)
        rows: list[Record] = []
        reading = Costs()
        needed: float | None = None
        for budget in self.budgets:
            for _ in run.rounds(within_uploads(budget)):
                if needed is None:
                    gaps = [trial.relative_gap(b) for b in run.models.T]
                    if min(gaps) <= TARGET:
                        needed = run.uploads
            # What reading at smaller budgets cost is not part of this one's bill.
            training = run.costs - reading
            row, cost = self._read(trial, procedure, run.state, training, budget)
            rows.append(row)
            reading += cost
        return [row | {"uploads_needed": needed} for row in rows]

    def _read(
        self, trial: Trial, procedure: Procedure[Any], state: State, training: Costs, budget: int
    ) -> tuple[Record, Costs]:
        """The chosen candidate's row, and what choosing cost."""
        models = procedure.models(trial.problem, state)
        before = trial.ledger.costs
        chosen = validate(trial.ledger, models).select("min")
        reading = trial.ledger.costs - before
        row = trial.outcome(
            models[:, chosen], trial.setup + training + reading, method=procedure.name,
            epochs=procedure.epochs, budget=budget, panel="upload", rule="min",
            rounds=state.round, candidate=procedure.settings[chosen],
        )  # fmt: skip
        return row, reading

    @staticmethod
    def conclude(rows: pd.DataFrame) -> list[str]:
        """Secant's promise, the gap against uploads, and uploads to the pooled optimum."""
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
        arriving = reached.groupby(last["method"]).transform("mean") > 1 / 2
        by = ["scenario", "method"]
        needed = last[arriving].groupby(by, sort=False)["uploads_needed"].agg(_needed).unstack()
        return [
            *lines,
            f"median relative gap at so many uploads, {last['scenario'].nunique()} scenario(s)",
            *gaps.to_string(float_format=_gap).splitlines(),
            "uploads to a relative gap of 1e-8, where most replicates got there: "
            "median (worst), or how many did",
            *needed.to_string().splitlines(),
            *_idle(last),
            "",
        ]


def _gap(value: float) -> str:
    return f"{value:.0e}" if value > 1e-14 else "<1e-14"


def _needed(uploads: pd.Series[float]) -> str:
    if uploads.isna().any():
        return f"{int(uploads.notna().sum())} of {len(uploads)}"
    return f"{np.median(uploads):.3g} ({uploads.max():.3g})"


def _idle(last: pd.DataFrame) -> list[str]:
    """Whose first round costs more than the largest budget."""
    idle = last[last["rounds"] == 0]["method"].unique()
    budget = last["budget"].max()
    return [f"{name} needs more than {budget} uploads: its model here is empty" for name in idle]
