"""What is measured of a fitted model once the truth may be looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fedlasso.federation import Costs
from fedlasso.fitting import ACTIVE
from fedlasso.numerics import Array, LeastSquares, Penalty, Reference, stationarity
from fedlasso.study.columns import COLUMNS, Column
from fedlasso.study.scenario import Draw

Record = dict[str, str | int | float | bool | None]
CUTOFFS: Mapping[str, float] = {"": ACTIVE, "_1e6": 1e-6, "_1e2": 1e-2}


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


def prediction_record(b: Array, truth: Array, test: Sequence[LeastSquares]) -> Record:
    """Test error over the sites' test samples, and distance to the true coefficients."""
    errors = [part.residual(b) for part in test]
    return {
        "test_mse": sum(float((e * e).sum()) for e in errors) / sum(part.m for part in test),
        "coef_error": float(np.sqrt(((b - truth) ** 2).sum())),
    }


class Evaluator:
    """Evaluates models on one draw, against its pooled reference."""

    def __init__(
        self, draw: Draw, pooled: LeastSquares, penalty: Penalty, reference: Reference
    ) -> None:
        self.draw = draw
        self.pooled = pooled
        self.penalty = penalty
        self.reference = reference
        self.test = [LeastSquares(X, y) for X, y in draw.test]
        self._known: dict[bytes, Record] = {}

    def __call__(self, b: Array) -> Record:
        """Outcomes of one model; a model seen before is not evaluated twice."""
        key = b.tobytes()
        if key not in self._known:
            self._known[key] = self._evaluate(b)
        return self._known[key]

    def relative_gap(self, b: Array) -> float:
        """How far the pooled objective is above its optimum, alone: cheaper than all outcomes."""
        gap = self._objective(b) - self.reference.objective
        return gap / max(1.0, abs(self.reference.objective))

    def _objective(self, b: Array) -> float:
        return self.pooled.value(b) + self.penalty.value(b)

    def _evaluate(self, b: Array) -> Record:
        objective = self._objective(b)
        optimality: Record = {
            "objective": objective,
            "gap": objective - self.reference.objective,
            "relative_gap": self.relative_gap(b),
            "stationarity": stationarity(b, self.pooled.gradient(b), self.penalty),
        }
        added: Record = {name: measure(b, self) for name, measure in METRICS.items()}
        truth = self.draw.truth
        return (
            support_record(b, truth) | prediction_record(b, truth, self.test) | optimality | added
        )


Measure = Callable[[Array, Evaluator], float]
METRICS: dict[str, Measure] = {}


def add_metric(column: Column, measure: Measure) -> None:
    """Record and report one number more of every model: a metric from outside the package."""
    COLUMNS[column.name] = column
    METRICS[column.name] = measure


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
