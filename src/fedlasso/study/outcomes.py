"""What is measured of a fitted model once the truth may be looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedlasso.federation import Costs
from fedlasso.fitting import ACTIVE
from fedlasso.numerics import Array, LeastSquares, Penalty, Reference, stationarity
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
        self._truth = draw.truth
        self._test = [LeastSquares(X, y) for X, y in draw.test]
        self._pooled = pooled
        self._penalty = penalty
        self._reference = reference
        self._known: dict[bytes, Record] = {}

    def __call__(self, b: Array) -> Record:
        """Outcomes of one model; a model seen before is not evaluated twice."""
        key = b.tobytes()
        if key not in self._known:
            self._known[key] = self._evaluate(b)
        return self._known[key]

    def relative_gap(self, b: Array) -> float:
        """How far the pooled objective is above its optimum, alone: cheaper than all outcomes."""
        gap = self._objective(b) - self._reference.objective
        return gap / max(1.0, abs(self._reference.objective))

    def _objective(self, b: Array) -> float:
        return self._pooled.value(b) + self._penalty.value(b)

    def _evaluate(self, b: Array) -> Record:
        objective = self._objective(b)
        predicted = prediction_record(b, self._truth, self._test)
        return (
            support_record(b, self._truth)
            | predicted
            | {
                "objective": objective,
                "gap": objective - self._reference.objective,
                "relative_gap": self.relative_gap(b),
                "stationarity": stationarity(b, self._pooled.gradient(b), self._penalty),
            }
        )


def cost_record(costs: Costs) -> Record:
    """Ledger columns of one fit: all uploads and downloads, training steps, seconds by phase."""
    total, training = costs.total(), costs.total("training")
    record: Record = {
        "upload_bytes": total.upload,
        "download_bytes": total.download,
        "framing_bytes": total.upload_framing + total.download_framing,
        "training_upload_bytes": training.upload,
        "local_steps": costs.most_steps("training"),
        "operations": training.operations,
        "penalty_steps": costs.most_steps("penalty"),
        "penalty_operations": costs.total("penalty").operations,
    }
    for kind in ("penalty", "rate", "training", "validation"):
        record[f"seconds_{kind}"] = costs.seconds.get(kind)
    return record
