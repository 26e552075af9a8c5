"""Goals that compare the Lasso with related models: by moments, by folds, or by a holdout."""

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

from fedlasso.errors import CannotFit, FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.fitting.at_penalty import GRADIENTS
from fedlasso.fitting.budget import Budget
from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import Folded, PathPoint
from fedlasso.fitting.evidence.opening import open_within
from fedlasso.fitting.evidence.split_evidence import SCALING
from fedlasso.fitting.evidence.subset_evidence import Subset, TrialFit
from fedlasso.fitting.fit_plan import gather_as_planned
from fedlasso.fitting.goal import GOALS, Goal, default_goal
from fedlasso.fitting.goals.adaptive import AdaptivePath
from fedlasso.fitting.goals.by_folds import fit_by_folds
from fedlasso.fitting.goals.holdout import TOL, choose_on_holdout
from fedlasso.fitting.moment_choice import Chosen, fit_gathered
from fedlasso.fitting.result import Fit, How, Status, Tuned
from fedlasso.fitting.tuning import judge_by_moments
from fedlasso.fitting.validation import Rule
from fedlasso.fitting.votes import select_columns

# Vectors that are kept for fitting the choice of a holdout to all rows.
REFITTING = 15


class ComparedGoal(Goal):
    """A goal that chooses among related models.

    Attributes
    ----------
    adaptive : its path of the adaptive Lasso, where the choice is by gradients
    expected : what probabilities of effects are used for
    refits_only : whether least-squares refits alone are compared, where there are any
    """

    adaptive: ClassVar[AdaptivePath]
    expected: ClassVar[How]
    refits_only: ClassVar[bool] = False

    @abstractmethod
    def choose_smallest(self, folded: Folded) -> Chosen:
        """Choose by the smallest error, from second moments of folds."""

    @abstractmethod
    def use_subset(self, subset: Subset, lasso: PathPoint) -> list[TrialFit]:
        """Fit by second moments of the columns that a Lasso path points to."""

    def choose(self, folded: Folded, rule: Rule) -> Chosen:
        if rule == "min":
            return self.choose_smallest(folded)
        lasso = judge_by_moments(folded, LASSO)
        return Chosen(lasso, (select_columns(folded, lasso),))

    def run(self, context: Context) -> Fit:
        if context.settings.validation is not None:
            context.budget.limit(GRADIENTS)
            return self._hold_out(context, "a holdout, as asked for")
        gathered = gather_as_planned(context, self.more_folds)
        if gathered.plan.how == "holdout":
            return self._hold_out(context, gathered.plan.words)
        if gathered.folded is None:
            return fit_by_folds(self, context, gathered)
        return fit_gathered(self, context, gathered)

    def _hold_out(self, context: Context, plan: str) -> Fit:
        """Let held-out rows choose; then fit the choice to all rows, where they are not samples."""
        settings = context.settings
        budget = context.budget
        budget.require(budget.left - SCALING)
        view, scaling = context.standardise(settings.held_out)
        if 0 in scaling.held_out:
            raise CannotFit(
                f"{scaling.rows + sum(scaling.held_out)} rows (n_samples) are too few to hold any "
                "out; give a penalty, a larger validation share or more rows"
            )
        refits = settings.held_out != ""
        left = int(budget.left) - (scaling.vectors if refits else 0)
        budget.require(left)
        kept = min(left // 4, REFITTING) if refits else 0
        rule = settings.rule or "min"
        fit = choose_on_holdout(view, self, budget.part(left - kept), rule, exact=False)
        fit = replace(fit, plan=plan, view=view.view, scaling=scaling)
        if not refits:
            return fit
        whole, whole_scaling = context.standardise()
        evidence = open_within(whole, budget.part(budget.left))
        point = evidence.fit(fit.penalty, tol=TOL)
        if not point.certificate.relative_gap <= TOL:
            return replace(fit, status=Status.CUT)
        assert isinstance(fit.reason, Tuned)
        points = list(fit.points)
        points[fit.chosen] = point
        return Fit.of_points(
            points,
            fit.chosen,
            evidence.problem,
            method=fit.method,
            costs=fit.costs,
            rounds=fit.rounds + round(evidence.budget.spent),
            status=fit.status,
            validation=fit.validation,
            reason=replace(fit.reason, all_rows=True),
            curve=fit.curve,
            plan=plan,
            view=whole.view,
            scaling=whole_scaling,
        )


def fit_for(
    federation: Federation,
    goal: str | None = None,
    *,
    uploads: int = 100,
    rule: Rule = "min",
    exact: bool = True,
) -> Fit:
    """Fit a model for prediction or for selection, within `uploads` vectors from every site.

    A Lasso path comes first. Then the sites send second moments of the columns that may matter, as
    many as uploads allow, over training and validation rows, and from these follows how likely each
    column is to have an effect (`numerics.spike_slab`). Selection takes the columns with the
    largest expected F1, by least squares; prediction takes the expected effects. Either is fitted
    to all rows; its validation error is that of the same fit to the training rows.

    With few uploads, with rule ``"1se"``, or where a site does not send moments, an adaptive path
    follows and least-squares refits of its supports. For prediction the second validation samples
    choose among the best of each, for selection among the refits.

    Parameters
    ----------
    federation : the sites, each with both validation samples
    goal : ``"prediction"``, the default, or ``"selection"``; the pooled Lasso at a penalty is
        ``fit(federation, "Secant", penalty=...)``
    uploads : how many vectors of p numbers each site may send; never more are sent
    rule : how the candidate is chosen on the second validation samples
    exact : take standard errors from fourth powers of errors, as the paper does, and weight sites
        by how well a model fits there; sites with a policy do neither

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, fit_for
    >>> from fedlasso.study import SCENARIOS
    >>> draw = SCENARIOS["baseline"].draw(np.random.default_rng(0))
    >>> result = fit_for(InProcess(draw.sites()), "prediction", uploads=20)
    >>> result.rounds <= 20
    True
    """
    chosen = GOALS.get(goal) if goal is not None else default_goal()
    if not isinstance(chosen, ComparedGoal):
        known = [name for name, each in GOALS.items() if isinstance(each, ComparedGoal)]
        raise FedLassoError(
            f"no fit is made for {goal!r}; use {' or '.join(map(repr, known))}, or fit(..., "
            "'Secant')"
        )
    budget = Budget(metered(federation), uploads)
    return choose_on_holdout(federation, chosen, budget, rule, exact)
