"""Binomial, Poisson and Cox models: uploads until the pooled optimum, selection and prediction."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.families import find_family
from fedlasso.federation import InProcess
from fedlasso.fitting import Run, after_rounds, certify, fix_penalty, validate, within_uploads
from fedlasso.fitting.paths import has_risen, walk_down
from fedlasso.numerics import Array, one_thread
from fedlasso.procedures import Newton, Problem, Procedure, find_procedure
from fedlasso.sites import GradientAt
from fedlasso.study.family_summary import CONVERGENT, family_lines
from fedlasso.study.outcomes import TARGET, Reader, Record, Trial, Watch, support_record
from fedlasso.study.replicate_data import UNITS, draw_family
from fedlasso.study.scenario import Scenario

# Uploads after which methods that converge to the pooled optimum are stopped.
FOLLOWED = 400
# The path runs from lambda.max down to RATIO times that, and ends after RISES penalties without a
# new smallest error.
COUNT = 30
RATIO = 0.01
RISES = 4
ROUNDS = 10_000


class FamilyTrial(Trial):
    """One replicate of one family, at the penalty with the smallest validation deviance."""

    least: ClassVar[float] = 0.0

    def __init__(self, scenario: Scenario, family: str, seed: int, number: int) -> None:
        where: Record = {"scenario": scenario.name, "replicate": number, "family": family}
        draw = draw_family(scenario, family, seed, number)
        super().__init__(draw, where, find_family(family).loss.name)

    def choose_problem(self) -> Problem:
        """Return the problem at the penalty of the best path; the search is not charged."""
        return fix_penalty(self.ledger, choose_by_path(self.federation))

    @cached_property
    def optimum(self) -> float:
        run = Run(self.federation, Newton(tol=1e-13), self.problem)
        run.until(after_rounds(ROUNDS))
        return self.objective(run.models[:, 0])

    def objective(self, b: Array) -> float:
        """Return the pooled objective; for Cox, every site has its own baseline hazard."""
        loss = sum(site.rows * site.training.value(b) for site in self.sites) / self.problem.m
        return loss + self.problem.penalty.value(b)

    def optimality(self, b: Array) -> Record:
        return {**self.gaps(b)}

    def compare(self, b: Array) -> Record:
        return support_record(b, self.draw.truth) | {"test_deviance": self.test_error(b)}


def choose_by_path(federation: InProcess) -> float:
    """Return the penalty of a warm-started path with the smallest first validation deviance."""
    p = len(federation.columns)
    problem = fix_penalty(federation, 0.0)
    slopes = federation.total(GradientAt(np.zeros(p))).gradient / problem.m
    newton = Newton(tol=1e-4)
    state = None
    errors: list[float] = []
    penalties = float(np.abs(slopes).max()) * np.geomspace(1.0, RATIO, COUNT)

    def visit(lam: float) -> list[float]:
        nonlocal state
        own = replace(problem, penalty=problem.penalty.at(lam))
        begin = None if state is None else newton.go_on(own, state)
        run = Run(federation, newton, own, state=begin)
        state = run.until(after_rounds(ROUNDS))
        judged = validate(federation, run.models, purpose="penalty", exact=True)
        errors.append(float(judged.error[0]))
        return errors

    walk_down(penalties, visit, partial(has_risen, patience=RISES))
    return float(penalties[int(np.argmin(errors))])


@dataclass(frozen=True)
class FamilyStudy:
    """Binomial, Poisson and Cox models: uploads until the pooled optimum, selection, prediction.

    Every method fits at the penalty whose pooled optimum has the smallest deviance on the first
    validation sample; the second chooses among a method's candidates. Outcomes are recorded at 30
    and 100 uploads of p numbers per site. ``uploads_needed`` counts uploads until some candidate is
    within a relative gap of 1e-8 of the pooled optimum, all candidates charged, ``trips_needed``
    the exchanges with the sites until then, and ``uploads_certified`` uploads until that is
    certified, by Newton itself or by one certificate requested then. Newton and FISTA are followed
    for 400 uploads, the others to the last budget. Values not reached are missing. The penalty
    search is not charged.
    """

    name: ClassVar[str] = "families"
    summary_is_whole: ClassVar[bool] = True
    seed: int = 1
    families: tuple[str, ...] = tuple(UNITS)
    methods: tuple[str, ...] = ("Newton", "FISTA", "CD", "ST", "P", "DA", "Voting")
    epochs: tuple[int, ...] = (1, 5, 20)
    budgets: tuple[int, ...] = (30, 100)

    def __post_init__(self) -> None:
        if unknown := [family for family in self.families if family not in UNITS]:
            raise FedLassoError(f"no family is called {unknown[0]!r}; known: {', '.join(UNITS)}")
        for method in self.methods:
            find_procedure(method)
        for label in ("epochs", "budgets"):
            numbers = getattr(self, label)
            if list(numbers) != sorted(set(numbers)) or not numbers or numbers[0] < 1:
                raise FedLassoError(f"{label} is {numbers}; give increasing numbers from 1 up")

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        records = []
        for family in self.families:
            trial = FamilyTrial(scenario, family, self.seed, number)
            for method in map(find_procedure, self.methods):
                if method.name in ("CD", "ST", "P", "DA"):
                    for epochs in self.epochs:
                        records += self._follow(trial, method(epochs=epochs), epochs)
                else:
                    records += self._follow(trial, method(), None)
        return records

    def _follow(
        self, trial: FamilyTrial, procedure: Procedure[Any], epochs: int | None
    ) -> list[Record]:
        """Return one procedure's outcomes at every budget, with the uploads it needed."""
        watch = ProofWatch(trial)
        reader = Reader(trial, procedure, watch.look)
        rows = [
            reader.read(budget, epochs=epochs, method=procedure.name, budget=budget)
            for budget in self.budgets
        ]
        if procedure.name in CONVERGENT:
            enough = within_uploads(FOLLOWED)
            reader.go_on(lambda run: watch.certified is not None or enough(run))
        return [row | watch.needed | {"uploads_certified": watch.certified} for row in rows]

    conclude = staticmethod(family_lines)


class ProofWatch(Watch):
    """Record when a run first reached the pooled optimum, and when that was first certified."""

    certified: float | None = None

    def look(self, run: Run[Any]) -> None:
        if self.certified is not None:
            return
        gaps = self.trial.relative_gaps(run.models)
        best = int(np.argmin(gaps))
        if gaps[best] > TARGET:
            return
        if self.waits:
            self.note(run)
        problem: Problem = run.problem
        if isinstance(run.procedure, Newton):
            own = run.procedure.certificate(problem, run.state)
            if own is not None and own.relative_gap <= TARGET:
                self.certified = run.uploads
            return
        b = np.ascontiguousarray(run.models[:, best])
        if certify(self.trial.federation, problem, b).relative_gap <= TARGET:
            # A gradient, the loss and the dual value.
            self.certified = run.uploads + 1 + 2 / problem.p
