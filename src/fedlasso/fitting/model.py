"""A fit for a goal, with inference, on the columns' original scale."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedlasso.errors import CannotFit, FedLassoError, Refused
from fedlasso.federation import Costs, Federation, Ledger, metered
from fedlasso.federation.ledger import Notify
from fedlasso.fitting.at_penalty import HELD_OUT
from fedlasso.fitting.budget import FEWEST_TRIPS, Budget, TooFewUploads
from fedlasso.fitting.context import Context, penalty_of
from fedlasso.fitting.dialogue import Dialogue, drive_together
from fedlasso.fitting.goal import lasso_goal
from fedlasso.fitting.inference.infer import (
    Trust,
    count_refitting,
    count_vectors,
    find_noise_inflation,
    find_site_weights,
    infer,
    noise_steps,
    separate_sites,
    shift_steps,
    without_shifts,
)
from fedlasso.fitting.result import AtPenalty, Fit, Reason, Status, Tuned
from fedlasso.fitting.settings import Settings
from fedlasso.fitting.validation import Rule, mean_effect
from fedlasso.numerics import Array, find_loss
from fedlasso.sites import INTERCEPT, Rows, Scaling, Standardise, Viewed

# Sites get intercepts of their own if the p-value of equal means is at most this. A missed shift
# costs the false discovery rate, and an intercept too many one degree of freedom; so the limit is
# high, unless intervals are only an extra to another goal, or sites are so many that their
# intercepts cost more than one row in twenty.
SHIFTED = 0.2
SURELY_SHIFTED = 0.001
ROWS_PER_EFFECT = 20
# More folds than this are compared with the number of rows before anything else is asked.
MANY_FOLDS = 20
# Name of a model of discoveries.
# Relative gap up to which a fit has the held-out error of the path, whose fits end there too.
SAME_MODEL = 1e-3
DISCOVERED = "refitted Lasso"


@dataclass(frozen=True, eq=False)
class Model:
    """A fit on the original scale of the columns.

    `fit` is the same on the standardised scale. `costs` are those of the whole fit and of
    inference. `settings` are `requested` ones, with site effects if the fit has decided on them.
    """

    settings: Settings
    columns: tuple[str, ...]
    coefficients: Array
    intercept: float
    fit: Fit
    costs: Costs
    requested: Settings

    @property
    def method(self) -> str:
        """Name of the model, or of the procedure."""
        return DISCOVERED if self.discovers else self.fit.method

    @property
    def trust(self) -> Trust | None:
        """Inference about its columns, if requested."""
        return self.fit.trust

    @property
    def discovers(self) -> bool:
        """Whether its columns are the discoveries."""
        return self.trust is not None and self.trust.found is not None

    @property
    def is_near(self) -> bool:
        """Whether the fit has the held-out error of its penalty's optimum."""
        fit = self.fit
        assert fit.certificate is not None
        return fit.status is Status.OPTIMAL or fit.certificate.relative_gap <= SAME_MODEL

    @property
    def status(self) -> Status:
        """How the fit ended; that uploads ran out takes precedence."""
        curve = self.fit.curve
        if curve is not None and curve.cut:
            return Status.CUT
        if self.discovers and self.fit.status is Status.OPTIMAL:
            return Status.CHOSEN
        return self.fit.status

    @property
    def view(self) -> Standardise:
        """The view of the sites' rows that the fit was made on."""
        return self.fit.standardised[0]

    @property
    def scaling(self) -> Scaling:
        """Means and scales that the sites agreed on."""
        return self.fit.standardised[1]

    @property
    def penalty(self) -> float:
        """Strength of the model's own penalty, which its certificate refers to."""
        return self.fit.penalty.strength

    @property
    def path_penalty(self) -> float:
        """The chosen penalty of the Lasso path that the model comes from, or the given one."""
        return self.fit.path_penalty

    @property
    def penalty_factors(self) -> dict[str, float] | None:
        """Penalty factors of the columns that the model may use.

        None if all columns have the same, but for the unpenalised ones of the settings.
        """
        p = len(self.columns)
        weights = self.fit.penalty.weights
        usual = [float(name not in self.settings.keep) for name in self.columns]
        if weights is None or np.array_equal(weights[:p], usual):
            return None
        named = zip(self.columns, weights[:p].tolist(), strict=True)
        return {name: weight for name, weight in named if np.isfinite(weight)}

    @property
    def constant(self) -> tuple[str, ...]:
        """Columns that never vary, left out with a coefficient of zero."""
        factors = self.scaling.factors[: len(self.columns)]
        return tuple(n for n, f in zip(self.columns, factors, strict=True) if f == 0)

    @property
    def standardised(self) -> Array:
        """Coefficients of the standardised columns, without an intercept."""
        return self.fit.coefficients[: len(self.columns)]

    def score(self, X: Any) -> Array:
        """Return linear predictors of records on the original scale."""
        scores: Array = X @ self.coefficients + self.intercept
        return scores

    def predict(self, X: Any) -> Array:
        """Return predictions for records: values, probabilities, rates or relative risks."""
        return find_loss(self.settings.loss).mean(self.score(X))


