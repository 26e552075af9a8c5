"""Evidence of the last step of a goal: second moments of the columns that may matter.

A Lasso path has shown which columns may matter. For as many of those as uploads allow the sites
send second moments over training and held-out rows; how likely each column is to have an effect,
which columns are taken and how they are fitted is then computed without asking again. All of it is
done twice: by the training rows, to be judged on held-out ones, and by all rows, which is the
model.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedlasso.errors import Refused
from fedlasso.federation.messages import Whole
from fedlasso.fitting.evidence.evidence import PathPoint
from fedlasso.fitting.evidence.moment_evidence import certify_point, solve_at
from fedlasso.fitting.evidence.secant_evidence import SecantEvidence
from fedlasso.numerics import L1, Array
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.spike_slab import Posterior, weigh_columns
from fedlasso.numerics.triangles import count_packed, unpack
from fedlasso.sites import SubsetMoments, WeightedMoments

# With moments of fewer columns than this, too many that matter would not be among them.
FEWEST_COLUMNS = 30
# With more, probabilities are no better, and take long to compute.
MOST_COLUMNS = 250


@dataclass(frozen=True, eq=False)
class TrialFit:
    """One way to fit: by the training rows, to be judged, and by all rows where that can be."""

    name: str
    trained: PathPoint
    final: PathPoint


@dataclass(frozen=True, eq=False)
class Subset:
    """Second moments of the columns that may matter.

    Attributes
    ----------
    columns : numbers of the columns
    training, whole : normal equations of the training rows and of all rows
    p : how many columns there are in all
    """

    columns: Whole
    training: Normal
    whole: Normal
    p: int

    def spread(self, values: Array, elsewhere: float = 0.0) -> Array:
        """Return values of the columns in the place that they have among all."""
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
        trained, final = (
            fit(normal, weigh_columns(normal, self.p, start))
            for normal in (self.training, self.whole)
        )
        return TrialFit(name, trained, final)


def count_columns(vectors: float, p: int) -> int:
    """Return of how many columns so many vectors of p numbers can hold the moments."""
    count = 0
    while count < min(p, MOST_COLUMNS) and count_sent(count + 1) <= vectors * p:
        count += 1
    return count


def count_sent(columns: int) -> int:
    """Return how many numbers a site sends about so many columns."""
    return 2 * count_packed(columns + 1) + 3


def ask_subset(evidence: SecantEvidence, b: Array, weigh: bool) -> Subset | None:
    """Ask for the moments of the columns of a model, and of those with the steepest gradients.

    None where too few uploads are left for that, or a site does not send them.
    """
    p = evidence.problem.p
    count = count_columns(evidence.budget.left, p)
    if count < min(p, FEWEST_COLUMNS) or evidence.largest_penalty == 0.0:
        return None
    steepness = np.abs(evidence.known.times(b) - evidence.known.c)
    order = np.lexsort((-steepness, -np.abs(b)))
    columns = np.sort(order[:count])
    question = SubsetMoments(columns)
    if weigh and len(evidence.ledger.sites) > 1:
        variance = 2 * evidence.known.loss(b)
        question = WeightedMoments(columns, b, variance)
    try:
        sums = evidence.ledger.total(question)
    except Refused:
        return None
    evidence.budget.spend(-(-count_sent(count) // p))
    rows = sums.rows + sums.held_out
    training, held_out = (unpack(part, count + 1) * (rows / sums.weight) for part in sums.moments)
    return Subset(
        columns,
        Normal.of_products(training, sums.rows),
        Normal.of_products(training + held_out, rows),
        p,
    )
