"""Fits by goal against the paper's four procedures, at 100 uploads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedlasso.fitting import GOALS, Fit, GoalFit, Panel, fit, fit_for
from fedlasso.numerics import one_thread
from fedlasso.study.outcomes import Record
from fedlasso.study.paper import PaperStudy
from fedlasso.study.scenario import Scenario
from fedlasso.study.trial import Trial

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TunedStudy(PaperStudy):
    """``goal:prediction``, ``goal:selection`` and ``goal:objective`` beside CD, ST, P and DA."""

    name: ClassVar[str] = "tuned"
    panels: ClassVar[tuple[Panel, ...]] = ("upload",)
    budgets: tuple[int, ...] = (100,)

    @one_thread()
    def replicate(self, scenario: Scenario, number: int) -> list[Record]:
        """All records of one replicate."""
        trial = Trial(scenario, self.seed, number)
        return [*trial.records(), *self.rows(trial), *self._goals(trial)]

    def _goals(self, trial: Trial) -> Iterator[Record]:
        for budget in self.budgets:
            for goal in GOALS:
                # Only the objective is that of the inherited penalty, and pays for its search.
                inherits = goal == "objective"
                result: Fit | GoalFit
                if inherits:
                    result = fit(
                        trial.ledger, "Secant", penalty=trial.problem.penalty, rounds=budget
                    )
                else:
                    result = fit_for(trial.ledger, goal, uploads=budget)
                costs = trial.setup + result.costs if inherits else result.costs
                yield trial.outcome(
                    result.coefficients, costs, method=f"goal:{goal}", budget=budget,
                    panel="upload", rule="min", rounds=result.rounds, candidate=result.setting,
                )  # fmt: skip

    @staticmethod
    def conclude(rows: pd.DataFrame) -> list[str]:
        """Where the goal-directed fits beat each of the paper's four at its best epoch count."""
        return [
            *_compare(rows, "goal:prediction", "test_mse", -1),
            *_compare(rows, "goal:selection", "f1", 1),
        ]


def _compare(rows: pd.DataFrame, goal: str, metric: str, sign: int) -> list[str]:
    """One line per scenario: the goal against the best of the others, paired within replicate."""
    rows = rows[rows["rule"] == "min"]
    lines, wins = [], 0
    scenarios = list(dict.fromkeys(rows["scenario"]))
    for scenario in scenarios:
        here = rows[rows["scenario"] == scenario]
        ours = here[here["method"] == goal].set_index("replicate")[metric]
        others = here[~here["method"].str.startswith("goal:")]
        means = others.groupby(["method", "epochs"])[metric].mean()
        method, epochs = means.idxmax() if sign > 0 else means.idxmin()
        rival = others[(others["method"] == method) & (others["epochs"] == epochs)]
        difference = ours - rival.set_index("replicate")[metric]
        won = bool(sign * difference.mean() > 0)
        wins += won
        se = difference.std(ddof=1) / np.sqrt(len(difference))
        lines.append(
            f"  {scenario}: {ours.mean():.4g} against {method} (E = {epochs:g}) "
            f"{means.loc[(method, epochs)]:.4g}, difference {difference.mean():+.3g} "
            f"(SE {se:.2g}){'' if won else ', not better'}"
        )
    head = f"{goal} has better mean {metric} than each of CD, ST, P, DA at every epoch count in"
    return [f"{head} {wins} of {len(scenarios)} scenarios", *lines]
