"""One fit as an analyst wants it: set, standardised, tuned and told on the original scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import Costs, Federation, Ledger, metered
from fedlasso.files import find_cannot_write
from fedlasso.fitting import Fit, GoalFit, Session, Status, fit, fit_for
from fedlasso.fitting.by_folds import count_gradients, fit_by_folds, search_penalties
from fedlasso.fitting.by_moments import Gathered, fit_by_moments, gather
from fedlasso.fitting.families import Folded
from fedlasso.fitting.goals import ALL_ROWS, TOL
from fedlasso.fitting.plan import GRADIENTS, SCALING, Plan, make_plan, vectors_of
from fedlasso.fitting.tuning import Curve
from fedlasso.models.at_penalty import fit_curved, fit_exactly, form_of
from fedlasso.models.inferring import (
    Inferring,
    Trust,
    count_refitting,
    count_vectors,
    find_worth,
    weigh,
)
from fedlasso.models.settings import Settings
from fedlasso.numerics import L1, Array, PenaltyForm, find_loss
from fedlasso.procedures import find_procedure
from fedlasso.sites import (
    FEWER_FOLDS,
    INTERCEPT,
    EffectAt,
    Rows,
    Scaling,
    Standardise,
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
# What a model of discoveries is called.
DISCOVERED = "refitted Lasso"


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model with everything that is told about it.

    Attributes
    ----------
    coefficients, intercept : on the original scale of the columns
    scaling : means and scales that the sites agreed on
    view : what defines the view that the final fit was made on
    fit : the fit on the standardised scale
    curve : held-out error along the penalties, if a penalty was chosen
    costs : all that passed between server and sites
    plan : how uploads were to be spent, where anything was to be chosen
    why : what was fitted and why, in one line
    folded : second moments of the folds, where they were asked for: sums over sites
    trust : how sure its columns are, where that was asked
    """

    settings: Settings
    columns: tuple[str, ...]
    coefficients: Array
    intercept: float
    scaling: Scaling
    view: Standardise
    fit: Fit | GoalFit
    curve: Curve | None
    costs: Costs
    plan: str
    why: str
    folded: Folded | None = None
    trust: Trust | None = None

    @property
    def method(self) -> str:
        """What was fitted, or by which procedure."""
        return DISCOVERED if self.discovers else self.fit.method

    @property
    def discovers(self) -> bool:
        """Whether it has the columns that were found, and those alone."""
        return self.trust is not None and self.trust.found is not None

    @property
    def status(self) -> Status:
        """How the fit ended; that uploads ended too early comes first."""
        cut = self.curve is not None and self.curve.cut
        if self.discovers and self.fit.status is Status.OPTIMAL:
            return Status.CUT if cut else Status.CHOSEN
        return Status.CUT if cut else self.fit.status

    @property
    def penalty(self) -> float:
        """The penalty of the Lasso: the chosen one of the path, or the one that was given.

        An adaptive or refitted model has weights, or next to no penalty; it is known by the best
        penalty of the Lasso path that it comes from.
        """
        if self.curve is not None:
            return self.curve.lam
        return self.fit.penalty.lam / self.settings.l1_ratio

    @property
    def constant(self) -> tuple[str, ...]:
        """Columns that never vary, left out with a coefficient of zero."""
        factors = self.scaling.factors[: len(self.columns)]
        return tuple(n for n, f in zip(self.columns, factors, strict=True) if f == 0)

    @property
    def standardised(self) -> Array:
        """Coefficients of the columns as they were standardised, without an intercept."""
        return self.fit.coefficients[: len(self.columns)]

    def score(self, X: Any) -> Array:
        """Linear predictors of records on the original scale."""
        found: Array = X @ self.coefficients + self.intercept
        return found

    def predict(self, X: Any) -> Array:
        """Predictions for records on the original scale: values, probabilities, rates or risks."""
        return find_loss(self.settings.loss).mean(self.score(X))


def fit_model(
    federation: Federation, settings: Settings, say: Callable[[str], None] = lambda text: None
) -> Model:
    """Fit across the sites of a federation, whose records may be on any scale.

    `say` is told the plan before much is sent.
    """
    ledger = metered(federation)
    before = ledger.costs
    model = _fit_and_infer(ledger, settings, say)
    coefficients, intercept = model.scaling.original(model.fit.coefficients)
    bounds = form_of(settings, ledger.columns).bounds
    if bounds is not None:
        # Scaling a bound there and back may round it.
        coefficients = bounds.part(slice(len(coefficients))).clip(coefficients)
    if settings.site_effects:
        # New rows belong to no site: they have the mean of the sites' intercepts.
        told = Viewed(ledger, model.view).total(EffectAt(model.fit.coefficients))
        intercept += told.effects / told.weight if told.weight else 0.0
    costs = ledger.costs - before
    return replace(model, coefficients=coefficients, intercept=intercept, costs=costs)


def _for_the_lasso(settings: Settings, p: int) -> Settings:
    """Settings of the fit that inference starts from, which may be made twice, within uploads."""
    uploads = settings.uploads
    needs = count_vectors(settings, p)
    if uploads is None or not (needs or settings.weighs_sites):
        return settings
    if uploads <= 2 * needs:
        raise FedLassoError(
            f"uploads is {uploads}, and inference about {p} columns takes more than {2 * needs} "
            "with the Lasso that it starts from; give more"
        )
    times = 2 if settings.weighs_sites else 1
    return replace(settings, uploads=(uploads - needs) // times)


def _fit_and_infer(ledger: Ledger, settings: Settings, say: Callable[[str], None]) -> Model:
    """Fit, weigh sites where that is wanted or clearly needed, and infer where that is asked."""
    own = _for_the_lasso(settings, len(ledger.columns))
    model = _Making(ledger, own, say).model()
    seen = ledger
    worth = None
    notes: tuple[str, ...] = ()
    always = settings.site_weights == "variance"
    if settings.weighs_sites:
        view = Viewed(ledger, model.view)
        try:
            worth = find_worth(view, model.scaling, model.fit.coefficients, always=always)
        except Stopped:
            raise
        except FedLassoError as error:
            if always:
                raise
            notes = (f"the sites' noise was not compared: {error}",)
        if worth is not None:
            say("sites differ in noise: rows are weighed, and the Lasso is fitted again")
            seen = weigh(ledger, worth)
            model = _Making(seen, own, say).model()
    if not settings.infers:
        return replace(
            model, settings=settings, trust=None if worth is None else Trust(worth=worth)
        )
    view = Viewed(seen, model.view)
    inferring = Inferring(seen, view, model.scaling, settings, model.fit, model.curve, seen.columns)

    def fit_rest(view: Viewed, penalty: L1) -> Fit:
        return fit_curved(view, penalty, count_refitting(settings), settings.tol)

    trust = inferring.trust(worth, notes, fit_rest)
    model = replace(model, settings=settings, trust=trust)
    if trust.found is None:
        return model
    count = trust.found.columns.size
    why = (
        f"goal 'discoveries': {count} of the {trust.lasso} columns of the Lasso, found at a false "
        f"discovery rate of {settings.fdr:g} by debiased estimates, and fitted to all rows"
    )
    return replace(model, fit=inferring.refit(trust.found, fit_rest), why=why)


@dataclass(eq=False)
class _Making:
    """A model in the making: what was agreed on, and how many vectors each site has sent."""

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
        why = f"{settings.words(where)}, by {result.method} in {result.rounds} rounds"
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
