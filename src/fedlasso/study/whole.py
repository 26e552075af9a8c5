"""The paper's four, Secant, SecantWS and fits by goal on the same draws."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from fedlasso.fitting import GOALS, RULES, within_uploads
from fedlasso.procedures import find_procedure
from fedlasso.study.outcomes import Reader, Record, Trial
from fedlasso.study.paper import COMPARED, PaperStudy, goal_rows

# Columns about the objective at the penalty that the paper's procedures share.
_OF_THE_OBJECTIVE = ("objective", "gap", "relative_gap", "stationarity")


@dataclass(frozen=True)
class WholeStudy(PaperStudy):
    """The paper's four, Secant, SecantWS and fits by goal on the same data sets.

    Secant, SecantWS and the goals have no epochs and no candidates to choose by a rule, so their
    rows are recorded under both rules, and under the joint limits if their local steps comply. Fits
    for prediction and selection have penalties of their own, hence no gap to the common optimum;
    they are recorded twice, fitted to all rows and to the training rows only.
    """

    name: ClassVar[str] = "whole"
    traced: ClassVar[tuple[int, ...]] = (1, 2, 3, 5, 10, 15, 20, 30, 50, 70, 100)
    further: tuple[str, ...] = ("Secant", "SecantWS")
    goals: tuple[str, ...] = COMPARED

    def __post_init__(self) -> None:
        super().__post_init__()
        for method in self.further:
            find_procedure(method)

    def rows(self, trial: Trial) -> Iterator[Record]:
        yield from super().rows(trial)
        for method in self.further:
            yield from self._follow(trial, method)
        for budget, goal in product(self.budgets, self.goals):
            for row in goal_rows(trial, goal, budget):
                if not GOALS[goal].is_lasso:
                    row |= dict.fromkeys(_OF_THE_OBJECTIVE)
                yield from self._in_panels(row, budget)

    def _follow(self, trial: Trial, method: str) -> Iterator[Record]:
        """Yield traces and outcomes of one procedure, each within its number of uploads."""
        reader = Reader(trial, find_procedure(method)())
        for uploads in sorted({*self.traced, *self.budgets}):
            reader.go_on(within_uploads(uploads))
            if uploads in self.traced:
                yield trial.trace(reader.run.models, method, None, uploads)
            if uploads in self.budgets:
                row = reader.read(uploads, method=method, budget=uploads)
                # There is only one candidate.
                yield from self._in_panels(row | {"candidate": None}, uploads)

    def _in_panels(self, row: Record, budget: int) -> Iterator[Record]:
        """Yield the row under every rule, in every panel whose limits the fit meets."""
        steps = row["local_steps"]
        for panel, rule in product(self.panels, RULES):
            if panel == "upload" or (isinstance(steps, int) and steps <= 5 * budget):
                yield row | {"panel": panel, "rule": rule}
