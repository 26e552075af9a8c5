"""Binomial, Poisson and Cox responses: uploads to the pooled optimum, and what is found there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Costs, InProcess, Ledger
from fedlasso.fitting import Run, after_rounds, certify, fix_penalty, validate, within_uploads
from fedlasso.numerics import Array, one_thread
from fedlasso.procedures import Newton, Problem, Procedure, find_procedure
from fedlasso.sites import GradientAt
from fedlasso.study.family_summary import ARRIVING, tell_families
from fedlasso.study.outcomes import Record, cost_record, support_record
from fedlasso.study.responses import UNITS, draw_family
from fedlasso.study.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

TARGET = 1e-8
# Methods that go to the pooled optimum are followed for so many uploads.
FOLLOWED = 400
# Penalties from the largest useful one down to this share of it; the path ends once the error has
# not been the smallest so many times.
COUNT = 30
RATIO = 0.01
RISES = 4
ROUNDS = 10_000


class FamilyTrial:
    """One replicate of one family: its draw, its metered sites, the penalty and the optimum.

    Attributes
    ----------
    draw, test : data, and the test samples among them
    ledger, problem : the federation, and what the server knows of it
    optimum : the smallest pooled objective at the penalty
    where : columns that every record carries
    """

    def __init__(self, scenario: Scenario, family: str, seed: int, number: int) -> None:
        self.draw = draw_family(scenario, family, seed, number)
        self.sites = self.draw.sites(family)
        self.test = [
            site.training for site in replace(self.draw, training=self.draw.test).sites(family)
        ]
        self.federation = InProcess(self.sites)
        lam = choose_by_path(self.federation)
        self.ledger = Ledger(self.federation)
        self.problem = fix_penalty(self.ledger, lam)
        self.setup = self.ledger.costs
        reference = Run(self.federation, Newton(tol=1e-13), self.problem)
        reference.until(after_rounds(ROUNDS))
        self.optimum = self.objective(reference.models[:, 0])
        self.where: Record = {
            "scenario": scenario.name,
            "replicate": number,
            "family": family,
            "lam": lam,
        }

    def objective(self, b: Array) -> float:
        """The pooled objective: of sites together, each with its own baseline hazard."""
        loss = sum(site.rows * site.training.value(b) for site in self.sites) / self.problem.m
        return loss + self.problem.penalty.value(b)

    def gap(self, b: Array) -> float:
        """How far the pooled objective is above its optimum, as a share of that."""
        return (self.objective(b) - self.optimum) / self.optimum

    def outcome(self, b: Array, costs: Costs, **labels: str | int | float | None) -> Record:
        """One outcome row."""
        deviance = sum(float(part.errors(b).sum()) for part in self.test)
        objective = self.objective(b)
        measured: Record = {
            "test_deviance": deviance / sum(part.m for part in self.test),
            "objective": objective,
            "gap": objective - self.optimum,
            "relative_gap": self.gap(b),
        }
        support = support_record(b, self.draw.truth)
        spent = cost_record(self.setup + costs)
        return {"record": "outcome"} | self.where | labels | support | measured | spent


def choose_by_path(federation: InProcess) -> float:
    """Return the penalty whose pooled model has the least deviance on the first validation sample.

    Along a path of pooled optima, each begun where the one before ended.
    """
    p = len(federation.columns)
    problem = fix_penalty(federation, 0.0)
    slopes = federation.total(GradientAt(np.zeros(p))).gradient / problem.m
    newton = Newton(tol=1e-4)
    state = None
    errors: list[float] = []
    penalties = float(np.abs(slopes).max()) * np.geomspace(1.0, RATIO, COUNT)
    for lam in penalties:
        problem = replace(problem, penalty=problem.penalty.at(lam))
        begin = None if state is None else newton.go_on(problem, state)
        run = Run(federation, newton, problem, state=begin)
        state = run.until(after_rounds(ROUNDS))
        errors.append(float(validate(federation, run.models, purpose="penalty").error[0]))
        if len(errors) - 1 - int(np.argmin(errors)) >= RISES:
            break
    return float(penalties[int(np.argmin(errors))])


@dataclass(frozen=True)
class FamilyStudy:
    """Yes or no, counts and survival times: uploads to the pooled optimum, and what is found.

    The twelve scenarios with binomial, Poisson and Cox responses, as `responses` draws them. The
    penalty is chosen by the deviance of pooled optima on the first validation sample, and every
    method fits at it; where a method has candidates, the second one chooses. The paper's four take
    every epoch count. Rows are read at 30 and at 100 uploads of p numbers from every site.
    ``uploads_needed`` says when some candidate first came within a relative gap of 1e-8 of the
    pooled optimum, all candidates charged, and ``uploads_certified`` when that was proven too: by
    Newton itself, and for others with one certificate asked for then. Newton and FISTA are followed
    for 400 uploads, the others, which end elsewhere, to the last reading. What a method did not
    reach is missing. The choice of the penalty is nobody's cost.
    """

    name: ClassVar[str] = "families"
    summary_is_whole: ClassVar[bool] = True
    seed: int = 1
    families: tuple[str, ...] = tuple(UNITS)
    methods: tuple[str, ...] = ("Newton", "FISTA", "CD", "ST", "P", "DA", "Voting")
    epochs: tuple[int, ...] = (1, 5, 20)
    budgets: tuple[int, ...] = (30, 100)

    def __post_init__(self) -> None:
        for family in self.families:
            if family not in UNITS:
                raise FedLassoError(f"no family is called {family!r}; known: {', '.join(UNITS)}")
        for method in self.methods:
            find_procedure(method)
        for label in ("epochs", "budgets"):
            numbers = getattr(self, label)
            if list(numbers) != sorted(set(numbers)) or not numbers or numbers[0] < 1:
                raise FedLassoError(f"{label} is {numbers}; give increasing numbers from 1 up")

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        """All records of one replicate: a pure function of (study, scenario, number)."""
        return [
            record for family in self.families for record in self._rows(scenario, family, number)
        ]

    def _rows(self, scenario: Scenario, family: str, number: int) -> Iterator[Record]:
        trial = FamilyTrial(scenario, family, self.seed, number)
        for method in self.methods:
            kind = find_procedure(method)
            if kind.name in ("CD", "ST", "P", "DA"):
                for epochs in self.epochs:
                    yield from self._follow(trial, kind(epochs=epochs), {"epochs": epochs})
            else:
                yield from self._follow(trial, kind(), {"epochs": None})

    def _follow(
        self, trial: FamilyTrial, procedure: Procedure[Any], labels: Record
    ) -> list[Record]:
        """One procedure, read at every budget and never beyond it, and how far it had to go."""
        run = Run(trial.ledger, procedure, trial.problem)
        watch = Watch(trial)
        rows: list[Record] = []
        reading = Costs()
        for budget in self.budgets:
            for _ in run.rounds(within_uploads(budget)):
                watch.look(run)
            # What reading at smaller budgets cost is not part of this one's bill.
            training = run.costs - reading
            before = trial.ledger.costs
            validation = validate(trial.ledger, run.models, exact=True)
            asking = trial.ledger.costs - before
            chosen = validation.select("min")
            row = trial.outcome(
                run.models[:, chosen],
                training + asking,
                **labels,
                method=procedure.name,
                budget=budget,
                rounds=run.state.round,
                candidate=procedure.settings[chosen],
            )
            rows.append(row)
            reading += asking
        if procedure.name in ARRIVING:
            for _ in run.rounds(lambda run: watch.over or within_uploads(FOLLOWED)(run)):
                watch.look(run)
        found: Record = {"uploads_needed": watch.needed, "uploads_certified": watch.certified}
        return [row | found for row in rows]

    @staticmethod
    def conclude(rows: pd.DataFrame) -> list[str]:
        """Uploads to the pooled optimum, and every method at the last reading; family by family."""
        return tell_families(rows)


class Watch:
    """When a run first reached the pooled optimum, and when that was first proven."""

    def __init__(self, trial: FamilyTrial) -> None:
        self.trial = trial
        self.needed: float | None = None
        self.certified: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing is left to see."""
        return self.certified is not None

    def look(self, run: Run[Any]) -> None:
        """Look at the models after a round."""
        if self.over:
            return
        gaps = [self.trial.gap(b) for b in run.models.T]
        best = int(np.argmin(gaps))
        if gaps[best] > TARGET:
            return
        if self.needed is None:
            self.needed = run.uploads
        problem: Problem = run.problem
        own = run.procedure.certificate(problem, run.state)
        if isinstance(run.procedure, Newton):
            if own is not None and own.relative_gap <= TARGET:
                self.certified = run.uploads
            return
        b = np.ascontiguousarray(run.models[:, best])
        if certify(self.trial.federation, problem, b).relative_gap <= TARGET:
            # A gradient, the loss and the dual value.
            self.certified = run.uploads + 1 + 2 / problem.p
