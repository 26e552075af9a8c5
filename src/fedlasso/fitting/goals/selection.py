"""Selection: few columns, and about the same ones on other rows."""

import numpy as np

from fedlasso.fitting.candidates import LASSO, RELAXED
from fedlasso.fitting.evidence import Folded, PathPoint
from fedlasso.fitting.evidence.subset_evidence import Subset, TrialFit
from fedlasso.fitting.goals.compared import ComparedGoal
from fedlasso.fitting.gradient_tuning import AdaptivePath
from fedlasso.fitting.result import How
from fedlasso.fitting.tuning import Chosen, choose_smallest, judge_by_moments
from fedlasso.numerics import L1, one_thread
from fedlasso.numerics.moments import Normal
from fedlasso.numerics.spike_slab import Posterior


class Selection(ComparedGoal):
    """The columns with the largest expected F1, or those that fits to halves of the rows use."""

    name = "selection"
    help = "few columns, and about the same ones on other rows"
    rule = "1se"
    more_folds = True
    # Squared weights give sparser paths: better F1 in most scenarios, but no better prediction.
    adaptive = AdaptivePath(power=2.0, count=20, ratio=0.003)
    expected = How.EXPECTED_F1
    refits_only = True

    def choose_smallest(self, folded: Folded) -> Chosen:
        return choose_smallest([judge_by_moments(folded, LASSO)])

    @one_thread()
    def use_subset(self, subset: Subset, lasso: PathPoint) -> list[TrialFit]:
        """Fit the columns with the largest expected F1 by least squares."""

        def refit(normal: Normal, posterior: Posterior) -> PathPoint:
            weights = np.where(posterior.support, 1.0, np.inf)
            largest = normal.largest_penalty
            lam = RELAXED * largest if posterior.support.any() else largest
            return subset.point(normal, L1(lam, weights))

        name = "least squares on the most probable columns"
        return [subset.fit_twice(name, refit, lasso.coefficients)]
