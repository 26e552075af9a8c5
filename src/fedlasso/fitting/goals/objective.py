"""Objective: the pooled Lasso itself, at a penalty that is given or chosen on held-out rows."""

from fedlasso.fitting.at_penalty import HELD_OUT, fit_at, search_and_fit
from fedlasso.fitting.budget import GRADIENTS, vectors_within_bytes
from fedlasso.fitting.candidates import LASSO
from fedlasso.fitting.context import Context
from fedlasso.fitting.evidence import Folded
from fedlasso.fitting.evidence.split_evidence import count_gradients
from fedlasso.fitting.fit_plan import Plan, fit_as_planned, gather_as_planned
from fedlasso.fitting.goal import Goal
from fedlasso.fitting.result import Fit, How
from fedlasso.fitting.tuning import Choice, Chosen, choose_smallest, fit_gathered, judge_by_moments
from fedlasso.fitting.validation import Rule
from fedlasso.sites import folds
from fedlasso.sites.atoms import fills_folds

# Folds by default where second moments do not choose.
CURVED_FOLDS = (5, 3, 2)


class Objective(Goal):
    """The Lasso, or what corresponds to it for other losses and penalties."""

    name = "objective"
    help = "the pooled Lasso itself, at the penalty that predicts held-out rows best"
    is_lasso = True

    def choose(self, folded: Folded, rule: Rule) -> Chosen:
        lasso = judge_by_moments(folded, LASSO, fractions=1)
        if rule == "min":
            return choose_smallest([lasso])
        sparsest = Choice.on_path(lasso, 0, lasso.sparsest, How.SPARSEST_LASSO)
        return Chosen(lasso, (sparsest,))

    def run(self, context: Context) -> Fit:
        settings = context.settings
        budget = context.budget
        if settings.penalty is not None:
            budget.limit(GRADIENTS if settings.plain else vectors_within_bytes(context.p))
            return fit_at(context, settings.penalty)
        if not settings.plain:
            return self._search_by_gradients(context)
        held_out = (settings.held_out,)
        if settings.validation is not None:
            budget.limit(GRADIENTS)
            return search_and_fit(context, held_out, "a holdout, as requested")
        gathered = gather_as_planned(context, self.more_folds)
        plan = gathered.plan
        if gathered.folded is None:

            def on_folds(plan: Plan) -> Fit:
                splits = folds(plan.folds, settings.seed)
                return search_and_fit(context, splits, plan.words, f"{plan.folds} folds")

            def hold_out(plan: Plan) -> Fit:
                return search_and_fit(context, held_out, plan.words)

            return fit_as_planned(context, plan, on_folds, hold_out)
        judged_on = f"{plan.folds} folds"
        fit = fit_gathered(self, context, gathered)
        if settings.procedure is None:
            return fit
        budget.limit(budget.spent + GRADIENTS)
        assert fit.curve is not None
        return fit_at(context, fit.curve.lam, fit.curve, plan.words, judged_on)

    def _search_by_gradients(self, context: Context) -> Fit:
        """Choose the strength of the penalty by held-out deviance along a path, and fit there."""
        settings = context.settings
        context.budget.limit(vectors_within_bytes(context.p))
        uploads = int(context.budget.vectors)
        splits: tuple[str, ...] = (settings.held_out,)
        judged_on = HELD_OUT
        buys = ""
        if settings.validation is None:
            enough = count_gradients(CURVED_FOLDS[0] + 1) * 2
            if settings.cv is not None or uploads >= enough:
                filled = (k for k in CURVED_FOLDS if fills_folds(context.ledger.atoms, k))
                count = settings.cv or next(filled, CURVED_FOLDS[-1])
                splits = folds(count, settings.seed)
                judged_on = f"{count} folds"
            else:
                buys = f"; {CURVED_FOLDS[0]} folds would take {enough} uploads"
        plan = f"gradients along a path on {judged_on}"
        if settings.uploads is not None:
            plan += f": at most {uploads} vectors of {context.p} numbers per site{buys}"
        context.notify(f"plan: {plan}")
        return search_and_fit(context, splits, plan, judged_on)
