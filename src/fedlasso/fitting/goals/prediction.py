"""Prediction: predict new rows well, by the Lasso or a related model."""

import numpy as np

from fedlasso.fitting.candidates import ELASTIC, LASSO, RELAXED, adaptive
from fedlasso.fitting.evidence import Folded, PathPoint
from fedlasso.fitting.evidence.subset_evidence import Subset, TrialFit
from fedlasso.fitting.goals.compared import ComparedGoal
from fedlasso.fitting.gradient_tuning import AdaptivePath
from fedlasso.fitting.result import How
from fedlasso.fitting.tuning import Chosen, choose_smallest, judge_by_moments
from fedlasso.numerics import L1, Array, one_thread
from fedlasso.numerics.moment_path import solve_path
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.spike_slab import Posterior

# Coefficients of nearly dependent columns go on changing where the fit does not. As in glmnet, a
# path ends where one more penalty adds less than this fraction to the explained variance, or almost
# all of it is explained, but not before so many penalties.
GAIN = 1e-5
ALMOST_ALL = 0.999
FEWEST_PENALTIES = 5
# Columns with a smaller probability of an effect are not used to predict.
LEAST_PROBABILITY = 0.05


class Prediction(ComparedGoal):
    """The smallest error on rows that the model has not seen."""

    name = "prediction"
    help = "predict new rows well, by the Lasso or a related model that predicts better"
    adaptive = AdaptivePath(power=1.0, count=14, ratio=0.01)
    expected = How.EXPECTED_ERROR

    def choose_smallest(self, folded: Folded) -> Chosen:
        folded = folded.paired()
        lasso = judge_by_moments(folded, LASSO)
        weights_at = float(lasso.penalties[int(np.argmin(lasso.error[0]))])
        related = [judge_by_moments(folded, one) for one in (ELASTIC, adaptive(weights_at))]
        end = find_end(folded.normal(folded.whole), lasso.penalties)
        return choose_smallest([lasso, *related], end)

    @one_thread()
    def use_subset(self, subset: Subset, lasso: PathPoint) -> list[TrialFit]:
        """Return the Lasso and the expected effects, among which held-out rows choose."""

        def expect(normal: Normal, posterior: Posterior) -> PathPoint:
            likely = posterior.probabilities >= LEAST_PROBABILITY
            mean = np.where(likely, posterior.mean, 0.0)
            # Effects are shrunk towards zero: the Lasso with these weights has them as its optimum.
            pull = (normal.score - normal.gram @ mean) * np.sign(mean)
            own = np.maximum(pull, RELAXED * normal.largest_penalty)
            lam = float(own[likely].mean()) if likely.any() else normal.largest_penalty
            return subset.point(normal, L1(lam, np.where(likely, own / lam, np.inf)))

        expected = subset.fit_twice("expected effects", expect, lasso.coefficients)
        final = lasso
        if lasso.active <= subset.columns.size:
            final = subset.point(subset.whole, L1(lasso.lam))
        return [TrialFit(LASSO.name, lasso, final), expected]


def find_end(normal: Normal, penalties: Array) -> int:
    """Return the index of the penalty below which smaller ones hardly improve the fit."""
    path = solve_path(normal, penalties).lasso
    explained = 2 * normal.score @ path - np.einsum("il,il->l", normal.gram @ path, path)
    ended = np.diff(explained) < GAIN * explained[1:]
    ended |= explained[1:] > ALMOST_ALL * normal.variance
    ended[: FEWEST_PENALTIES - 1] = False
    return int(np.argmax(ended)) + 1 if ended.any() else penalties.size - 1
