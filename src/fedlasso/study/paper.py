"""The paper's study, and what extends it: fixed work, joint tuning, site effects, goals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from fedlasso import fitting
from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs
from fedlasso.fitting import (
    PANELS,
    RULES,
    Goal,
    Panel,
    Prepared,
    Run,
    after_rounds,
    rounds_within,
)
from fedlasso.numerics import Array, one_thread
from fedlasso.procedures import Procedure, State, find_procedure
from fedlasso.study.outcomes import Record, Trial
from fedlasso.study.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd


# Goals whose models are compared by F1 and test error.
COMPARED: tuple[Goal, ...] = ("prediction", "selection", "objective")


class Checkpoint(NamedTuple):
    """A state on a path, and what it cost to get there."""

    state: State
    costs: Costs


@dataclass(frozen=True)
class PaperStudy:
    """The paper's comparison: CD, ST, P and DA at every epoch count, budget, limit and rule.

    Every method runs at every epoch count, and is read at every budget, panel and rule.
    """

    name: ClassVar[str] = "paper"
    panels: ClassVar[tuple[Panel, ...]] = PANELS
    # Uploads after which the gap alone is recorded, to follow it from round to round.
    traced: ClassVar[tuple[int, ...]] = ()
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
                        prepared[path] = fitting.prepare(trial.ledger, trainer)
                    trained[path] = self._train(trial, trainer, prepared[path])
                yield from self._cells(trial, procedure, trained[path])
                yield from self._traces(trial, procedure, trained[path])

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
        rounds |= {uploads // procedure.paths for uploads in self.traced}
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

    def _traces(
        self, trial: Trial, procedure: Procedure[Any], trained: Mapping[int, Checkpoint]
    ) -> Iterator[Record]:
        """Gaps along a path, where at least one round was paid for."""
        for uploads in self.traced:
            rounds = uploads // procedure.paths
            if rounds:
                models = procedure.models(trial.problem, trained[rounds].state)
                yield trace(trial, models, uploads, procedure.name, procedure.epochs)


def trace(trial: Trial, models: Array, uploads: int, method: str, epochs: int | None) -> Record:
    """The smallest gap among the candidates after so many uploads, all of them charged."""
    gap = min(trial.gaps(np.ascontiguousarray(b))["relative_gap"] for b in models.T)
    told: Record = {"record": "trace", "method": method, "epochs": epochs, "uploads": uploads}
    return trial.where | told | {"relative_gap": gap}


def _read(trial: Trial, procedure: Procedure[Any], at: Checkpoint) -> list[Record]:
    """Validate the candidates at a checkpoint; one outcome per rule, one row per candidate."""
    models = procedure.models(trial.problem, at.state)
    validation, asking = trial.validate(models)
    costs = trial.setup + at.costs + asking
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


@dataclass(frozen=True)
class EpochStudy(PaperStudy):
    """Few rounds with many local epochs, or many with few: eight counts at the same work.

    A method runs R = floor(5B/(qE)) rounds at E epochs, whatever that uploads.
    """

    name: ClassVar[str] = "epochs"
    panels: ClassVar[tuple[Panel, ...]] = ("work",)
    epochs: tuple[int, ...] = (1, 2, 3, 5, 8, 10, 15, 20)
    budgets: tuple[int, ...] = (100,)


@dataclass(frozen=True)
class JointTuningStudy(PaperStudy):
    """Is it worth while to choose penalty and threshold or rate together, in the same uploads?

    Both are chosen on the second validation sample.

    Candidates are every setting of a procedure at every multiple of the inherited penalty; all
    paths share the upload budget, so five penalties leave each path a fifth of its rounds.
    """

    name: ClassVar[str] = "joint-tuning"
    panels: ClassVar[tuple[Panel, ...]] = ("upload",)
    multiples: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    budgets: tuple[int, ...] = (100,)

    def rows(self, trial: Trial) -> Iterator[Record]:
        """The inherited penalty alone, then the penalties together."""
        for record in super().rows(trial):
            yield record | {"tuning": "inherited"}
        for epochs in self.epochs:
            for method in self.methods:
                for budget in self.budgets:
                    yield from self._jointly(trial, method, epochs, budget)

    def _jointly(self, trial: Trial, method: str, epochs: int, budget: int) -> Iterator[Record]:
        procedure = find_procedure(method)(epochs=epochs)
        ledger = trial.ledger
        rounds = rounds_within(budget, "upload", procedure.paths * len(self.multiples), epochs)
        before = ledger.costs
        models = []
        labels = []
        for multiple in self.multiples:
            penalty = trial.problem.penalty
            problem = replace(trial.problem, penalty=penalty.at(multiple * penalty.lam))
            run = Run(ledger, procedure, problem)
            run.until(after_rounds(rounds))
            models.append(run.models)
            labels += [(multiple, setting) for setting in procedure.settings]
        candidates = np.column_stack(models)
        validation = fitting.validate(ledger, candidates, exact=True)
        costs = ledger.costs - before
        for rule in RULES:
            i = validation.select(rule)
            multiple, setting = labels[i]
            yield trial.outcome(
                candidates[:, i],
                trial.setup + costs,
                method=procedure.name,
                epochs=epochs,
                budget=budget,
                panel="upload",
                rule=rule,
                rounds=rounds,
                candidate=setting,
                penalty_multiple=multiple,
                tuning="joint",
            )


@dataclass(frozen=True)
class SiteEffectsStudy(PaperStudy):
    """What happens where coefficients differ across sites: sparse deviations from a common truth.

    Support measures are about the common truth; the test sample keeps every site's own truth.
    """

    name: ClassVar[str] = "site-effects"
    scenarios: ClassVar[Mapping[str, Scenario]] = {
        f"deviating-{n}": Scenario(f"deviating-{n}", deviations=n) for n in (0, 5, 15, 30)
    }
    budgets: tuple[int, ...] = (100,)


@dataclass(frozen=True)
class TunedStudy(PaperStudy):
    """Fits by goal (prediction, selection, objective) beside CD, ST, P and DA.

    Their methods are ``goal:prediction``, ``goal:selection`` and ``goal:objective``.
    """

    name: ClassVar[str] = "tuned"
    panels: ClassVar[tuple[Panel, ...]] = ("upload",)
    budgets: tuple[int, ...] = (100,)

    def rows(self, trial: Trial) -> Iterator[Record]:
        """The paper's four, then the goals."""
        yield from super().rows(trial)
        for budget in self.budgets:
            for goal in COMPARED:
                yield goal_row(trial, goal, budget) | {"panel": "upload", "rule": "min"}

    @staticmethod
    def conclude(rows: pd.DataFrame) -> list[str]:
        """Where the goal-directed fits beat each of the paper's four at its best epoch count."""
        return [
            *_compare(rows, "goal:prediction", "test_mse", -1),
            *_compare(rows, "goal:selection", "f1", 1),
        ]


