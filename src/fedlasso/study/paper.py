"""The paper's study and its extensions: equal work, joint tuning, site effects, goals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedlasso import fitting
from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs
from fedlasso.fitting import (
    GOALS,
    PANELS,
    RULES,
    FirstAnswers,
    Panel,
    Run,
    after_rounds,
    rounds_within,
)
from fedlasso.numerics import one_thread
from fedlasso.procedures import Procedure, State, find_procedure
from fedlasso.study.means import mean_and_error, pair_with_best
from fedlasso.study.outcomes import Record, Trial
from fedlasso.study.record_columns import (
    COLUMNS,
    PREDICTION,
    SELECTION,
    TRAINING_ROWS,
    display_name,
)
from fedlasso.study.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

# A state on a path, and the costs up to it.
Checkpoint = tuple[State, Costs]
# Goals whose models are compared by F1 and test error.
COMPARED = tuple(goal.name for goal in GOALS.values() if not goal.infers)


@dataclass(frozen=True)
class PaperStudy:
    """The paper's comparison: CD, ST, P and DA at every epoch count, budget, limit and rule."""

    name: ClassVar[str] = "paper"
    panels: ClassVar[tuple[Panel, ...]] = PANELS
    # Uploads at which only the gap is recorded.
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
        trial = Trial.of(scenario, self.seed, number)
        return [*trial.references(), *self.rows(trial)]

    def rows(self, trial: Trial) -> Iterator[Record]:
        """Yield outcome and candidate rows of every cell."""
        prepared: dict[str, FirstAnswers] = {}
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
                for uploads in self.traced:
                    if rounds := uploads // procedure.paths:
                        models = procedure.models(trial.problem, trained[path][rounds][0])
                        yield trial.trace(models, procedure.name, epochs, uploads)

    def _rounds(self, procedure: Procedure[Any]) -> dict[tuple[int, Panel], int]:
        return {
            (budget, panel): rounds_within(budget, panel, procedure.paths, procedure.epochs)
            for budget, panel in product(self.budgets, self.panels)
        }

    def _train(
        self, trial: Trial, procedure: Procedure[Any], prepared: FirstAnswers
    ) -> Mapping[int, Checkpoint]:
        """Return checkpoints of one path, at every round that some budget and panel requires."""
        rounds = set(self._rounds(procedure).values())
        rounds |= {uploads // procedure.paths for uploads in self.traced}
        run = Run(trial.ledger, procedure, trial.problem, prepared=prepared)
        checkpoints = {0: (run.state, run.costs)}
        for state in run.rounds(after_rounds(max(rounds))):
            if state.round in rounds:
                checkpoints[state.round] = (state, run.costs)
        return checkpoints

    def _cells(
        self, trial: Trial, procedure: Procedure[Any], trained: Mapping[int, Checkpoint]
    ) -> Iterator[Record]:
        """Yield rows of one method and epoch count; cells with equal rounds are validated once."""
        done: dict[int, list[Record]] = {}
        for (budget, panel), rounds in self._rounds(procedure).items():
            if rounds not in done:
                done[rounds] = _read(trial, procedure, trained[rounds])
            cell: Record = {"method": procedure.name, "epochs": procedure.epochs, "budget": budget}
            limits: Record = {"panel": panel, "rounds": rounds}
            yield from (cell | limits | record for record in done[rounds])


def _read(trial: Trial, procedure: Procedure[Any], checkpoint: Checkpoint) -> list[Record]:
    """Validate the candidates at a checkpoint; one outcome per rule, one row per candidate."""
    state, training = checkpoint
    models = procedure.models(trial.problem, state)
    validation, cost = trial.validate(models)
    costs = trial.setup + training + cost
    chosen = {rule: validation.select(rule) for rule in RULES}
    outcomes = [
        trial.outcome(models[:, i], costs, rule=rule, candidate=procedure.settings[i])
        for rule, i in chosen.items()
    ]
    candidates = []
    for i, setting in enumerate(procedure.settings):
        row: Record = {"record": "candidate", "candidate": setting}
        row |= {"validation_mse": float(validation.error[i])}
        row |= {"validation_se": float(validation.se[i]), "active": int(validation.active[i])}
        row |= {f"chosen_{rule}": chosen[rule] == i for rule in ("min", "1se")}
        candidates.append(trial.where | row)
    return outcomes + candidates


@dataclass(frozen=True)
class EpochStudy(PaperStudy):
    """Few rounds with many local epochs, or many with few: eight epoch counts at equal work.

    A method runs R = floor(5B/(qE)) rounds at E epochs, regardless of its uploads.
    """

    name: ClassVar[str] = "epochs"
    panels: ClassVar[tuple[Panel, ...]] = ("work",)
    epochs: tuple[int, ...] = (1, 2, 3, 5, 8, 10, 15, 20)
    budgets: tuple[int, ...] = (100,)


@dataclass(frozen=True)
class JointTuningStudy(PaperStudy):
    """Does tuning the penalty jointly with the threshold or rate help, at equal uploads?

    Both are chosen on the second validation sample. Candidates are every setting of a procedure at
    every multiple of the inherited penalty. All paths count towards the upload budget, so five
    penalties leave each path a fifth of its rounds.
    """

    name: ClassVar[str] = "joint-tuning"
    panels: ClassVar[tuple[Panel, ...]] = ("upload",)
    multiples: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    budgets: tuple[int, ...] = (100,)

    def rows(self, trial: Trial) -> Iterator[Record]:
        for record in super().rows(trial):
            yield record | {"tuning": "inherited"}
        for epochs, method, budget in product(self.epochs, self.methods, self.budgets):
            yield from self._jointly(trial, method, epochs, budget)

    def _jointly(self, trial: Trial, method: str, epochs: int, budget: int) -> Iterator[Record]:
        procedure = find_procedure(method)(epochs=epochs)
        rounds = rounds_within(budget, "upload", procedure.paths * len(self.multiples), epochs)
        before = trial.ledger.costs
        penalty = trial.problem.penalty
        models = []
        for multiple in self.multiples:
            problem = replace(trial.problem, penalty=penalty.at(multiple * penalty.lam))
            run = Run(trial.ledger, procedure, problem)
            run.until(after_rounds(rounds))
            models.append(run.models)
        settings = list(product(self.multiples, procedure.settings))
        candidates = np.column_stack(models)
        training = trial.ledger.costs - before
        validation, cost = trial.validate(candidates)
        for rule in RULES:
            i = validation.select(rule)
            multiple, setting = settings[i]
            labels: Record = {"method": procedure.name, "epochs": epochs, "budget": budget}
            labels |= {"panel": "upload", "rule": rule, "rounds": rounds, "candidate": setting}
            labels |= {"penalty_multiple": multiple, "tuning": "joint"}
            yield trial.outcome(candidates[:, i], trial.setup + training + cost, **labels)


@dataclass(frozen=True)
class SiteEffectsStudy(PaperStudy):
    """Coefficients that differ across sites: sparse deviations from a common truth.

    Selection is measured against the common truth; the test sample follows every site's own.
    """

    name: ClassVar[str] = "site-effects"
    scenarios: ClassVar[Mapping[str, Scenario]] = {
        f"deviating-{n}": Scenario(f"deviating-{n}", deviations=n) for n in (0, 5, 15, 30)
    }
    budgets: tuple[int, ...] = (100,)


@dataclass(frozen=True)
class TunedStudy(PaperStudy):
    """Fits by goal (prediction, selection, objective) compared with CD, ST, P and DA."""

    name: ClassVar[str] = "tuned"
    panels: ClassVar[tuple[Panel, ...]] = ("upload",)
    budgets: tuple[int, ...] = (100,)

    def rows(self, trial: Trial) -> Iterator[Record]:
        yield from super().rows(trial)
        for budget, goal in product(self.budgets, COMPARED):
            for row in goal_rows(trial, goal, budget):
                yield row | {"panel": "upload", "rule": "min"}

    @staticmethod
    def conclude(rows: pd.DataFrame) -> list[str]:
        """Return where fits by goal beat each of the paper's four at its best epoch count.

        Fits to the training rows first, as the four are; then those to all rows.
        """
        metrics = {PREDICTION: "test_mse", SELECTION: "f1"}
        return [
            line
            for goal, metric in metrics.items()
            for method in (f"goal:{goal}{TRAINING_ROWS}", f"goal:{goal}")
            if (rows["method"] == method).any()
            for line in _compare(rows, method, metric)
        ]


def goal_rows(trial: Trial, goal: str, budget: int) -> Iterator[Record]:
    """Yield outcomes of one goal within a budget, without panel and rule.

    Fits for prediction and selection use all rows, as a user's do, or the training rows only, as
    procedures do. The Lasso at the inherited penalty is a procedure's fit.
    """
    if GOALS[goal].is_lasso:
        # Only this goal uses the inherited penalty, and is charged for its search.
        penalty = trial.problem.penalty
        result = fitting.fit(trial.ledger, "Secant", penalty=penalty, rounds=budget)
        fits = {"": (result, trial.setup + result.costs)}
    else:
        fits = {}
        for suffix in ("", TRAINING_ROWS):
            result = fitting.fit_for(trial.ledger, goal, uploads=budget, all_rows=not suffix)
            fits[suffix] = (result, result.costs)
    for suffix, (result, costs) in fits.items():
        labels: Record = {"method": f"goal:{goal}{suffix}", "budget": budget}
        labels |= {"rounds": result.rounds, "candidate": result.setting}
        yield trial.outcome(result.coefficients, costs, **labels)


def _compare(rows: pd.DataFrame, goal: str, metric: str) -> list[str]:
    """Return one line per scenario: the goal against the best of the others, paired."""
    lines = []
    wins = 0
    rivals = [name for name in rows["method"].unique() if not name.startswith("goal:")]
    pairs = pair_with_best(rows[rows["rule"] == "min"], metric, goal, rivals, ["scenario"])
    for scenario, own in pairs.groupby("scenario", sort=False):
        mean, se = mean_and_error(own["difference"])
        won = mean > 0 if COLUMNS[metric].better == "higher" else mean < 0
        wins += won
        lines.append(
            f"  {scenario}: {own[metric].mean():.4g} against {own['method'].iloc[0]} "
            f"(E = {own['epochs'].iloc[0]:g}) {own[f'{metric}_best'].mean():.4g}, difference "
            f"{mean:+.3g} (SE {se:.2g}){'' if won else ', not better'}"
        )
    name = display_name("method", goal)
    head = f"{name} has better mean {metric} than each of CD, ST, P, DA at every epoch count in"
    return [f"{head} {wins} of {len(lines)} scenarios", *lines]
