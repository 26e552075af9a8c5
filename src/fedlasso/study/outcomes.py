"""One replicate, and what is measured of its fits once the truth may be looked at."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fedlasso.federation import Costs, InProcess, Ledger
from fedlasso.fitting import ACTIVE, Run, choose_penalty, local_search, validate, within_uploads
from fedlasso.fitting.validation import Validation
from fedlasso.numerics import (
    DEFAULT_LOSS,
    Array,
    LeastSquares,
    Reference,
    find_loss,
    make_sample,
    solve_reference,
    stationarity,
)
from fedlasso.procedures import Problem, Procedure
from fedlasso.study.record_columns import COLUMNS, Field
from fedlasso.study.replicate_data import ReplicateData, pool
from fedlasso.study.scenario import Scenario

Record = dict[str, str | int | float | bool | None]
# A relative gap at which the pooled optimum counts as reached.
TARGET = 1e-8
CUTOFFS: Mapping[str, float] = {"": ACTIVE, "_1e6": 1e-6, "_1e2": 1e-2}


class Trial:
    """One replicate: its draw, its metered sites, the common penalty and the pooled optimum.

    As it stands it is about least squares. Responses of other kinds have another `choose_problem`,
    `objective`, `optimum` and `compare`. ``setup`` is what choosing the penalty cost, and ``where``
    are the columns that every record of the replicate carries.
    """

    # A relative gap is a share of the optimum, or of this where that is smaller.
    least: ClassVar[float] = 1.0

    def __init__(self, draw: ReplicateData, where: Record, loss: str = DEFAULT_LOSS) -> None:
        self.draw = draw
        self.test = [make_sample(X, y, find_loss(loss)) for X, y in draw.test]
        self.sites = draw.sites(loss)
        self.federation = InProcess(self.sites)
        self.ledger = Ledger(self.federation)
        self.problem = self.choose_problem()
        self.setup = self.ledger.costs
        self.where: Record = where | {"lam": self.problem.penalty.lam}
        self._known: dict[bytes, Record] = {}

    @classmethod
    def of(cls, scenario: Scenario, seed: int, number: int) -> Self:
        """Draw one replicate of a scenario."""
        draw = scenario.draw(scenario.generator(seed, number))
        return cls(draw, {"scenario": scenario.name, "replicate": number})

    def choose_problem(self) -> Problem:
        """The problem at the common penalty, which the sites choose."""
        return choose_penalty(self.ledger)

    @cached_property
    def pooled(self) -> LeastSquares:
        """All training records together."""
        return pool(self.draw.training)

    @cached_property
    def reference(self) -> Reference:
        """The pooled solution at the common penalty."""
        return solve_reference(self.pooled, self.problem.penalty.lam)

    @property
    def optimum(self) -> float:
        """The smallest pooled objective."""
        return self.reference.objective

    def objective(self, b: Array) -> float:
        """The pooled objective at the common penalty."""
        return self.pooled.value(b) + self.problem.penalty.value(b)

    def gaps(self, b: Array) -> dict[str, float]:
        """How far the pooled objective is above its optimum, alone: cheaper than all outcomes."""
        objective = self.objective(b)
        gap = objective - self.optimum
        relative = gap / max(self.least, abs(self.optimum))
        return {"objective": objective, "gap": gap, "relative_gap": relative}

    def relative_gaps(self, models: Array) -> list[float]:
        """The relative gap of every candidate."""
        return [self.gaps(np.ascontiguousarray(b))["relative_gap"] for b in models.T]

    def optimality(self, b: Array) -> Record:
        """How far a model is from the pooled optimum."""
        off = stationarity(b, self.pooled.gradient(b), self.problem.penalty)
        return {**self.gaps(b), "stationarity": off}

    def compare(self, b: Array) -> Record:
        """What one model selects and predicts, against the truth."""
        far = float(np.sqrt(((b - self.draw.truth) ** 2).sum()))
        errors: Record = {"test_mse": self.test_error(b), "coef_error": far}
        return support_record(b, self.draw.truth) | errors

    def test_error(self, b: Array) -> float:
        """Mean deviance of the test records: squared errors for least squares."""
        total = sum(float(part.errors(b).sum()) for part in self.test)
        return total / sum(part.m for part in self.test)

    def evaluate(self, b: Array) -> Record:
        """Outcomes of one model; a model seen before is not evaluated twice."""
        b = np.ascontiguousarray(b)
        key = b.tobytes()
        if key not in self._known:
            added: Record = {name: measure(b, self) for name, measure in METRICS.items()}
            self._known[key] = self.compare(b) | self.optimality(b) | added
        return self._known[key]

    def validate(self, models: Array) -> tuple[Validation, Costs]:
        """Errors of candidates on the second validation samples, and what asking cost."""
        before = self.ledger.costs
        return validate(self.ledger, models, exact=True), self.ledger.costs - before

    def outcome(self, b: Array, costs: Costs | None, **labels: str | int | float | None) -> Record:
        """One outcome row; what nobody could fit across sites has no costs."""
        spent = cost_record(costs) if costs is not None else {}
        return {"record": "outcome"} | self.where | labels | self.evaluate(b) | spent

    def trace(self, models: Array, method: str, epochs: int | None, uploads: int) -> Record:
        """The smallest gap among the candidates after so many uploads, all of them charged."""
        told: Record = {"record": "trace", "method": method, "epochs": epochs, "uploads": uploads}
        return self.where | told | {"relative_gap": min(self.relative_gaps(models))}

    def references(self) -> list[Record]:
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


class Watch:
    """When some candidate of a run first came within the target of the pooled optimum."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.needed: float | None = None

    def look(self, run: Run[Any]) -> None:
        """Look at the models after a round."""
        if self.needed is None and min(self.trial.relative_gaps(run.models)) <= TARGET:
            self.needed = run.uploads


