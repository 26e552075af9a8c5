"""The limits of averaging local fits on these sites, and how far they are from the pooled Lasso.

The distance grows with the local epochs and with the differences between sites, and an average is
active wherever any site is.
"""

from dataclasses import dataclass, replace

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Federation
from fedlasso.fitting.at_penalty import certify, fit_pooled
from fedlasso.fitting.budget import GRADIENTS
from fedlasso.fitting.examination.comparison import excess_objective
from fedlasso.fitting.goal import lasso_goal
from fedlasso.fitting.model import fit_model
from fedlasso.fitting.result import Fit
from fedlasso.fitting.rounds import Run, when_still
from fedlasso.fitting.settings import Settings
from fedlasso.fitting.validation import ACTIVE
from fedlasso.numerics import Array
from fedlasso.procedures import Averaging
from fedlasso.procedures.one_shot import LocalFit
from fedlasso.sites import Viewed, standardise

LOCAL_EPOCHS = (1, 2, 5, 10, 20)
# Averaging has converged when a round moves no coefficient by this fraction of the largest.
CONVERGED = 1e-7
LIMIT_ROUNDS = 500


@dataclass(frozen=True, eq=False)
class Limit:
    """The limit of averaging with some local epochs, after `rounds` until convergence or the last.

    Its objective is a fraction `above` the pooled Lasso's, which does not use `extra` of its active
    columns.
    """

    epochs: int
    rounds: int
    above: float
    active: int
    extra: int


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The limits of averaging on these sites at one penalty, and every site's own fit."""

    lam: float
    columns: tuple[str, ...]
    pooled: Array
    limits: tuple[Limit, ...]
    alone: dict[str, Array]

    @property
    def union(self) -> int:
        """Columns that at least one site selects: where a one-shot average is active."""
        return int(np.any([b != 0 for b in self.alone.values()], axis=0).sum())

    @property
    def lonely(self) -> dict[str, list[str]]:
        """Columns that one site alone selects, by site."""
        chosen = np.array([b != 0 for b in self.alone.values()])
        once = chosen.sum(axis=0) == 1
        return {
            site: [self.columns[k] for k in np.flatnonzero(row & once)]
            for site, row in zip(self.alone, chosen, strict=True)
        }


def diagnose(federation: Federation, settings: Settings) -> Diagnosis:
    """Measure averaging on a federation's own records."""
    if len(federation.sites) < 2:
        raise FedLassoError("one site has nothing to average; give at least two")
    lam = settings.penalty
    if lam is None:
        lam = fit_model(federation, replace(settings, goal=lasso_goal().name)).path_penalty
    if not lam > 0:
        raise FedLassoError(f"the penalty is {lam}; give one above zero")
    view, scaling = standardise(federation, "", **settings.scaling)
    best = fit_pooled(view, lam, settings.uploads or GRADIENTS, 1e-9)
    limits = tuple(_limit(view, best, epochs) for epochs in LOCAL_EPOCHS)
    alone = {
        reply.site: reply.values[:, 0] / max(rows, 1)
        for reply, rows in zip(view.ask(LocalFit(lam)), scaling.sizes, strict=True)
    }
    return Diagnosis(lam, federation.columns, best.coefficients, limits, alone)


def _limit(view: Viewed, best: Fit, epochs: int) -> Limit:
    pooled = best.coefficients
    run = Run(view, Averaging(epochs=epochs), best.problem)
    state = run.until(when_still(_has_converged, LIMIT_ROUNDS))
    b = np.ascontiguousarray(run.models[:, 0])
    above = excess_objective(certify(view, best.problem, b), best)
    active = np.abs(b) > ACTIVE * float(np.abs(pooled).max(initial=1e-300))
    return Limit(epochs, state.round, above, int(active.sum()), int((active & (pooled == 0)).sum()))


def _has_converged(before: Array, now: Array) -> bool:
    return float(np.abs(now - before).max()) <= CONVERGED * float(np.abs(now).max(initial=0.0))
