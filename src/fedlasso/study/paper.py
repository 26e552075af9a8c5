"""The paper's study: four procedures, two resource questions, one draw a replicate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs, InProcess, Ledger, Site
from fedlasso.fit import iterate, prepare
from fedlasso.lasso import Reference, solve_reference
from fedlasso.procedures import Problem, Procedure, State, find_procedure
from fedlasso.study.outcomes import Evaluator, Record, cost_record
from fedlasso.study.scenario import Scenario, pool
from fedlasso.tuning import (
    PANELS,
    RULES,
    LocalPenalty,
    choose_penalty,
    rounds_within,
    validate,
)

# Replies to what a procedure asks before its first round, and what asking cost.
Prepared = tuple[tuple[Any, ...], Costs]


@dataclass(frozen=True)
class PaperStudy:
    """Every method at every epoch count, read at every budget, panel and rule."""

    name: ClassVar[str] = "paper"
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

    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        """All records of one replicate: a pure function of (study, scenario, number)."""
        draw = scenario.draw(scenario.generator(self.seed, number))
        sites = draw.sites()
        ledger = Ledger(InProcess(sites))
        problem = choose_penalty(ledger)
        setup = ledger.costs
        pooled = pool(draw.training)
        reference = solve_reference(pooled, problem.lam)
        evaluate = Evaluator(draw, pooled, problem.lam, reference)
        where: Record = {"scenario": scenario.name, "replicate": number, "lam": problem.lam}
        records = [where | r for r in penalty_records(sites)]
        records.append(where | reference_record(reference) | evaluate(reference.coefficients))
        prepared: dict[str, Prepared] = {}
        for epochs in self.epochs:
            trained: dict[str, Mapping[int, Checkpoint]] = {}
            for method in self.methods:
                procedure = find_procedure(method)(epochs=epochs)
                path = procedure.path_of or method
                if path not in trained:
                    trainer = find_procedure(path)(epochs=epochs)
                    if path not in prepared:
                        before = ledger.costs
                        prepared[path] = prepare(ledger, trainer), ledger.costs - before
                    trained[path] = self._train(ledger, trainer, problem, prepared[path])
                cells = self._cells(ledger, procedure, problem, trained[path], setup, evaluate)
                records += [where | cell for cell in cells]
        return records

    def _rounds(self, procedure: Procedure[Any]) -> dict[tuple[int, str], int]:
        return {
            (budget, panel): rounds_within(budget, panel, procedure.paths, procedure.epochs)
            for budget in self.budgets
            for panel in PANELS
        }

    def _train(
        self, ledger: Ledger, procedure: Procedure[Any], problem: Problem, prepared: Prepared
    ) -> Mapping[int, Checkpoint]:
        """One path, read at every round that some budget and panel asks for."""
        rounds = set(self._rounds(procedure).values())
        before = ledger.costs
        replies, asking = prepared
        first = procedure.start(problem, replies)
        checkpoints = {0: Checkpoint(first, asking)}
        for state in islice(iterate(ledger, procedure, problem, first), max(rounds)):
            if state.round in rounds:
                checkpoints[state.round] = Checkpoint(state, asking + (ledger.costs - before))
        return checkpoints

    def _cells(
        self,
        ledger: Ledger,
        procedure: Procedure[Any],
        problem: Problem,
        trained: Mapping[int, Checkpoint],
        setup: Costs,
        evaluate: Evaluator,
    ) -> Iterator[Record]:
        """Rows of one method and epoch count; cells with equal rounds share their validation."""
        done: dict[int, list[Record]] = {}
        for (budget, panel), rounds in self._rounds(procedure).items():
            if rounds not in done:
                state, training = trained[rounds].state, trained[rounds].costs
                models = procedure.models(problem, state)
                before = ledger.costs
                validation = validate(ledger, models)
                costs = cost_record(setup + training + (ledger.costs - before))
                chosen = {rule: validation.select(rule) for rule in RULES}
                done[rounds] = [
                    {"record": "outcome", "rule": rule, "candidate": procedure.settings[i]}
                    | evaluate(np.ascontiguousarray(models[:, i]))
                    | costs
                    for rule, i in chosen.items()
                ]
                done[rounds] += [
                    {
                        "record": "candidate",
                        "candidate": setting,
                        "validation_mse": float(validation.mse[i]),
                        "validation_se": float(validation.se[i]),
                        "active": int(validation.active[i]),
                        "chosen_min": chosen["min"] == i,
                        "chosen_1se": chosen["1se"] == i,
                    }
                    for i, setting in enumerate(procedure.settings)
                ]
            cell: Record = {
                "method": procedure.name,
                "epochs": procedure.epochs,
                "budget": budget,
                "panel": panel,
                "rounds": rounds,
            }
            yield from (cell | record for record in done[rounds])


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A state on a path, and what it cost to get there."""

    state: State
    costs: Costs


def penalty_records(sites: list[Site]) -> Iterator[Record]:
    """One row per local penalty choice, with the worst gap along its path."""
    for site in sites:
        search = site.diagnostics["penalty"]
        assert isinstance(search, LocalPenalty)
        yield {
            "record": "penalty",
            "site": site.name,
            "site_lam": search.lam,
            "site_rows": site.rows,
            "worst_gap": float(search.path.gaps.max()),
            "fallbacks": search.path.fallbacks,
            "met": bool(np.all(search.path.gaps <= 1e-10)),
            "penalty_steps": search.path.knots,
        }


def reference_record(reference: Reference) -> Record:
    """How the pooled reference was solved."""
    return {
        "record": "reference",
        "solver": reference.method,
        "solver_steps": reference.knots,
        "duality_gap": reference.gap,
        "met": reference.met,
    }
