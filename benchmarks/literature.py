"""Uploads until the pooled optimum: the table of docs/procedures.md.

    python benchmarks/literature.py [draws]

An upload is p numbers from a site, averaged over the sites; every path is charged, and what the
best path alone sent is shown beside. The penalty is the sites' weighted choice, but for ten sites,
where that gives the empty model, the pooled one.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from fedlasso import InProcess, Site
from fedlasso.fitting import Run, choose_penalty, search_penalty
from fedlasso.numerics import Array, LeastSquares, Sample, solve_reference
from fedlasso.procedures import Problem, Procedure, Secant
from fedlasso.procedures.csl import CSL, DANE
from fedlasso.procedures.fista import FISTA
from fedlasso.procedures.local_gradient import ProxSkip
from fedlasso.procedures.splitting import ADMM, FedDR
from fedlasso.procedures.working_set_gram import WorkingSetGram
from fedlasso.procedures.working_set_secant import WorkingSetSecant

P, ACTIVE, LIMIT, GAP = 600, 30, 200, 1e-8


@dataclass(frozen=True)
class Scenario:
    sizes: tuple[int, ...] = (268, 268, 264)
    held_out: tuple[int, ...] = (67, 67, 66)
    rho: tuple[float, ...] = (0.5,)
    scale: tuple[float, ...] = (1.0,)
    noise: tuple[float, ...] = (1.0,)
    pooled_penalty: bool = False

    def draw(self, rng: np.random.Generator) -> list[Site]:
        b = np.zeros(P)
        signs = rng.choice([-1.0, 1.0], ACTIVE)
        b[rng.choice(P, ACTIVE, replace=False)] = signs * rng.uniform(0.4, 1.2, ACTIVE)
        sites = []
        for j, (m, n) in enumerate(zip(self.sizes, self.held_out, strict=True)):
            rho, scale, noise = (v[j % len(v)] for v in (self.rho, self.scale, self.noise))
            sigma = scale**2 * rho ** np.abs(np.subtract.outer(np.arange(P), np.arange(P)))
            X = rng.standard_normal((m + n, P)) @ np.linalg.cholesky(sigma).T
            y = X @ b + noise * np.sqrt(b @ sigma @ b) * rng.standard_normal(m + n)
            sites.append(Site(f"s{j}", X[:m], y[:m], validation={"penalty": (X[m:], y[m:])}))
        return sites


SCENARIOS = {
    "baseline": Scenario(),
    "unequal": Scenario((640, 120, 40), (160, 30, 10)),
    "rho .8": Scenario(rho=(0.8,)),
    "different": Scenario(rho=(0.0, 0.4, 0.7), scale=(1.0, 1.4, 0.7), noise=(1.0, 1.5, 0.8)),
    "ten sites": Scenario((80,) * 10, (20,) * 10, pooled_penalty=True),
}
PROCEDURES: tuple[Procedure[Any], ...] = (
    FISTA(),
    ADMM(),
    FedDR(),
    DANE(),
    CSL(),
    ProxSkip(epochs=5),
    WorkingSetGram(),
    Secant(),
    WorkingSetSecant(),
)


def pool(samples: Sequence[Sample]) -> LeastSquares:
    return LeastSquares(np.vstack([s.X for s in samples]), np.concatenate([s.y for s in samples]))


def uploads(sites: list[Site], problem: Problem, procedure: Procedure[Any], best: float) -> float:
    """Uploads until some path is within the gap, infinite if the limit comes first."""
    f = pool([s.least_squares for s in sites])

    def gap(b: Array) -> float:
        return (f.value(b) + problem.penalty.value(b) - best) / best

    def arrived(run: Run[Any]) -> bool:
        return min(gap(b) for b in run.models.T) <= GAP

    run = Run(InProcess(sites), procedure, problem)
    run.until(lambda run: arrived(run) or run.uploads > LIMIT * procedure.paths)
    return run.uploads if arrived(run) else float("inf")


def main(draws: int) -> None:
    for label, scenario in SCENARIOS.items():
        found: dict[str, list[float]] = {}
        for seed in range(draws):
            sites = scenario.draw(np.random.default_rng(seed))
            problem = choose_penalty(InProcess(sites))
            f = pool([s.least_squares for s in sites])
            if scenario.pooled_penalty:
                held_out = pool([s.validation("penalty") for s in sites])
                lam = search_penalty(f, held_out).lam
                problem = replace(problem, penalty=problem.penalty.at(lam))
            best = solve_reference(f, problem.penalty.lam).objective
            for procedure in PROCEDURES:
                needed = uploads(sites, problem, procedure, best)
                found.setdefault(procedure.name, []).append(needed)
        for procedure in PROCEDURES:
            needs = found[procedure.name]
            alone = median(needs) / procedure.paths
            print(
                f"{label:10} {procedure.name:15} median {median(needs):6.1f}  worst "
                f"{max(needs):6.1f}  best path alone {alone:6.1f}"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
