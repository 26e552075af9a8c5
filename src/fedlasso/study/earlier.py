"""The earlier experiment, kept for context: every site keeps the penalty that it chose itself.

One validation sample per site chooses both the penalty and the thresholds. Averaging stops when the
Euclidean change falls below 1e-5, or after 500 rounds. Every path and every validation is charged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fedlasso import fitting
from fedlasso.federation import Costs, Disclosure, Ledger, Models, Request, Shapes, Steps
from fedlasso.numerics import Array, local_sweeps, one_thread
from fedlasso.procedures import Average, Averaging, Coefficients, Problem, Procedure, find_procedure
from fedlasso.sites import View
from fedlasso.study.outcomes import Record, Trial
from fedlasso.study.replicate_data import ReplicateData, pool
from fedlasso.study.scenario import SCENARIOS, Scenario

ST_THRESHOLDS = (0.0, *np.geomspace(1e-3, 5.0, 39).tolist())
P_THRESHOLDS = (1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)
DISCLOSED = "a site's own {} at its own penalty, weighted by its rows"
_SIZES = (400, 240, 160)
_SCENARIOS = (
    Scenario("independent", sizes=_SIZES, correlations=(0.0,)),
    Scenario("correlated", sizes=_SIZES, correlations=(0.5,)),
    replace(SCENARIOS["different-distributions"], name="heterogeneous", sizes=_SIZES),
)


class OwnSweeps(Request[Coefficients]):
    """E sweeps of coordinate descent at the site's own penalty."""

    discloses = Disclosure(DISCLOSED.format("model"), allowed=False)
    start: Models
    epochs: Steps

    def expects(self, p: int) -> Shapes:
        return {"values": self.start.shape}

    def answer(self, site: View) -> Coefficients:
        lam = fitting.local_search(site).lam
        values = local_sweeps(site.least_squares, self.start, lam, self.epochs)
        return Coefficients.of(site, values, self.epochs)


class OwnFit(Request[Coefficients]):
    """The site's exact Lasso at its own penalty, a by-product of its search."""

    discloses = Disclosure(DISCLOSED.format("Lasso"), allowed=False)

    def expects(self, p: int) -> Shapes:
        return {"values": (p, 1)}

    def answer(self, site: View) -> Coefficients:
        search = fitting.local_search(site)
        return Coefficients(site.rows * search.path.coefficients[:, [search.chosen]])


@dataclass(frozen=True)
class OwnAveraging(Averaging):
    """Averaging with site-specific penalties, soft-thresholded every round at `threshold`."""

    name: ClassVar[str] = "averaging"
    threshold: float = 0.0

    def request(self, problem: Problem, state: Average) -> OwnSweeps:
        return OwnSweeps(state.values, self.epochs)

    def combine(self, problem: Problem, state: Average, average: Array) -> Array:
        return super().combine(problem, state, problem.penalty.prox(average, self.threshold))


class OwnTrial(Trial):
    """A replicate whose sites have one validation sample each, and no common objective."""

    def __init__(self, draw: ReplicateData, where: Record) -> None:
        super().__init__(replace(draw, candidate_validation=draw.penalty_validation), where)

    def evaluate(self, b: Array) -> Record:
        return self.compare(b)


@dataclass(frozen=True)
class EarlierStudy:
    """The experiment before the paper: every site keeps its own penalty; seven methods."""

    name: ClassVar[str] = "earlier"
    scenarios: ClassVar[Mapping[str, Scenario]] = {each.name: each for each in _SCENARIOS}
    seed: int = 1
    epochs: tuple[int, ...] = (1, 2, 3, 5, 8, 10, 15, 20)

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        trial = OwnTrial.of(scenario, self.seed, number)
        ledger, problem = trial.ledger, trial.problem
        records = trial.penalty_records()
        # All records in one place, tuned on all validation records: not possible federated.
        pooled = fitting.search_penalty(trial.pooled, pool(trial.draw.penalty_validation))
        largest = fitting.local_search(trial.sites[int(np.argmax(problem.sizes))])
        for method, search in (("pooled", pooled), ("largest site", largest)):
            b = np.ascontiguousarray(search.path.coefficients[:, search.chosen])
            records.append(trial.outcome(b, None, method=method))
        one_shot = (ledger.total(OwnFit()).values / problem.m)[:, 0]
        records.append(trial.outcome(one_shot, ledger.costs, method="one-shot", rounds=1))
        z, rounds, costs = _converge(ledger, find_procedure("ADMM")(settings=(1.0,)), problem)
        records.append(trial.outcome(z, trial.setup + costs, method="ADMM", rounds=rounds))
        for epochs in self.epochs:
            records += _averaging(trial, epochs)
        return records


def _converge(
    ledger: Ledger, procedure: Procedure[Any], problem: Problem
) -> tuple[Array, int, Costs]:
    """Run until the model moves less than 1e-5, or 500 rounds."""
    run = fitting.Run(ledger, procedure, problem)
    run.until(fitting.when_still(lambda old, new: bool(np.linalg.norm(new - old) < 1e-5), 500))
    return np.ascontiguousarray(run.models[:, 0]), run.state.round, run.costs


def _averaging(trial: Trial, epochs: int) -> Iterator[Record]:
    """Outcomes of averaging, averaging + ST and averaging + P at one epoch count."""
    ledger, problem = trial.ledger, trial.problem
    b, rounds, training = _converge(ledger, OwnAveraging(epochs), problem)
    labels: dict[str, Any] = {"epochs": epochs, "rounds": rounds}
    yield trial.outcome(b, trial.setup + training, method="averaging", **labels)
    labels["rule"] = "1se"

    models = problem.penalty.prox(b[:, None], np.array(ST_THRESHOLDS))
    validation, costs = trial.validate(models)
    chosen = validation.select("1se")
    labels |= {"method": "averaging + ST", "candidate": ST_THRESHOLDS[chosen]}
    yield trial.outcome(models[:, chosen], trial.setup + training + costs, **labels)

    paths = [_converge(ledger, OwnAveraging(epochs, threshold=t), problem) for t in P_THRESHOLDS]
    each_model, each_rounds, each_costs = zip(*paths, strict=True)
    models = np.column_stack(each_model)
    validation, costs = trial.validate(models)
    chosen = validation.select("1se")
    labels |= {"method": "averaging + P", "candidate": P_THRESHOLDS[chosen]}
    labels["rounds"] = sum(each_rounds)
    yield trial.outcome(models[:, chosen], trial.setup + sum(each_costs, costs), **labels)
