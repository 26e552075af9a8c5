"""Evidence from gradients at one set of rows: what every kind of it has in common."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from fedlasso.federation import Ledger
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.evidence.evidence import Evidence, PathPoint, Wanted
from fedlasso.fitting.paths import log_grid
from fedlasso.fitting.rounds import Asking, run_together
from fedlasso.numerics import Array, Penalty
from fedlasso.procedures import Problem


class GradientEvidence(Evidence):
    """Evidence that grows with every question, so that each fit starts from those before it.

    Attributes
    ----------
    ledger, problem : the sites, and the pooled problem
    budget : what each site may send
    form : the penalty but for its strength
    path_tol, path_penalties : relative gap of the fits on a path, and how many there are down to
        the end of the grid
    """

    path_tol: ClassVar[float]
    path_penalties: ClassVar[int]
    ledger: Ledger
    problem: Problem
    budget: Budget
    form: Penalty

    @property
    @abstractmethod
    def first_slopes(self) -> Array:
        """The mean gradient of the loss at the model without any column that pays."""

    @property
    def largest_penalty(self) -> float:
        """The smallest penalty at which every coefficient that pays is zero."""
        return self.form.largest(self.first_slopes)

    @abstractmethod
    def asking(self, wanted: Wanted) -> Asking[PathPoint]:
        """Make one fit, as one of several that are asked for together."""

    def fit_many(self, wanted: Sequence[Wanted]) -> tuple[PathPoint, ...]:
        """Make fits to the same rows one after another: each learns from those before."""
        return tuple(run_together([self.asking(one)])[0] for one in wanted)

    def grid(self, count: int = 20, ratio: float = 0.05) -> list[Penalty]:
        """Return penalties from the largest useful one down to a fraction of it, log-spaced."""
        return [self.form.at(lam) for lam in log_grid(self.largest_penalty, count, ratio).tolist()]

    def path(self, penalties: Sequence[Penalty], tol: float = 0.01) -> tuple[PathPoint, ...]:
        """Fit at decreasing penalties, each from the fit before, while uploads last."""
        points: list[PathPoint] = []
        for penalty in penalties:
            start = points[-1].coefficients if points else None
            point = self.fit(penalty, start, tol)
            if not point.arrived(tol):
                break
            points.append(point)
        return tuple(points)
