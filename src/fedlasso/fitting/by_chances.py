"""The last step of a goal: second moments of the columns that may matter, and the model they make.

A Lasso path has told which columns may matter. Of those, as many as uploads allow, the sites tell
second moments over training and held-out rows; how likely each column is to have an effect, which
columns are taken and how they are fitted is then worked out without asking again. All of it is done
twice: by the training rows, to be judged on held-out ones, and by all rows, which is the model.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.fitting.families import solve_at
from fedlasso.fitting.session import RELAXED, PathPoint, Session
from fedlasso.numerics import L1, Array, one_thread
from fedlasso.numerics.moments import Normal, unpack
from fedlasso.numerics.spike_slab import Posterior, weigh_columns
from fedlasso.sites import SubsetMoments, WeighedMoments, count_products, places

# With moments of fewer columns than this, too many that matter would not be among them.
FEWEST_COLUMNS = 30
# With more, chances are no better, and take long to work out.
MOST_COLUMNS = 250
# Columns that are less likely to have an effect do not serve to predict.
LEAST_CHANCE = 0.05
LIKELIEST = "least squares on the likeliest columns"
EXPECTED = "expected effects"


@dataclass(frozen=True, eq=False)
class Candidate:
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

    columns: Array
    training: Normal
    whole: Normal
    p: int

    def spread(self, values: Array, elsewhere: float = 0.0) -> Array:
        """Return values of the columns in the place that they have among all."""
        spread = np.full(self.p, elsewhere)
        spread[places(self.columns)] = values
        return spread

    def point(self, normal: Normal, penalty: L1) -> PathPoint:
        """Fit at one penalty, and return the model over all columns."""
        own = PathPoint.by_moments(normal, solve_at(normal, penalty), penalty)
        weights = np.ones(normal.p) if penalty.weights is None else penalty.weights
        return PathPoint(
            L1(penalty.lam, self.spread(weights, np.inf)),
            self.spread(own.coefficients),
            own.residual_ss,
            own.certificate,
        )


def count_columns(vectors: int, p: int) -> int:
    """Return of how many columns so many vectors of p numbers can hold the moments."""
    count = 0
    while count < min(p, MOST_COLUMNS) and count_told(count + 1) <= vectors * p:
        count += 1
    return count


def count_told(columns: int) -> int:
    """Return how many numbers a site tells about so many columns."""
    return 2 * count_products(columns) + 3


def ask_moments(session: Session, b: Array, weigh: bool) -> Subset | None:
    """Ask for the moments of the columns of a model, and of those with the steepest gradients.

    None where too few uploads are left for that, or a site does not tell them.
    """
    p = session.problem.p
    count = count_columns(session.uploads - session.spent, p)
    if count < min(p, FEWEST_COLUMNS) or session.largest_penalty == 0.0:
        return None
    steepness = np.abs(session.known.times(b) - session.known.c)
    order = np.lexsort((-steepness, -np.abs(b)))
    columns = np.sort(order[:count]).astype(np.float64)
    question = SubsetMoments(columns)
    if weigh and len(session.ledger.sites) > 1:
        variance = 2 * session.known.loss(b)
        question = WeighedMoments(columns, b, variance)
    try:
        sums = session.ledger.total(question)
    except Stopped:
        raise
    except FedLassoError:
        return None
    session.spent += -(-count_told(count) // p)
    rows = sums.rows + sums.held_out
    training, held_out = (unpack(part, count + 1) * (rows / sums.weight) for part in sums.moments)
    return Subset(
        columns,
        Normal.of_products(training, sums.rows),
        Normal.of_products(training + held_out, rows),
        p,
    )


@one_thread()
def select_columns(subset: Subset, b: Array) -> list[Candidate]:
    """Take the columns with the largest expected F1, and fit them by least squares."""

    def refit(normal: Normal, posterior: Posterior) -> PathPoint:
        weights = np.where(posterior.support, 1.0, np.inf)
        largest = normal.largest_penalty
        lam = RELAXED * largest if posterior.support.any() else largest
        return subset.point(normal, L1(lam, weights))

    return [_twice(LIKELIEST, refit, subset, b)]


@one_thread()
def predict_best(subset: Subset, lasso: PathPoint) -> list[Candidate]:
    """Take the expected effects; and the best Lasso, where its columns are too many for moments."""

    def expect(normal: Normal, posterior: Posterior) -> PathPoint:
        likely = posterior.chances >= LEAST_CHANCE
        mean = np.where(likely, posterior.mean, 0.0)
        # Effects are pulled towards zero; a Lasso in which each pays its own pull leaves them so.
        pull = (normal.score - normal.gram @ mean) * np.sign(mean)
        pays = np.maximum(pull, RELAXED * normal.largest_penalty)
        lam = float(pays[likely].mean()) if likely.any() else normal.largest_penalty
        return subset.point(normal, L1(lam, np.where(likely, pays / lam, np.inf)))

    expected = _twice(EXPECTED, expect, subset, lasso.coefficients)
    if lasso.active <= subset.columns.size:
        return [expected]
    # The Lasso uses columns that there are no moments of: held-out rows must tell which is better.
    return [Candidate("Lasso", lasso, lasso), expected]


def _twice(
    name: str, fit: Callable[[Normal, Posterior], PathPoint], subset: Subset, b: Array
) -> Candidate:
    start = b[places(subset.columns)]
    trained, final = (
        fit(normal, weigh_columns(normal, subset.p, start))
        for normal in (subset.training, subset.whole)
    )
    return Candidate(name, trained, final)