def fit_model(
    federation: Federation, settings: Settings, notify: Notify = lambda text: None
) -> Model:
    """Fit across the sites of a federation, whose records may be on any scale.

    `notify` is called with the plan before much is sent.
    """
    ledger = metered(federation)
    before = ledger.costs
    requested = settings
    if settings.cv is not None and settings.cv > MANY_FOLDS:
        most = max(reply.rows for reply in ledger.ask(Rows()))
        if settings.cv > most:
            raise FedLassoError(
                f"`cv` is {settings.cv}, but no site has more than {most} rows, so some folds "
                f"would be empty; give at most {most} folds"
            )
    goal = settings.goal_by_name
    if settings.why_lasso and goal != settings.requested_goal.name:
        notify(f"goal {goal!r} instead of {settings.requested_goal.name!r}: {settings.why_lasso}")
    with ledger.limit_trips(settings.round_trips):
        settings, fit = _fit(ledger, settings, notify)
        view, scaling = fit.standardised
        coefficients, intercept = to_original(
            ledger, Viewed(ledger, view), scaling, settings, fit.coefficients
        )
    columns = tuple(name for name in ledger.columns if name != INTERCEPT)
    return Model(settings, columns, coefficients, intercept, fit, ledger.costs - before, requested)


def to_original(
    ledger: Ledger, view: Viewed, scaling: Scaling, settings: Settings, b: Array
) -> tuple[Array, float]:
    """Return coefficients and intercept on the original scale of the columns."""
    coefficients, intercept = scaling.original(b)
    if settings.site_effects:
        # New rows belong to no site: they have the mean of the sites' intercepts.
        intercept += mean_effect(view, b)
    bounds = penalty_of(settings, ledger.columns).bounds
    if bounds is not None:
        # Scaling a bound there and back may round it.
        coefficients = bounds.part(slice(len(coefficients))).snap(coefficients)
    return coefficients, intercept


