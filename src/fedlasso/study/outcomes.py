"""One replicate, and the outcomes of its fits against the truth."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fedlasso import numerics
from fedlasso.federation import Costs, InProcess, Ledger
from fedlasso.fitting import ACTIVE, Run, choose_penalty, local_search, validate, within_uploads
from fedlasso.fitting.validation import Validation
from fedlasso.numerics import DEFAULT_LOSS, Array, LeastSquares, Reference
from fedlasso.procedures import Problem, Procedure
from fedlasso.study.record_columns import COLUMNS, Field
from fedlasso.study.replicate_data import ReplicateData, pool
from fedlasso.study.scenario import Scenario

Record = dict[str, str | int | float | bool | None]
# The relative gap at which the pooled optimum counts as reached.
TARGET = 1e-8
CUTOFFS: Mapping[str, float] = {"": ACTIVE, "_1e6": 1e-6, "_1e2": 1e-2}


class Trial:
    """One replicate: its data, its metered sites, the common penalty and the pooled optimum.

    This class is for least squares; other families override `choose_problem`, `objective`,
    `optimum` and `compare`. ``setup`` is the cost of choosing the penalty, ``where`` the columns
    that every record of the replicate has.
    """

    # A relative gap is divided by the optimum, or by this if larger.
    least: ClassVar[float] = 1.0

    def __init__(self, draw: ReplicateData, where: Record, loss: str = DEFAULT_LOSS) -> None:
        self.draw = draw
        self.test = [numerics.make_sample(X, y, numerics.find_loss(loss)) for X, y in draw.test]
        self.sites = draw.sites(loss)
        self.federation = InProcess(self.sites)
        self.ledger = Ledger(self.federation)
        self.problem = self.choose_problem()
        self.setup = self.ledger.costs
        self.where: Record = where | {"lam": self.problem.penalty.lam}
        self._known: dict[bytes, Record] = {}

    @classmethod
    def of(cls, scenario: Scenario, seed: int, number: int) -> Self:
        draw = scenario.draw(scenario.generator(seed, number))
        return cls(draw, {"scenario": scenario.name, "replicate": number})

    def choose_problem(self) -> Problem:
        """Return the problem at the common penalty, which the sites choose."""
        return choose_penalty(self.ledger)

    @cached_property
    def pooled(self) -> LeastSquares:
        return pool(self.draw.training)

    @cached_property
    def reference(self) -> Reference:
        return numerics.solve_reference(self.pooled, self.problem.penalty.lam)

    @property
    def optimum(self) -> float:
        return self.reference.objective

    def objective(self, b: Array) -> float:
        return self.pooled.value(b) + self.problem.penalty.value(b)

    def gaps(self, b: Array) -> dict[str, float]:
        """Return the pooled objective and its gap to the optimum: cheaper than all outcomes."""
        objective = self.objective(b)
        gap = objective - self.optimum
        relative = gap / max(self.least, abs(self.optimum))
        return {"objective": objective, "gap": gap, "relative_gap": relative}

    def relative_gaps(self, models: Array) -> list[float]:
        return [self.gaps(np.ascontiguousarray(b))["relative_gap"] for b in models.T]

    def optimality(self, b: Array) -> Record:
        """Return gaps and violation of the optimality conditions."""
        violation = numerics.stationarity(b, self.pooled.gradient(b), self.problem.penalty)
        return {**self.gaps(b), "stationarity": violation}

    def compare(self, b: Array) -> Record:
        """Return how well a model selects and predicts, against the truth."""
        distance = float(np.sqrt(((b - self.draw.truth) ** 2).sum()))
        errors: Record = {"test_mse": self.test_error(b), "coef_error": distance}
        return support_record(b, self.draw.truth) | errors

    def test_error(self, b: Array) -> float:
        """Return the mean deviance of the test records: squared errors for least squares."""
        total = sum(float(part.errors(b).sum()) for part in self.test)
        return total / sum(part.m for part in self.test)

    def evaluate(self, b: Array) -> Record:
        """Return the outcomes of one model; a model seen before is not evaluated twice."""
        b = np.ascontiguousarray(b)
        key = b.tobytes()
        if key not in self._known:
            added: Record = {name: measure(b, self) for name, measure in METRICS.items()}
            self._known[key] = self.compare(b) | self.optimality(b) | added
        return self._known[key]

    def validate(self, models: Array) -> tuple[Validation, Costs]:
        """Return candidates' errors on the second validation samples, and their cost."""
        before = self.ledger.costs
        return validate(self.ledger, models, exact=True), self.ledger.costs - before

    def outcome(self, b: Array, costs: Costs | None, **labels: str | int | float | None) -> Record:
        """Return one outcome row; a fit that sites could not compute has no costs."""
        spent = cost_record(costs) if costs is not None else {}
        return {"record": "outcome"} | self.where | labels | self.evaluate(b) | spent

    def trace(self, models: Array, method: str, epochs: int | None, uploads: int) -> Record:
        """Return the smallest gap among the candidates after `uploads`, all of them charged."""
        row: Record = {"record": "trace", "method": method, "epochs": epochs, "uploads": uploads}
        return self.where | row | {"relative_gap": min(self.relative_gaps(models))}

    def references(self) -> list[Record]:
        """Return one row per local penalty choice, and one for the pooled reference."""
        pooled = self.reference
        outcome = self.evaluate(pooled.coefficients) | {"record": "reference"}
        solver: Record = {"solver": pooled.method, "solver_steps": pooled.knots}
        exact: Record = {"duality_gap": pooled.gap, "met": pooled.met}
        return [*self.penalty_records(), self.where | outcome | solver | exact]

    def penalty_records(self) -> list[Record]:
        """Return each site's own choice, with the worst gap along its path."""
        records = []
        for site in self.sites:
            search = local_search(site)
            path = search.path
            row: Record = {"record": "penalty", "site": site.name, "site_lam": search.lam}
            row |= {"site_rows": site.rows, "worst_gap": float(path.gaps.max())}
            row |= {"fallbacks": path.fallbacks, "met": bool(path.met.all())}
            records.append(self.where | row | {"penalty_steps": path.knots})
        return records


