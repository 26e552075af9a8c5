"""One replicate, and what is measured of its fits once the truth may be looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from fedlasso.federation import Costs, InProcess, Ledger
from fedlasso.fitting import ACTIVE, choose_penalty, local_search, validate
from fedlasso.fitting.tuning import Validation
from fedlasso.numerics import Array, LeastSquares, Reference, solve_reference, stationarity
from fedlasso.study.columns import COLUMNS, Column
from fedlasso.study.draws import pool
from fedlasso.study.scenario import Scenario

Record = dict[str, str | int | float | bool | None]
CUTOFFS: Mapping[str, float] = {"": ACTIVE, "_1e6": 1e-6, "_1e2": 1e-2}


class Trial:
    """One replicate: its draw, its metered sites, the common penalty and the pooled reference.

    Attributes
    ----------
    draw, test : data, and the test samples among them
    sites, ledger, problem : the federation, and what the server knows of it
    setup : what choosing the penalty cost
    where : columns that every record of the replicate carries
    """

    def __init__(
        self, scenario: Scenario, seed: int, number: int, one_validation: bool = False
    ) -> None:
        self.draw = scenario.draw(scenario.generator(seed, number))
        if one_validation:  # the sample that chose the penalty chooses among candidates too
            self.draw = replace(self.draw, candidate_validation=self.draw.penalty_validation)
        self.test = [LeastSquares(X, y) for X, y in self.draw.test]
        self.sites = self.draw.sites()
        self.ledger = Ledger(InProcess(self.sites))
        self.problem = choose_penalty(self.ledger)
        self.setup = self.ledger.costs
        lam = self.problem.penalty.lam
        self.where: Record = {"scenario": scenario.name, "replicate": number, "lam": lam}
        self._known: dict[bytes, Record] = {}

    @cached_property
    def pooled(self) -> LeastSquares:
        """All training records together."""
        return pool(self.draw.training)

    @cached_property
    def reference(self) -> Reference:
        """The pooled solution at the common penalty."""
        return solve_reference(self.pooled, self.problem.penalty.lam)

    def validate(self, models: Array) -> tuple[Validation, Costs]:
        """Errors of candidates on the second validation samples, and what asking cost."""
        before = self.ledger.costs
        return validate(self.ledger, models, exact=True), self.ledger.costs - before

    def gaps(self, b: Array) -> dict[str, float]:
        """How far the pooled objective is above its optimum, alone: cheaper than all outcomes."""
        objective = self.pooled.value(b) + self.problem.penalty.value(b)
        gap = objective - self.reference.objective
        relative = gap / max(1.0, abs(self.reference.objective))
        return {"objective": objective, "gap": gap, "relative_gap": relative}

    def evaluate(self, b: Array) -> Record:
        """Outcomes of one model; a model seen before is not evaluated twice."""
        b = np.ascontiguousarray(b)
        key = b.tobytes()
        if key not in self._known:
            off = stationarity(b, self.pooled.gradient(b), self.problem.penalty)
            added = {name: measure(b, self) for name, measure in METRICS.items()}
            optimality: Record = {**self.gaps(b), "stationarity": off, **added}
            self._known[key] = self.compare(b) | optimality
        return self._known[key]

    def compare(self, b: Array) -> Record:
        """What one model selects and predicts, against the truth."""
        truth = self.draw.truth
        errors = [part.residual(b) for part in self.test]
        rows = sum(part.m for part in self.test)
        return support_record(b, truth) | {
            "test_mse": sum(float((e * e).sum()) for e in errors) / rows,
            "coef_error": float(np.sqrt(((b - truth) ** 2).sum())),
        }

    def outcome(self, b: Array, costs: Costs, **labels: str | int | float | None) -> Record:
        """One outcome row."""
        spent = cost_record(costs)
        return {"record": "outcome"} | self.where | labels | self.evaluate(b) | spent

    def records(self) -> list[Record]:
        """One row per local penalty choice, and one for the pooled reference."""
        reference = self.evaluate(self.reference.coefficients) | {
            "record": "reference",
            "solver": self.reference.method,
            "solver_steps": self.reference.knots,
            "duality_gap": self.reference.gap,
            "met": self.reference.met,
        }
        return [*self.penalty_records(), self.where | reference]

    def penalty_records(self) -> list[Record]:
        """Each site's own choice, with the worst gap along its path."""
        return [
            self.where
            | {
                "record": "penalty",
                "site": site.name,
                "site_lam": search.lam,
                "site_rows": site.rows,
                "worst_gap": float(search.path.gaps.max()),
                "fallbacks": search.path.fallbacks,
                "met": bool(search.path.met.all()),
                "penalty_steps": search.path.knots,
            }
            for site, search in zip(self.sites, map(local_search, self.sites), strict=True)
        ]


Measure = Callable[[Array, Trial], float]
METRICS: dict[str, Measure] = {}


def add_metric(column: Column, measure: Measure) -> None:
    """Record and report one number more of every model: a metric from outside the package."""
    COLUMNS[column.name] = column
    METRICS[column.name] = measure


def support_record(b: Array, truth: Array) -> Record:
    """Precision, recall, F1 and number active at the three cutoffs; empty models score zero."""
    record: Record = {}
    true = truth != 0
    for suffix, cutoff in CUTOFFS.items():
        active = np.abs(b) > cutoff
        hits = int((active & true).sum())
        precision = hits / int(active.sum()) if active.any() else 0.0
        recall = hits / int(true.sum()) if true.any() else 0.0
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        record |= {
            f"precision{suffix}": precision,
            f"recall{suffix}": recall,
            f"f1{suffix}": f1,
            f"active{suffix}": int(active.sum()),
        }
    return record


def cost_record(costs: Costs) -> Record:
    """Ledger columns of one fit: all uploads and downloads, training steps, seconds by phase."""
    total = costs.total()
    training = costs.total("training")
    record: Record = {
        "upload_bytes": total.upload,
        "download_bytes": total.download,
        "framing_bytes": total.framing,
        "training_upload_bytes": training.upload,
        "local_steps": costs.most_steps("training"),
        "operations": training.operations,
        "penalty_steps": costs.most_steps("penalty"),
        "penalty_operations": costs.total("penalty").operations,
    }
    for kind in ("penalty", "rate", "training", "validation"):
        record[f"seconds_{kind}"] = costs.seconds.get(kind)
    return record
