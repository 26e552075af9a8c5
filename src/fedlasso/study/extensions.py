"""Three extensions that the paper suggests: epochs at fixed work, joint tuning, site effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedlasso.fitting import RULES, Panel, Run, after_rounds, rounds_within, validate
from fedlasso.procedures import find_procedure
from fedlasso.study.outcomes import Record
from fedlasso.study.paper import PaperStudy
from fedlasso.study.scenario import Scenario
from fedlasso.study.trial import Trial


@dataclass(frozen=True)
class EpochStudy(PaperStudy):
    """Many epoch counts at the same executed work: R = floor(5B/(qE)) whatever that uploads."""

    name: ClassVar[str] = "epochs"
    panels: ClassVar[tuple[Panel, ...]] = ("work",)
    epochs: tuple[int, ...] = (1, 2, 3, 5, 8, 10, 15, 20)
    budgets: tuple[int, ...] = (100,)


@dataclass(frozen=True)
class JointTuningStudy(PaperStudy):
    """Penalty and solver parameter chosen together on the second validation sample.

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
        procedure, ledger = find_procedure(method)(epochs=epochs), trial.ledger
        rounds = rounds_within(budget, "upload", procedure.paths * len(self.multiples), epochs)
        before = ledger.costs
        models, labels = [], []
        for multiple in self.multiples:
            penalty = trial.problem.penalty
            problem = replace(trial.problem, penalty=penalty.at(multiple * penalty.lam))
            run = Run(ledger, procedure, problem)
            run.until(after_rounds(rounds))
            models.append(run.models)
            labels += [(multiple, setting) for setting in procedure.settings]
        candidates = np.column_stack(models)
        validation = validate(ledger, candidates)
        costs = ledger.costs - before
        for rule in RULES:
            i = validation.select(rule)
            multiple, setting = labels[i]
            yield trial.outcome(
                candidates[:, i], trial.setup + costs, method=procedure.name, epochs=epochs,
                budget=budget, panel="upload", rule=rule, rounds=rounds, candidate=setting,
                penalty_multiple=multiple, tuning="joint",
            )  # fmt: skip


@dataclass(frozen=True)
class SiteEffectsStudy(PaperStudy):
    """Coefficients that differ across sites: a common truth plus sparse deviations at each site.

    Support measures are about the common truth; the test sample keeps every site's own truth.
    """

    name: ClassVar[str] = "site-effects"
    scenarios: ClassVar[Mapping[str, Scenario]] = {
        f"deviating-{n}": Scenario(f"deviating-{n}", deviations=n) for n in (0, 5, 15, 30)
    }
    budgets: tuple[int, ...] = (100,)