class Watch:
    """Record the costs until some candidate of a run is within TARGET of the pooled optimum."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.needed: Record = {"uploads_needed": None, "trips_needed": None}

    @property
    def waits(self) -> bool:
        """Whether none is that close yet."""
        return self.needed["uploads_needed"] is None

    def look(self, run: Run[Any]) -> None:
        if self.waits and min(self.trial.relative_gaps(run.models)) <= TARGET:
            self.note(run)

    def note(self, run: Run[Any]) -> None:
        """Record the uploads and the round trips so far."""
        self.needed = {"uploads_needed": run.uploads, "trips_needed": run.trips}


class Reader:
    """A run of a procedure, evaluated at given numbers of uploads; `look` sees every round."""

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
        """Continue until the procedure has finished or `stop` holds."""
        for _ in self.run.rounds(stop):
            self._look(self.run)

    def read(self, uploads: int, **labels: str | int | None) -> Record:
        """Return the outcome within `uploads`, of the candidate that validation chooses."""
        self.go_on(within_uploads(uploads))
        # Validation at smaller budgets is not charged to this one.
        training = self.run.costs - self._reading
        models = self.run.models
        validation, cost = self.trial.validate(models)
        self._reading += cost
        chosen = validation.select("min")
        labels |= {"rounds": self.run.state.round}
        setting = self.run.procedure.settings[chosen]
        costs = self.trial.setup + training + cost
        return self.trial.outcome(models[:, chosen], costs, **labels, candidate=setting)


TrialMeasure = Callable[[Array, Trial], float]
METRICS: dict[str, TrialMeasure] = {}


def add_metric(column: Field, measure: TrialMeasure) -> None:
    """Add a metric from outside the package: recorded and reported for every model."""
    COLUMNS[column.name] = column
    METRICS[column.name] = measure


def support_record(b: Array, truth: Array) -> Record:
    """Return precision, recall, F1 and number active at the three cutoffs; 0 if none is active."""
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
    """Return the total traffic of a fit; an upload is a vector of p numbers per site."""
    total = costs.total()
    uploads = total.upload / (8 * p * sites)
    record: Record = {"uploads": uploads, "round_trips": costs.trips}
    return record | {"upload_bytes": total.upload, "download_bytes": total.download}


def cost_record(costs: Costs) -> Record:
    """Return the ledger columns of one fit: traffic, training steps, seconds by phase."""
    total = costs.total()
    training = costs.total("training")
    record: Record = {"upload_bytes": total.upload, "download_bytes": total.download}
    record |= {
        "round_trips": costs.trips,
        "framing_bytes": total.framing,
        "training_upload_bytes": training.upload,
    }
    record |= {"local_steps": costs.most_steps("training"), "operations": training.operations}
    record["penalty_steps"] = costs.most_steps("penalty")
    record["penalty_operations"] = costs.total("penalty").operations
    for kind in ("penalty", "rate", "training", "validation"):
        record[f"seconds_{kind}"] = costs.seconds.get(kind)
    return record