class Reader:
    """A run of a procedure that is read after so many uploads, and looked at after every round."""

    def __init__(
        self,
        trial: Trial,
        procedure: Procedure[Any],
        look: Callable[[Run[Any]], None] = lambda run: None,
    ) -> None:
        self.trial = trial
        self.run = Run(trial.ledger, procedure, trial.problem)
        self._look = look
        self._reading = Costs()

    def go_on(self, stop: Callable[[Run[Any]], bool]) -> None:
        """Go on until the procedure is done or the rule says stop."""
        for _ in self.run.rounds(stop):
            self._look(self.run)

    def read(self, uploads: int, **labels: str | int | None) -> Record:
        """The outcome within so many uploads, of the candidate that validation chooses."""
        self.go_on(within_uploads(uploads))
        # What reading at smaller budgets cost is not part of this one's bill.
        training = self.run.costs - self._reading
        models = self.run.models
        validation, asking = self.trial.validate(models)
        self._reading += asking
        chosen = validation.select("min")
        labels |= {"rounds": self.run.state.round}
        setting = self.run.procedure.settings[chosen]
        costs = self.trial.setup + training + asking
        return self.trial.outcome(models[:, chosen], costs, **labels, candidate=setting)


TrialMeasure = Callable[[Array, Trial], float]
METRICS: dict[str, TrialMeasure] = {}


def add_metric(column: Field, measure: TrialMeasure) -> None:
    """Record and report one number more of every model: a metric from outside the package."""
    COLUMNS[column.name] = column
    METRICS[column.name] = measure


def support_record(b: Array, truth: Array) -> Record:
    """Precision, recall, F1 and number active at the three cutoffs; empty models score zero."""
    record: Record = {}
    true = truth != 0
    for suffix, cutoff in CUTOFFS.items():
        active = np.abs(b) > cutoff
        count = int(active.sum())
        hits = int((active & true).sum())
        precision = hits / count if count else 0.0
        recall = hits / int(true.sum()) if true.any() else 0.0
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        scores = {"precision": precision, "recall": recall, "f1": f1, "active": count}
        record |= {f"{name}{suffix}": score for name, score in scores.items()}
    return record


def upload_record(costs: Costs, p: int, sites: int) -> Record:
    """Ledger columns of a fit as a whole: uploads are vectors of p numbers per site."""
    total = costs.total()
    uploads = total.upload / (8 * p * sites)
    return {"uploads": uploads, "upload_bytes": total.upload, "download_bytes": total.download}


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
