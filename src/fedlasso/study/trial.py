"""What every study does with a replicate first: draw, choose the penalty, solve the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fedlasso.federation import Costs, InProcess, Ledger
from fedlasso.fitting import choose_penalty, local_search
from fedlasso.numerics import Array, solve_reference
from fedlasso.sites import Site
from fedlasso.study.outcomes import Evaluator, Record, cost_record
from fedlasso.study.scenario import Scenario, pool


class Trial:
    """One replicate: its draw, its metered sites, the common penalty and the pooled reference.

    Attributes
    ----------
    draw, ledger, problem : data, federation, and what the server knows of it
    setup : what choosing the penalty cost
    where : columns that every record of the replicate carries
    """

    def __init__(self, scenario: Scenario, seed: int, number: int) -> None:
        self.draw = scenario.draw(scenario.generator(seed, number))
        self._sites = self.draw.sites()
        self.ledger = Ledger(InProcess(self._sites))
        self.problem = choose_penalty(self.ledger)
        self.setup = self.ledger.costs
        pooled = pool(self.draw.training)
        lam = self.problem.penalty.lam
        self.reference = solve_reference(pooled, lam)
        self.where: Record = {
            "scenario": scenario.name,
            "replicate": number,
            "lam": lam,
        }
        self._evaluate = Evaluator(self.draw, pooled, self.problem.penalty, self.reference)
        self.relative_gap = self._evaluate.relative_gap

    def evaluate(self, b: Array) -> Record:
        """Outcomes of one model."""
        return self._evaluate(np.ascontiguousarray(b))

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
        return [self.where | r for r in (*penalty_records(self._sites), reference)]


def penalty_records(sites: Sequence[Site]) -> Iterator[Record]:
    """Each site's own choice, with the worst gap along its path."""
    for site in sites:
        search = local_search(site)
        yield {
            "record": "penalty",
            "site": site.name,
            "site_lam": search.lam,
            "site_rows": site.rows,
            "worst_gap": float(search.path.gaps.max()),
            "fallbacks": search.path.fallbacks,
            "met": bool(search.path.met.all()),
            "penalty_steps": search.path.knots,
        }
