"""The earlier experiment: every site keeps the penalty that it selected itself.

Kept as context. One validation sample per site serves both the penalty and the thresholds;
averaging stops when the Euclidean change falls below 1e-5 or after 500 rounds. Every path and every
validation exchange is charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedlasso import fitting
from fedlasso.federation import Costs, Ledger
from fedlasso.fitting.tuning import OwnFit, OwnSweeps
from fedlasso.numerics import Array, one_thread
from fedlasso.procedures import Average, Averaging, Problem, Procedure, find_procedure
from fedlasso.study.draws import pool
from fedlasso.study.outcomes import Record, Trial, cost_record
from fedlasso.study.scenario import Scenario

ST_THRESHOLDS = (0.0, *np.geomspace(1e-3, 5.0, 39).tolist())
P_THRESHOLDS = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
_SIZES = (400, 240, 160)


@dataclass(frozen=True)
class OwnAveraging(Averaging):
    """Averaging with site-specific penalties; soft-thresholded every round if asked."""

    name: ClassVar[str] = "averaging"
    threshold: float = 0.0

    def request(self, problem: Problem, state: Average) -> OwnSweeps:
        return OwnSweeps(state.values, self.epochs)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        return super().combine(problem, state, problem.penalty.prox(average, self.threshold))


@dataclass(frozen=True)
class EarlierStudy:
    """The experiment before the paper: every site keeps its own penalty; seven methods."""

    name: ClassVar[str] = "earlier"
    scenarios: ClassVar[Mapping[str, Scenario]] = {
        "independent": Scenario("independent", sizes=_SIZES, correlations=(0.0,)),
        "correlated": Scenario("correlated", sizes=_SIZES, correlations=(0.5,)),
        "heterogeneous": Scenario(
            "heterogeneous",
            sizes=_SIZES,
            correlations=(0.0, 0.4, 0.7),
            scales=(1.0, 1.4, 0.7),
            noise=(1.0, 1.5, 0.8),
        ),
    }
    seed: int = 1
    epochs: tuple[int, ...] = (1, 2, 3, 5, 8, 10, 15, 20)

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        """All records of one replicate."""
        trial = Trial(scenario, self.seed, number, one_validation=True)
        ledger = trial.ledger
        problem = trial.problem

        def outcome(method: str, b: Array, costs: Costs | None, **labels: Any) -> Record:
            spent = cost_record(trial.setup + costs) if costs is not None else {}
            told: Record = {"record": "outcome", "method": method, **labels}
            return told | trial.where | trial.compare(b) | spent

        records = trial.penalty_records()
        # All records in one place, tuned on all validation records: what sites cannot do.
        pooled = fitting.search_penalty(trial.pooled, pool(trial.draw.penalty_validation))
        largest = fitting.local_search(trial.sites[int(np.argmax(problem.sizes))])
        for method, search in (("pooled", pooled), ("largest site", largest)):
            b = np.ascontiguousarray(search.path.coefficients[:, search.chosen])
            records.append(outcome(method, b, None))
        before = ledger.costs
        one_shot = (ledger.total(OwnFit()).values / problem.m)[:, 0]
        records.append(outcome("one-shot", one_shot, ledger.costs - before, rounds=1))
        z, rounds, costs = _settle(ledger, find_procedure("ADMM")(settings=(1.0,)), problem)
        records.append(outcome("ADMM", z, costs, rounds=rounds))
        for epochs in self.epochs:
            for method, b, costs, labels in _averaging(trial, epochs):
                records.append(outcome(method, b, costs, epochs=epochs, **labels))
        return records


def _settle(
    ledger: Ledger, procedure: Procedure[Any], problem: Problem
) -> tuple[Array, int, Costs]:
    """Run until the model moves less than 1e-5, or 500 rounds."""
    run = fitting.Run(ledger, procedure, problem)

    def still(before: Array, now: Array) -> bool:
        return bool(np.linalg.norm(now - before) < 1e-5)

    run.until(fitting.when_still(still, 500))
    return np.ascontiguousarray(run.models[:, 0]), run.state.round, run.costs


def _averaging(trial: Trial, epochs: int) -> Iterator[tuple[str, Array, Costs, dict[str, Any]]]:
    """Averaging, averaging + ST and averaging + P at one epoch count."""
    ledger = trial.ledger
    problem = trial.problem
    b, rounds, training = _settle(ledger, OwnAveraging(epochs), problem)
    yield "averaging", b, training, {"rounds": rounds}
    models = problem.penalty.prox(b[:, None], np.array(ST_THRESHOLDS))
    validation, asking = trial.validate(models)
    chosen = validation.select("1se")
    labels = {"rounds": rounds, "rule": "1se", "candidate": ST_THRESHOLDS[chosen]}
    yield "averaging + ST", models[:, chosen], training + asking, labels
    paths = [_settle(ledger, OwnAveraging(epochs, threshold=t), problem) for t in P_THRESHOLDS]
    models = np.column_stack([path[0] for path in paths])
    validation, asking = trial.validate(models)
    chosen = validation.select("1se")
    rounds = sum(path[1] for path in paths)
    labels = {"rounds": rounds, "rule": "1se", "candidate": P_THRESHOLDS[chosen]}
    yield "averaging + P", models[:, chosen], sum((path[2] for path in paths), asking), labels
