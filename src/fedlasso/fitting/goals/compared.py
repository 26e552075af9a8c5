"""Goals that compare the Lasso with related models: by moments, by folds, or by a holdout."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlasso.errors import CannotFit, FedLassoError
from fedlasso.federation import Federation, metered
from fedlasso.fitting.budget import GRADIENTS, Budget
from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import Folded, PathPoint, Wanted
from fedlasso.fitting.evidence.gradient_evidence import open_within
from fedlasso.fitting.evidence.moment_evidence import solve_at, squared_error
from fedlasso.fitting.evidence.split_evidence import SCALING
from fedlasso.fitting.evidence.subset_evidence import Subset, TrialFit
from fedlasso.fitting.fit_plan import Plan, fit_as_planned, gather_as_planned
from fedlasso.fitting.goal import GOALS, Goal, default_goal
from fedlasso.fitting.goals.by_gradients import PATH_TOL, choose_on_holdout, fit_by_folds
from fedlasso.fitting.gradient_tuning import AdaptivePath
from fedlasso.fitting.result import Fit, How, Status, Tuned
from fedlasso.fitting.tuning import (
    BLENDS,
    CandidateErrors,
    Choice,
    Chosen,
    fit_gathered,
    judge_by_moments,
)
from fedlasso.fitting.validation import TOO_FEW, Rule
from fedlasso.numerics import L1, Array
from fedlasso.numerics.moments import Moments
from fedlasso.numerics.spike_slab import sample_posterior

# Vectors that are kept for fitting the choice of a holdout to all rows.
REFITTING = 15
# The penalty that selects columns may cost so many standard errors of normal errors: those of the
# folds differ from sample to sample, and the number of columns with them.
SPARE = 2.5
# Pairs of halves that the folds are cut into, at random.
PAIRS = 25
# A column is selected if this fraction of the fits to halves uses it.
VOTES = 0.25
# The most probable columns are selected if they are at most this fraction of those with enough
# votes: among hundreds of columns, many without an effect get votes.
FEWER = 0.75


class ComparedGoal(Goal):
    """A goal that chooses among related models.

    Attributes
    ----------
    adaptive : its path of the adaptive Lasso, where the choice is by gradients
    expected : what probabilities of effects are used for
    refits_only : whether only least-squares refits are compared, where there are any
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
            return self._hold_out(context, "a holdout, as requested")
        gathered = gather_as_planned(context, self.more_folds)
        if gathered.folded is not None:
            return fit_gathered(self, context, gathered)

        def on_folds(plan: Plan) -> Fit:
            return fit_by_folds(self, context, replace(gathered, plan=plan))

        def hold_out(plan: Plan) -> Fit:
            return self._hold_out(context, plan.words)

        return fit_as_planned(context, gathered.plan, on_folds, hold_out)

    def _hold_out(self, context: Context, plan: str) -> Fit:
        """Let held-out rows choose; then fit the choice to all rows, unless samples were given."""
        settings = context.settings
        budget = context.budget
        budget.require(budget.left - SCALING)
        view, scaling = context.standardise(settings.held_out)
        if 0 in scaling.held_out:
            rows = scaling.rows + sum(scaling.held_out)
            raise CannotFit(f"{rows} rows (n_samples) are {TOO_FEW}")
        refits = settings.held_out != ""
        known = context.standardiser.has_measured("")
        left = int(budget.left) - (scaling.vectors if refits and not known else 0)
        budget.require(left)
        kept = min(left // 4, REFITTING) if refits else 0
        rule = settings.rule or "min"
        fit = choose_on_holdout(view, self, budget.part(left - kept), rule, exact=False)
        fit = replace(fit, plan=plan, view=view.view, scaling=scaling)
        if not refits:
            return fit
        whole, whole_scaling = context.standardise()
        evidence = open_within(whole, budget.part(budget.left))
        point = evidence.fit(fit.penalty, tol=PATH_TOL)
        if not point.certificate.relative_gap <= PATH_TOL:
            return replace(fit, status=Status.CUT)
        assert isinstance(fit.reason, Tuned)
        points = list(fit.points)
        points[fit.chosen] = point
        same = ("method", "costs", "status", "validation", "curve", "plan")
        return Fit.of_points(
            points,
            fit.chosen,
            evidence.problem,
            rounds=fit.rounds + round(evidence.budget.spent),
            reason=replace(fit.reason, active=point.active, all_rows=True),
            view=whole.view,
            scaling=whole_scaling,
            **{name: getattr(fit, name) for name in same},
        )


def select_columns(folded: Folded, lasso: CandidateErrors) -> Choice:
    """Return the columns with enough votes, or the most probable ones if they are far fewer.

    Neither may predict worse than the Lasso's smallest error plus one standard error.
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
    probable = _judge_support(folded, lasso, at, support, How.MOST_PROBABLE)
    return probable if probable.error <= lasso.limit else voted


def _vote(folded: Folded, lasso: CandidateErrors) -> Choice:
    """Return the columns with enough votes at a large penalty, relaxed or not.

    If those predict worse than the Lasso's smallest error plus one standard error, return the
    sparsest Lasso that does not.
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
    """Yield both halves of the folds, cut at random `PAIRS` times."""
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
            squared_error(fold, normal, point.coefficients)
            for (fold, normal), point in zip(training, points, strict=True)
        ]
        choices.append(Choice(lasso, place, at, np.array(each), how, support))
    return min(choices, key=lambda choice: choice.error)


def fit_for(
    federation: Federation,
    goal: str | None = None,
    *,
    uploads: int = 100,
    rule: Rule = "min",
    exact: bool = True,
    all_rows: bool = True,
) -> Fit:
    """Fit a model for prediction or for selection, within `uploads` vectors from every site.

    A Lasso path comes first. Then the sites send second moments of the columns that it points to,
    as many as uploads allow, over training and validation rows. These give the probability of an
    effect of each column (`numerics.spike_slab`). Selection takes the columns with the largest
    expected F1, by least squares; prediction takes the expected effects. Either is fitted to all
    rows; its validation error is that of the same fit to the training rows.

    With few uploads, with rule ``"1se"``, or if a site does not send moments, an adaptive path and
    least-squares refits of its supports follow. For prediction the second validation samples
    choose among the best of each, for selection among the refits.

    Parameters
    ----------
    federation : the sites, each with both validation samples
    goal : ``"prediction"``, the default, or ``"selection"``; the pooled Lasso at a penalty is
        ``fit(federation, "Secant", penalty=...)``
    uploads : maximum of vectors of p numbers that each site sends
    rule : how the candidate is chosen on the second validation samples
    exact : take standard errors from fourth powers of errors, as the paper does, and weight sites
        by how well a model fits there; sites with a policy do neither
    all_rows : fit the model to training and validation rows; without it to the training rows, as
        procedures do

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
    return choose_on_holdout(federation, chosen, budget, rule, exact, all_rows)
