"""Few columns that other rows would select as well, from second moments of folds."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fedlasso.fitting.evidence import Folded, Wanted
from fedlasso.fitting.evidence.moment_evidence import mean_error, solve_at
from fedlasso.fitting.moment_choice import Choice
from fedlasso.fitting.result import How
from fedlasso.fitting.tuning import BLENDS, CandidateErrors
from fedlasso.numerics import L1, Array
from fedlasso.numerics.moments import Moments
from fedlasso.numerics.spike_slab import sample_posterior

# The penalty that selects may cost so many standard errors, as normal errors have them: those of
# the folds differ from sample to sample, and the number of columns with them.
SPARE = 2.5
# Pairs of halves that the folds are cut into, at random.
PAIRS = 25
# Fraction of the fits to halves that must use a column for it to be selected.
VOTES = 0.25
# The likeliest columns are selected where there are so many of them, as a fraction of those that
# the votes name, or fewer: among hundreds of columns, votes name many that have no effect.
FEWER = 0.75


def select_columns(folded: Folded, lasso: CandidateErrors) -> Choice:
    """The columns that fits to half of the folds use, or the likeliest where those are far fewer.

    Neither may predict worse than the Lasso's smallest error and one standard error.
    """
    voted = _vote(folded, lasso)
    whole = folded.normal(folded.whole)
    used = voted.support
    if used is None:
        used = solve_at(whole, L1(float(lasso.penalties[voted.at]))) != 0
    support = sample_posterior(whole, whole.p, np.zeros(whole.p), folded.seed).support
    if not 0 < support.sum() <= FEWER * used.sum():
        return voted
    at = int(np.argmin(lasso.error[0]))
    likeliest = _judge_support(folded, lasso, at, support, How.LIKELIEST)
    return likeliest if likeliest.error <= lasso.limit else voted


def _vote(folded: Folded, lasso: CandidateErrors) -> Choice:
    """The columns that fits to half of the folds use at a large penalty, relaxed or not.

    Where those predict worse than the Lasso's smallest error and one standard error, the sparsest
    Lasso that does not.
    """
    sparsest = lasso.sparsest
    blend = int(np.argmin(lasso.error[:, sparsest]))
    own = Choice.on_path(lasso, blend, sparsest, How.SPARSEST_LASSO)
    at = lasso.largest_within(SPARE * np.sqrt(2 / lasso.rows.sum()))
    support = count_votes(folded, float(lasso.penalties[at])) >= VOTES
    if not support.any():
        return own
    choice = _judge_support(folded, lasso, at, support, How.VOTED)
    return choice if choice.error <= lasso.limit else own


def count_votes(folded: Folded, lam: float) -> Array:
    """Return the fraction of the Lasso fits to halves of the folds that use each column."""
    votes = [solve_at(folded.normal(half), L1(lam)) != 0 for half in cut_halves(folded)]
    return np.asarray(np.mean(votes, axis=0))


def cut_halves(folded: Folded) -> Iterator[Moments]:
    """Cut the folds into halves at random, both of which are returned, time after time."""
    rng = np.random.default_rng(folded.seed)
    count = len(folded.folds)
    products = np.array([fold.products for fold in folded.folds])
    for _ in range(PAIRS):
        half = Moments(products[rng.permutation(count)[: count // 2]].sum(axis=0))
        yield half
        yield folded.whole.without(half)


def _judge_support(
    folded: Folded, lasso: CandidateErrors, at: int, support: NDArray[np.bool_], how: How
) -> Choice:
    """Cross-validate the Lasso on given columns, with the best fraction of its shrinkage."""
    choices = []
    training = list(folded.training())
    for place, blend in enumerate(BLENDS):
        penalty = L1(blend * float(lasso.penalties[at]), np.where(support, 1.0, np.inf))
        points = folded.fit_many([Wanted(penalty, rows=str(k)) for k in range(len(training))])
        each = [
            mean_error(fold, normal, point.coefficients)
            for (fold, normal), point in zip(training, points, strict=True)
        ]
        choices.append(Choice(lasso, place, at, np.array(each), how, support))
    return min(choices, key=lambda choice: choice.error)
