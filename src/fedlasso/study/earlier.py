"""The earlier experiment: every site keeps the penalty that it selected itself.

Kept as context. One validation sample a site serves both the penalty and the thresholds; averaging
stops when the Euclidean change falls below 1e-5 or after 500 rounds. Every path and every
validation exchange is charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fedlasso.federation import Costs, InProcess, Ledger
from fedlasso.fitting import Run, choose_penalty, local_search, search_penalty, validate, when_still
from fedlasso.fitting.tuning import OwnFit, OwnSweeps
from fedlasso.numerics import Array, LeastSquares
from fedlasso.numerics.threads import one_thread
from fedlasso.procedures import Average, Averaging, Problem, Procedure, find_procedure
from fedlasso.study.outcomes import Record, cost_record, prediction_record, support_record
from fedlasso.study.scenario import Draw, Scenario, pool
from fedlasso.study.trial import penalty_records

CHANGE = 1e-5
ROUNDS = 500
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
    """Seven methods on three designs."""

    name: ClassVar[str] = "earlier"
    scenarios: ClassVar[Mapping[str, Scenario]] = {
        "independent": Scenario("independent", sizes=_SIZES, correlations=(0.0,)),
        "correlated": Scenario("correlated", sizes=_SIZES, correlations=(0.5,)),
        "heterogeneous": Scenario(
            "heterogeneous", sizes=_SIZES, correlations=(0.0, 0.4, 0.7),
            scales=(1.0, 1.4, 0.7), noise=(1.0, 1.5, 0.8),
        ),
    }  # fmt: skip
    seed: int = 1
    epochs: tuple[int, ...] = (1, 2, 3, 5, 8, 10, 15, 20)

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        """All records of one replicate."""
        draw = scenario.draw(scenario.generator(self.seed, number))
        draw = replace(draw, candidate_validation=draw.penalty_validation)
        sites = draw.sites()
        ledger = Ledger(InProcess(sites))
        problem = choose_penalty(ledger)
        setup = ledger.costs
        where: Record = {"scenario": scenario.name, "replicate": number, "lam": problem.penalty.lam}
        test = [LeastSquares(X, y) for X, y in draw.test]

        def outcome(method: str, b: Array, costs: Costs | None, **labels: Any) -> Record:
            spent = cost_record(costs) if costs is not None else {}
            measured = support_record(b, draw.truth) | prediction_record(b, draw.truth, test)
            return {"record": "outcome", "method": method, **labels} | where | measured | spent

        records = [where | r for r in penalty_records(sites)]
        records.append(outcome("pooled", _pooled_fit(draw), None))
        largest = local_search(sites[int(np.argmax(problem.sizes))])
        alone = np.ascontiguousarray(largest.path.coefficients[:, largest.chosen])
        records.append(outcome("largest site", alone, None))
        before = ledger.costs
        one_shot = (ledger.total(OwnFit()).values / problem.m)[:, 0]
        records.append(outcome("one-shot", one_shot, setup + (ledger.costs - before), rounds=1))
        z, rounds, costs = _settle(ledger, find_procedure("ADMM")(settings=(1.0,)), problem)
        records.append(outcome("ADMM", z, setup + costs, rounds=rounds))
        for epochs in self.epochs:
            for method, b, rounds, costs, labels in _averaging(ledger, problem, epochs):
                labels |= {"epochs": epochs, "rounds": rounds}
                records.append(outcome(method, b, setup + costs, **labels))
        return records


def _pooled_fit(draw: Draw) -> Array:
    """All records in one place, tuned on all validation records: what sites cannot do."""
    search = search_penalty(pool(draw.training), pool(draw.penalty_validation))
    return np.ascontiguousarray(search.path.coefficients[:, search.chosen])


def _settle(
    ledger: Ledger, procedure: Procedure[Any], problem: Problem
) -> tuple[Array, int, Costs]:
    """Run until the model moves less than 1e-5, or 500 rounds."""
    run = Run(ledger, procedure, problem)

    def still(before: Array, now: Array) -> bool:
        return bool(np.linalg.norm(now - before) < CHANGE)

    run.until(when_still(still, ROUNDS))
    return np.ascontiguousarray(run.models[:, 0]), run.state.round, run.costs


def _averaging(
    ledger: Ledger, problem: Problem, epochs: int
) -> Iterator[tuple[str, Array, int, Costs, dict[str, Any]]]:
    """Averaging, averaging + ST and averaging + P at one epoch count."""
    b, rounds, training = _settle(ledger, OwnAveraging(epochs), problem)
    yield "averaging", b, rounds, training, {}
    models = problem.penalty.prox(b[:, None], np.array(ST_THRESHOLDS))
    chosen, costs = _choose(ledger, models)
    labels = {"rule": "1se", "candidate": ST_THRESHOLDS[chosen]}
    yield "averaging + ST", models[:, chosen], rounds, training + costs, labels
    paths = [_settle(ledger, OwnAveraging(epochs, threshold=t), problem) for t in P_THRESHOLDS]
    models = np.column_stack([path[0] for path in paths])
    chosen, costs = _choose(ledger, models)
    labels = {"rule": "1se", "candidate": P_THRESHOLDS[chosen]}
    total = sum((path[2] for path in paths), costs)
    yield "averaging + P", models[:, chosen], sum(path[1] for path in paths), total, labels


def _choose(ledger: Ledger, models: Array) -> tuple[int, Costs]:
    before = ledger.costs
    chosen = validate(ledger, models).select("1se")
    return chosen, ledger.costs - before
