"""The paper's study: four procedures, two resource questions, one draw per replicate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs
from fedlasso.fitting import (
    PANELS,
    RULES,
    Panel,
    Prepared,
    Run,
    after_rounds,
    prepare,
    rounds_within,
    validate,
)
from fedlasso.numerics import one_thread
from fedlasso.procedures import Procedure, State, find_procedure
from fedlasso.study.outcomes import Record
from fedlasso.study.scenario import Scenario
from fedlasso.study.trial import Trial


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A state on a path, and what it cost to get there."""

    state: State
    costs: Costs


@dataclass(frozen=True)
class PaperStudy:
    """Every method at every epoch count, read at every budget, panel and rule."""

    name: ClassVar[str] = "paper"
    panels: ClassVar[tuple[Panel, ...]] = PANELS
    seed: int = 1
    methods: tuple[str, ...] = ("CD", "ST", "P", "DA")
    epochs: tuple[int, ...] = (1, 5, 20)
    budgets: tuple[int, ...] = (30, 100)

    def __post_init__(self) -> None:
        for label in ("epochs", "budgets"):
            if not getattr(self, label) or min(getattr(self, label)) < 1:
                raise FedLassoError(f"{label} is {getattr(self, label)}; give numbers from 1 up")
        for method in self.methods:
            find_procedure(method)

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        """All records of one replicate: a pure function of (study, scenario, number)."""
        trial = Trial(scenario, self.seed, number)
        return [*trial.records(), *self.rows(trial)]

    def rows(self, trial: Trial) -> Iterator[Record]:
        """Outcome and candidate rows of every cell."""
        prepared: dict[str, Prepared] = {}
        for epochs in self.epochs:
            trained: dict[str, Mapping[int, Checkpoint]] = {}
            for method in self.methods:
                procedure = find_procedure(method)(epochs=epochs)
                path = procedure.path_of or procedure.name
                if path not in trained:
                    trainer = find_procedure(path)(epochs=epochs)
                    if path not in prepared:
                        prepared[path] = prepare(trial.ledger, trainer)
                    trained[path] = self._train(trial, trainer, prepared[path])
                yield from self._cells(trial, procedure, trained[path])

    def _rounds(self, procedure: Procedure[Any]) -> dict[tuple[int, Panel], int]:
        return {
            (budget, panel): rounds_within(budget, panel, procedure.paths, procedure.epochs)
            for budget in self.budgets
            for panel in self.panels
        }

    def _train(
        self, trial: Trial, procedure: Procedure[Any], prepared: Prepared
    ) -> Mapping[int, Checkpoint]:
        """One path, read at every round that some budget and panel asks for."""
        rounds = set(self._rounds(procedure).values())
        run = Run(trial.ledger, procedure, trial.problem, prepared=prepared)
        checkpoints = {0: Checkpoint(run.state, run.costs)}
        for state in run.rounds(after_rounds(max(rounds))):
            if state.round in rounds:
                checkpoints[state.round] = Checkpoint(state, run.costs)
        return checkpoints

    def _cells(
        self, trial: Trial, procedure: Procedure[Any], trained: Mapping[int, Checkpoint]
    ) -> Iterator[Record]:
        """Rows of one method and epoch count; cells with equal rounds share their validation."""
        done: dict[int, list[Record]] = {}
        for (budget, panel), rounds in self._rounds(procedure).items():
            if rounds not in done:
                done[rounds] = _read(trial, procedure, trained[rounds])
            cell: Record = {
                "method": procedure.name,
                "epochs": procedure.epochs,
                "budget": budget,
                "panel": panel,
                "rounds": rounds,
            }
            yield from (cell | record for record in done[rounds])


def _read(trial: Trial, procedure: Procedure[Any], at: Checkpoint) -> list[Record]:
    """Validate the candidates at a checkpoint; one outcome per rule, one row per candidate."""
    models = procedure.models(trial.problem, at.state)
    before = trial.ledger.costs
    validation = validate(trial.ledger, models)
    costs = trial.setup + at.costs + (trial.ledger.costs - before)
    chosen = {rule: validation.select(rule) for rule in RULES}
    outcomes = [
        trial.outcome(models[:, i], costs, rule=rule, candidate=procedure.settings[i])
        for rule, i in chosen.items()
    ]
    candidates = [
        trial.where
        | {
            "record": "candidate",
            "candidate": setting,
            "validation_mse": float(validation.error[i]),
            "validation_se": float(validation.se[i]),
            "active": int(validation.active[i]),
            "chosen_min": chosen["min"] == i,
            "chosen_1se": chosen["1se"] == i,
        }
        for i, setting in enumerate(procedure.settings)
    ]
    return outcomes + candidates
