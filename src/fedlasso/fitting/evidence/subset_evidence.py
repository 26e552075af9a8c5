"""Second moments of the columns that a Lasso path points to, for the last step of a goal.

The sites send second moments of as many columns as uploads allow, over training and held-out rows.
From these the server computes how likely each column is to have an effect, selects columns and
fits them. It does all of this twice: on the training rows, to be judged on held-out rows, and on
all rows, which gives the model.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedlasso.errors import Refused
from fedlasso.federation.messages import Whole
from fedlasso.fitting.evidence.evidence import PathPoint
from fedlasso.fitting.evidence.gradient_evidence import SecantEvidence
from fedlasso.fitting.evidence.moment_evidence import certify_point, solve_at
from fedlasso.numerics import L1, Array
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.spike_slab import Posterior, sample_posterior
from fedlasso.numerics.triangles import count_packed, unpack
from fedlasso.sites import SubsetMoments, WeightedMoments

# Fewer columns than this would leave out too many that have an effect.
FEWEST_COLUMNS = 30
# More do not improve the probabilities, which then take long to compute.
MOST_COLUMNS = 250


@dataclass(frozen=True, eq=False)
class TrialFit:
    """A candidate fitted to the training rows, to be judged, and to all rows where possible."""

    name: str
    trained: PathPoint
    final: PathPoint


@dataclass(frozen=True, eq=False)
class Subset:
    """Normal equations of some `columns` of `p`, for the training rows and for all rows."""

    columns: Whole
    training: Normal
    whole: Normal
    p: int

    def spread(self, values: Array, elsewhere: float = 0.0) -> Array:
        """Return values of these columns in an array over all columns."""
        spread = np.full(self.p, elsewhere)
        spread[self.columns] = values
        return spread

    def point(self, normal: Normal, penalty: L1) -> PathPoint:
        """Fit at one penalty, and return the model over all columns."""
        own = certify_point(normal, solve_at(normal, penalty), penalty)
        weights = np.ones(normal.p) if penalty.weights is None else penalty.weights
        return PathPoint(
            L1(penalty.lam, self.spread(weights, np.inf)),
            self.spread(own.coefficients),
            own.residual_ss,
            own.certificate,
        )

    def fit_twice(
        self, name: str, fit: Callable[[Normal, Posterior], PathPoint], b: Array
    ) -> TrialFit:
        """Fit by the probabilities of effects, to the training rows and to all rows."""
        start = b[self.columns]
        both = (self.training, self.whole)
        return TrialFit(name, *(fit(own, sample_posterior(own, self.p, start)) for own in both))


def count_columns(vectors: float, p: int) -> int:
    """Return the number of columns whose moments fit into so many vectors of p numbers."""
    count = 0
    while count < min(p, MOST_COLUMNS) and count_sent(count + 1) <= vectors * p:
        count += 1
    return count


def count_sent(columns: int) -> int:
    """Return how many numbers a site sends about so many columns."""
    return 2 * count_packed(columns + 1) + 3


def ask_subset(
    evidence: SecantEvidence, b: Array, weighted: bool, all_rows: bool = True
) -> Subset | None:
    """Ask for the moments of a model's columns, and of those with the steepest gradients.

    Weights of sites use the held-out rows only if the model does (`all_rows`).
    Return None if too few uploads are left for that, or a site does not send them.
    """
    p = evidence.problem.p
    count = count_columns(evidence.budget.left, p)
    if count < min(p, FEWEST_COLUMNS) or evidence.largest_penalty == 0.0:
        return None
    steepness = np.abs(evidence.known.times(b) - evidence.known.c)
    columns = np.sort(np.lexsort((-steepness, -np.abs(b)))[:count])
    question = SubsetMoments(columns)
    if weighted and len(evidence.ledger.sites) > 1:
        question = WeightedMoments(columns, b, 2 * evidence.known.loss(b), not all_rows)
    try:
        sums = evidence.ledger.total(question)
    except Refused:
        return None
    evidence.budget.spend(-(-count_sent(count) // p))
    rows = sums.rows + sums.held_out
    training, held_out = (unpack(part, count + 1) * (rows / sums.weight) for part in sums.moments)
    whole = Normal.of_products(training + held_out, rows)
    return Subset(columns, Normal.of_products(training, sums.rows), whole, p)