def goal_row(trial: Trial, goal: Goal, budget: int) -> Record:
    """The outcome of one fit by goal within so many uploads, without panel and rule."""
    result: fitting.Fit | fitting.GoalFit
    if goal == "objective":
        # Only the objective is that of the inherited penalty, and pays for its search.
        penalty = trial.problem.penalty
        result = fitting.fit(trial.ledger, "Secant", penalty=penalty, rounds=budget)
        costs = trial.setup + result.costs
    else:
        result = fitting.fit_for(trial.ledger, goal, uploads=budget, exact=True)
        costs = result.costs
    return trial.outcome(
        result.coefficients,
        costs,
        method=f"goal:{goal}",
        budget=budget,
        rounds=result.rounds,
        candidate=result.setting,
    )


def _compare(rows: pd.DataFrame, goal: str, metric: str, sign: int) -> list[str]:
    """One line per scenario: the goal against the best of the others, paired within replicate."""
    lines = []
    wins = 0
    for scenario, here in rows[rows["rule"] == "min"].groupby("scenario", sort=False):
        ours = here[here["method"] == goal].set_index("replicate")[metric]
        others = here[~here["method"].str.startswith("goal:")]
        means = others.groupby(["method", "epochs"])[metric].mean()
        method, epochs = means.idxmax() if sign > 0 else means.idxmin()
        rival = others[(others["method"] == method) & (others["epochs"] == epochs)]
        difference = ours - rival.set_index("replicate")[metric]
        won = bool(sign * difference.mean() > 0)
        wins += won
        se = difference.std(ddof=1) / np.sqrt(len(difference))
        lines.append(
            f"  {scenario}: {ours.mean():.4g} against {method} (E = {epochs:g}) "
            f"{means.loc[(method, epochs)]:.4g}, difference {difference.mean():+.3g} "
            f"(SE {se:.2g}){'' if won else ', not better'}"
        )
    head = f"{goal} has better mean {metric} than each of CD, ST, P, DA at every epoch count in"
    return [f"{head} {wins} of {len(lines)} scenarios", *lines]