def _fit(ledger: Ledger, settings: Settings, notify: Notify) -> tuple[Settings, Fit]:
    """Fit for the goal, with site effects and weights if requested or needed, and infer.

    If only inference needs weights, it starts from a weighted fit, and the model stays as it is.
    """
    ledger = separate_sites(ledger, bool(settings.site_effects), None)
    Budget(ledger).require_trips(FEWEST_TRIPS, "any fit")
    context = Context(ledger, _leave_for_inference(settings, len(ledger.columns)), notify)
    fit = settings.goal_in_force.run(context)
    notes: list[str] = []
    shift, noise = _compare_sites(context, fit, settings.may_add_site_effects)
    if shift is not None and _are_shifted(context, fit, shift, notes):
        differ = "may differ" if shift > SURELY_SHIFTED else "differ"
        notify(
            f"sites' mean responses {differ}: the model is fitted again, with an intercept per site"
        )
        searched = settings.penalty is None and settings.goal_in_force.is_lasso
        settings = replace(settings, site_effects=True)
        apart = separate_sites(ledger, True, None)
        used = context.budget.numbers / context.p
        context = context.again(apart, site_effects=True)
        first = fit.reason
        if settings.uploads is not None:
            # They do not suffice for a second search for the penalty.
            left = settings.uploads - used - count_vectors(settings, context.p)
            refit = max(int(left) // (1 + settings.may_weight_sites), 1)
            given: dict[str, Any] = {"penalty": fit.path_penalty, "uploads": refit}
            given |= {"cv": None, "validation": None, "rule": None}
            if not settings.requested_goal.is_lasso:
                given["goal"] = lasso_goal().name
            context = context.again(apart, **given)
        try:
            fit = settings.goal_in_force.run(context)
        except TooFewUploads:
            raise FedLassoError(
                f"`uploads` is {settings.uploads}, and too few of them are left for a second fit, "
                "with an intercept per site; give more, or --no-site-effects for a common intercept"
            ) from None
        if settings.uploads is not None and searched:
            fit = _explain_choice(fit, first, settings)
        _, noise = _compare_sites(context, fit, False)
    weights = None
    basis = fit
    compared = noise is not None
    if noise is not None:
        always = settings.site_weights is not None
        try:
            if isinstance(noise, Exception):
                raise noise
            scaling = fit.standardised[1]
            sites = context.ledger.sites
            weights = find_site_weights(sites, noise, scaling, fit.coefficients, always=always)
            if weights is not None:
                why = "as requested" if always else "for inference: sites differ in noise"
                notify(f"the Lasso is fitted again to weighted rows, {why}")
                weighted = context.again(separate_sites(context.ledger, False, weights))
                basis = settings.goal_in_force.run(weighted)
                context = weighted
        except (Refused, CannotFit) as error:
            if always:
                raise
            weights = None
            compared = False
            notes.append(f"rows were not weighted by their site's noise: {error}")
    if settings.site_weights is not None or settings.requested_goal.infers:
        fit = basis
    if not settings.infers:
        trust = None if weights is None else Trust(site_weights=weights)
        return settings, replace(fit, trust=trust)
    context = context.again(context.ledger, uploads=settings.uploads)
    inflation = 1.0
    if settings.response_family.quadratic and not compared:
        view, scaling = basis.standardised
        own = without_shifts(context.ledger, view)
        inflation = find_noise_inflation(own, scaling, basis.coefficients)
    if inflation > 1:
        notes.append(
            f"the noise variance of some site may be up to {inflation:.2g} times the average, so "
            "all rows are assumed to be as noisy: fewer columns are discovered, and intervals are "
            "wider, than with weights"
        )
    trust = infer(context, basis, fit.coefficients != 0, inflation)
    trust = replace(trust, site_weights=weights, notes=(*notes, *trust.notes))
    return settings, settings.goal_in_force.conclude(context, replace(fit, trust=trust))


def _explain_choice(fit: Fit, first: Reason | None, settings: Settings) -> Fit:
    """Return a fit at the penalty that a first fit has chosen, with the reason of that choice."""
    assert isinstance(fit.reason, AtPenalty)
    if isinstance(first, Tuned):
        judged_on = f"{first.folds} folds" if first.folds else HELD_OUT
        rule: Rule | None = settings.rule_in_force
    else:
        assert isinstance(first, AtPenalty)
        rule, judged_on = first.rule, first.judged_on
    return replace(fit, reason=replace(fit.reason, rule=rule, judged_on=judged_on))


def _compare_sites(context: Context, fit: Fit, shifts: bool) -> tuple[Any, Any]:
    """Return the p-value of shifts and each site's squared residuals, in one round trip.

    Each is the reason if sites refuse, and None if it is not needed.
    """
    ledger = context.ledger
    view = fit.standardised[0]
    steps: dict[str, Dialogue[Any]] = {}
    if shifts:
        steps["shifts"] = shift_steps(Viewed(ledger, view), fit.coefficients)
    if context.settings.may_weight_sites:
        steps["noise"] = noise_steps(ledger, view, fit.coefficients)
    found = dict(zip(steps, drive_together(list(steps.values())), strict=True))
    return found.get("shifts"), found.get("noise")


def _are_shifted(context: Context, fit: Fit, p_value: float | Refused, notes: list[str]) -> bool:
    """Return whether sites' mean responses clearly differ, and note that."""
    ledger = context.ledger
    if isinstance(p_value, Exception):
        notes.append(f"sites' mean responses were not compared: {p_value}")
        return False
    few = ROWS_PER_EFFECT * len(ledger.sites) <= fit.standardised[1].rows
    settings = context.settings
    cheap = few and (settings.requested_goal.infers or bool(settings.named))
    if p_value > (SHIFTED if cheap else SURELY_SHIFTED):
        return False
    differ = "may differ" if p_value > SURELY_SHIFTED else "differ"
    notes.append(
        f"sites' mean responses {differ} (p = {p_value:.1g}), so every site has its own intercept; "
        "--no-site-effects fits a common one"
    )
    return True


def _leave_for_inference(settings: Settings, p: int) -> Settings:
    """Return settings of the first fit, with the uploads that inference and a refit leave."""
    uploads = settings.uploads
    needs = count_vectors(settings, p)
    fits = 1 + settings.may_weight_sites
    if uploads is None or not (needs or fits > 1):
        return settings
    if uploads <= 2 * needs:
        raise FedLassoError(
            f"`uploads` is {uploads}, and inference about {p} columns takes more than {2 * needs} "
            "with the Lasso that it starts from; give more"
        )
    if settings.may_add_site_effects and fits == 1:
        needs += count_refitting(settings)
    return replace(settings, uploads=(uploads - needs) // fits)
