"""A fit for a goal, with inference, on the columns' original scale."""

from dataclasses import dataclass, replace
from typing import Any

from fedlasso.errors import CannotFit, FedLassoError, Refused
from fedlasso.federation import Costs, Federation, Ledger, metered
from fedlasso.federation.ledger import Notify
from fedlasso.fitting.context import Context
from fedlasso.fitting.inference.infer import (
    Trust,
    count_vectors,
    find_noise_inflation,
    find_site_weights,
    infer,
    weight_sites,
)
from fedlasso.fitting.result import Fit, Status
from fedlasso.fitting.settings import Settings
from fedlasso.numerics import Array, find_loss
from fedlasso.sites import INTERCEPT, EffectAt, Scaling, Standardise, Viewed

# Name of a model of discoveries.
DISCOVERED = "refitted Lasso"


@dataclass(frozen=True, eq=False)
class Model:
    """A fit on the original scale of the columns.

    `fit` is the same on the standardised scale. `costs` are those of the whole fit and of
    inference.
    """

    settings: Settings
    columns: tuple[str, ...]
    coefficients: Array
    intercept: float
    fit: Fit
    costs: Costs

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
        """The penalty of the Lasso: the chosen one of the path, or the given one.

        For an adaptive or refitted model it is the best penalty of the Lasso path that the model
        comes from.
        """
        curve = self.fit.curve
        return self.fit.penalty.strength if curve is None else curve.lam

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
    fit = _fit(ledger, settings, notify)
    view, scaling = fit.standardised
    coefficients, intercept = scaling.original(fit.coefficients)
    bounds = Context(ledger, settings).form.bounds
    if bounds is not None:
        # Scaling a bound there and back may round it.
        coefficients = bounds.part(slice(len(coefficients))).clip(coefficients)
    if settings.site_effects:
        # New rows belong to no site: they have the mean of the sites' intercepts.
        sent = Viewed(ledger, view).total(EffectAt(fit.coefficients))
        intercept += sent.effects / sent.weight if sent.weight else 0.0
    columns = tuple(name for name in ledger.columns if name != INTERCEPT)
    return Model(settings, columns, coefficients, intercept, fit, ledger.costs - before)


def _fit(ledger: Ledger, settings: Settings, notify: Notify) -> Fit:
    """Fit for the goal, weight sites if that is requested or clearly needed, and infer."""
    goal = settings.goal_in_force
    context = Context(ledger, _leave_for_inference(settings, len(ledger.columns)), notify)
    fit = goal.run(context)
    weights = None
    notes: tuple[str, ...] = ()
    compared = settings.may_weight_sites
    if settings.may_weight_sites:
        always = settings.site_weights is not None
        try:
            view, scaling = fit.standardised
            own = Viewed(ledger, view)
            weights = find_site_weights(own, scaling, fit.coefficients, always=always)
            if weights is not None:
                notify("sites differ in noise: rows are weighted, and the Lasso is fitted again")
                weighted = context.again(weight_sites(ledger, weights))
                fit = goal.run(weighted)
                context = weighted
        except (Refused, CannotFit) as error:
            if always:
                raise
            weights = None
            compared = False
            notes = (f"rows were not weighted by their site's noise: {error}",)
    if not settings.infers:
        return replace(fit, trust=None if weights is None else Trust(site_weights=weights))
    context = context.again(context.ledger, uploads=settings.uploads)
    inflation = 1.0
    if settings.response_family.quadratic and not compared:
        view, scaling = fit.standardised
        inflation = find_noise_inflation(Viewed(context.ledger, view), scaling, fit.coefficients)
    if inflation > 1:
        notes = (
            *notes,
            f"the noise variance of some site may be up to {inflation:.2g} times the average, so "
            "all rows are assumed to be as noisy: fewer columns are discovered, and intervals are "
            "wider, than with weights",
        )
    trust = infer(context, fit, inflation)
    trust = replace(trust, site_weights=weights, notes=(*notes, *trust.notes))
    return goal.conclude(context, replace(fit, trust=trust))


def _leave_for_inference(settings: Settings, p: int) -> Settings:
    """Return settings of the first fit, with the uploads that inference and a refit leave."""
    uploads = settings.uploads
    needs = count_vectors(settings, p)
    if uploads is None or not (needs or settings.may_weight_sites):
        return settings
    if uploads <= 2 * needs:
        raise FedLassoError(
            f"uploads is {uploads}, and inference about {p} columns takes more than {2 * needs} "
            "with the Lasso that it starts from; give more"
        )
    times = 2 if settings.may_weight_sites else 1
    return replace(settings, uploads=(uploads - needs) // times)
