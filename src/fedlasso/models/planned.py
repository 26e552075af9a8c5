"""One fit as it was planned: standardised, tuned by folds or held-out rows, fitted to all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import Ledger
from fedlasso.files import find_cannot_write
from fedlasso.fitting import Fit, GoalFit, Session, Status, fit, fit_for
from fedlasso.fitting.by_folds import count_gradients, fit_by_folds, search_penalties
from fedlasso.fitting.by_moments import Gathered, fit_by_moments, gather
from fedlasso.fitting.goals import ALL_ROWS, TOL
from fedlasso.fitting.plan import GRADIENTS, SCALING, Plan, make_plan, vectors_of
from fedlasso.fitting.tuning import Curve
from fedlasso.models.at_penalty import fit_curved, fit_exactly, form_of
from fedlasso.models.model import Model
from fedlasso.models.settings import Settings
from fedlasso.numerics import PenaltyForm
from fedlasso.procedures import find_procedure
from fedlasso.sites import (
    FEWER_FOLDS,
    INTERCEPT,
    Rows,
    Scaling,
    Viewed,
    folds,
    standardise,
)

# Vectors that are kept for fitting the choice of a holdout to all rows.
REFITTING = 15
# Fewer rows than this cannot be both fitted and judged.
FEWEST_ROWS = 4
# Vectors and folds by default where second moments do not choose; rounds are cheaper than vectors.
CURVED_GRADIENTS = 1500
CURVED_FOLDS = 5


@dataclass(eq=False)
class Planned:
    """A fit as it was planned: what was agreed on, and how many vectors each site has sent."""

    ledger: Ledger
    settings: Settings
    say: Callable[[str], None]
    spent: int = 0
    form: PenaltyForm = field(init=False)

    def __post_init__(self) -> None:
        columns = self.ledger.columns
        settings = self.settings
        if self.ledger.loss != settings.loss:
            raise FedLassoError(
                f"the sites have the {self.ledger.loss} loss, and the family {settings.family!r} "
                f"has the {settings.loss} loss; give the sites' family"
            )
        self.form = form_of(settings, columns)

    def model(self) -> Model:
        """Choose the penalty as planned, unless one is given, and fit."""
        settings = self.settings
        if settings.penalty is not None:
            return self._fit_at(settings.penalty, None, settings.uploads or GRADIENTS, "")
        if not settings.plain:
            return self._choose_strength()
        if settings.validation is not None:
            return self._hold_out(settings.uploads or GRADIENTS, "a holdout, as asked for")
        plan, gathered, view, scaling = self._plan()
        if plan.how == "holdout":
            return self._hold_out(plan.uploads, plan.words)
        where = f"{plan.folds} folds"
        if gathered is None:
            splits = folds(plan.folds, settings.seed)
            if settings.aim == "objective":
                return self._search(splits, plan.uploads, plan.words, where)
            left = plan.uploads - self.spent
            rule = settings.rule_in_force
            fit = fit_by_folds(
                self.ledger, view, splits, left, settings.aim, rule, **settings.scaling
            )
            return self._told(view, scaling, fit, fit.curve, plan.words, fit.why)
        fit = fit_by_moments(gathered, settings.aim, settings.rule_in_force)
        if settings.procedure is not None:
            uploads = settings.uploads or self.spent + GRADIENTS
            return self._fit_at(fit.curve.lam, fit.curve, uploads, plan.words, where)
        model = self._told(view, scaling, fit, fit.curve, plan.words, fit.why)
        return replace(model, folded=gathered.folded)

    def _plan(self) -> tuple[Plan, Gathered | None, Viewed, Scaling]:
        """Make a plan and gather what it needs; a site's refusal makes another plan."""
        settings = self.settings
        p = len(self.ledger.columns)
        rows = self.ledger.total(Rows()).rows
        if rows < FEWEST_ROWS:
            raise FedLassoError(
                f"{rows} rows (n_samples) are too few to hold any out; give a penalty, or more rows"
            )
        refused: dict[int, str] = {}
        view, scaling = standardise(self.ledger, "", **settings.scaling)
        self.spent = scaling.vectors
        while True:
            plan = make_plan(
                p,
                rows,
                settings.aim,
                uploads=settings.uploads,
                cv=settings.cv,
                refused=refused,
                keep=settings.procedure is not None,
            )
            self.say(f"plan: {plan.words}")
            if plan.how != "moments":
                return plan, None, view, scaling
            try:
                gathered = gather(view, plan.folds, settings.seed, **settings.scaling)
            except Stopped:
                raise
            except FedLassoError as error:
                if find_cannot_write(error) is not None:
                    raise
                refused[plan.folds] = str(error)
                if FEWER_FOLDS not in str(error):
                    refused |= dict.fromkeys(range(plan.folds), str(error))
                continue
            self.spent += vectors_of(p, plan.folds)
            return plan, gathered, view, scaling

    def _choose_strength(self) -> Model:
        """Choose the strength of the penalty by held-out deviance along a path, and fit there."""
        settings = self.settings
        p = len(self.ledger.columns)
        uploads = settings.uploads or CURVED_GRADIENTS
        splits: tuple[str, ...] = (settings.held_out,)
        where = "held-out rows"
        buys = ""
        if settings.validation is None:
            folds_for = count_gradients(CURVED_FOLDS + 1) * 2
            if settings.cv is not None or uploads >= folds_for:
                count = settings.cv or CURVED_FOLDS
                splits = folds(count, settings.seed)
                where = f"{count} folds"
            else:
                buys = f"; uploads={folds_for} would buy {CURVED_FOLDS} folds"
        words = f"gradients along a path on {where}: at most {uploads} vectors of {p} numbers"
        plan = f"{words} per site{buys}"
        self.say(f"plan: {plan}")
        return self._search(splits, uploads, plan, where)

    def _hold_out(self, uploads: int, plan: str) -> Model:
        """Let held-out rows choose; then fit the choice to all rows, where they are not samples."""
        settings = self.settings
        if settings.aim == "objective":
            return self._search((settings.held_out,), uploads, plan)
        self._check_left(uploads - self.spent - SCALING, uploads)
        view, scaling = standardise(self.ledger, settings.held_out, **settings.scaling)
        if 0 in scaling.held_out:
            raise FedLassoError(
                f"{scaling.rows + sum(scaling.held_out)} rows (n_samples) are too few to hold any "
                "out; give a penalty, a larger validation share or more rows"
            )
        self.spent += scaling.vectors
        refits = settings.held_out != ""
        left = uploads - self.spent - (scaling.vectors if refits else 0)
        self._check_left(left, uploads)
        share = left - min(left // 4, REFITTING) if refits else left
        rule = settings.rule or "min"
        fit = fit_for(view, settings.aim, uploads=max(share, 1), rule=rule, exact=False)
        if not refits:
            return self._told(view, scaling, fit, fit.curve, plan, fit.why)
        whole, whole_scaling = standardise(self.ledger, "", **settings.scaling)
        session = Session(whole, max(left - fit.rounds, 1))
        point = session.fit(fit.penalty, tol=TOL)
        if not point.certificate.relative_gap <= TOL:
            fit = replace(fit, status=Status.CUT)
            return self._told(view, scaling, fit, fit.curve, plan, fit.why)
        points = list(fit.points)
        points[fit.chosen] = point
        problem = replace(session.problem, penalty=fit.penalty)
        rounds = fit.rounds + session.spent
        fit = replace(fit, points=tuple(points), problem=problem, rounds=rounds)
        why = f"{fit.why.removesuffix(ALL_ROWS)}{ALL_ROWS}"
        return self._told(whole, whole_scaling, fit, fit.curve, plan, why)

    def _search(
        self, splits: tuple[str, ...], uploads: int, plan: str, where: str = "held-out rows"
    ) -> Model:
        """Let held-out rows choose the penalty of the Lasso, and fit it to all rows."""
        left = (uploads - self.spent) * 2 // 3
        rule = self.settings.rule_in_force
        scaling = self.settings.scaling
        curve = search_penalties(self.ledger, splits, left, rule, self.form, **scaling)
        self.spent += curve.sent
        return self._fit_at(curve.lam, curve, uploads, plan, where)

    def _fit_at(
        self,
        penalty: float,
        curve: Curve | None,
        uploads: int,
        plan: str,
        where: str = "held-out rows",
    ) -> Model:
        """Fit at one penalty, by a procedure, by second moments or by Secant."""
        settings = self.settings
        view, scaling = standardise(self.ledger, settings.final_split, **settings.scaling)
        self.spent += scaling.vectors
        left = uploads - self.spent
        self._check_left(left, uploads)
        paid = self.form.scaled(scaling.factors).at(penalty)
        if settings.procedure is not None:
            procedure = find_procedure(settings.procedure)(epochs=settings.epochs)
            rounds = max(1, left // procedure.paths)
            chooses = settings.rule or "min"
            result = fit(view, procedure, penalty=paid, rounds=rounds, rule=chooses, exact=False)
        elif settings.plain:
            result = fit_exactly(view, penalty, left, settings.tol)
        else:
            result = fit_curved(view, paid, left, settings.tol)
        rounds_made = f"{result.rounds} round{'s' * (result.rounds != 1)}"
        why = f"{settings.words(where)}, by {result.method} in {rounds_made}"
        return self._told(view, scaling, result, curve, plan, why)

    def _check_left(self, left: int, uploads: int) -> None:
        if left < 2:
            raise FedLassoError(
                f"uploads is {uploads}, and {self.spent} are needed to standardise and tune; "
                "give more"
            )

    def _told(
        self,
        view: Viewed,
        scaling: Scaling,
        result: Fit | GoalFit,
        curve: Curve | None,
        plan: str,
        why: str,
    ) -> Model:
        return Model(
            settings=self.settings,
            columns=tuple(name for name in self.ledger.columns if name != INTERCEPT),
            coefficients=result.coefficients,
            intercept=0.0,
            scaling=scaling,
            view=view.view,
            fit=result,
            curve=curve,
            costs=result.costs,
            plan=plan,
            why=why,
        )
