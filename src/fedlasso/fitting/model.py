"""A fit as an analyst wants it: for a goal, with inference, on the columns' original scale."""

from dataclasses import dataclass, replace
from typing import Any

from fedlasso.errors import CannotFit, FedLassoError, Refused
from fedlasso.federation import Costs, Federation, Ledger, metered
from fedlasso.federation.ledger import Notify
from fedlasso.fitting.context import Context
from fedlasso.fitting.inference.infer import Trust, count_vectors, infer
from fedlasso.fitting.inference.noise_weights import (
    find_noise_inflation,
    find_site_weights,
    weight_sites,
)
from fedlasso.fitting.result import Fit, Status
from fedlasso.fitting.settings import Settings
from fedlasso.numerics import Array, find_loss
from fedlasso.sites import INTERCEPT, EffectAt, Scaling, Standardise, Viewed

# What a model of discoveries is called.
DISCOVERED = "refitted Lasso"


@dataclass(frozen=True, eq=False)
class Model:
    """A fit on the original scale of the columns.

    Attributes
    ----------
    settings : what was asked for
    columns : names of the columns
    coefficients, intercept : on the original scale of the columns
    fit : the same on the standardised scale, with all that belongs to it
    costs : all that passed between server and sites
    """

    settings: Settings
    columns: tuple[str, ...]
    coefficients: Array
    intercept: float
    fit: Fit
    costs: Costs

    @property
    def method(self) -> str:
        """What was fitted, or by which procedure."""
        return DISCOVERED if self.discovers else self.fit.method

    @property
    def trust(self) -> Trust | None:
        """How sure its columns are, where that was asked."""
        return self.fit.trust

    @property
    def discovers(self) -> bool:
        """Whether it has the discovered columns, and those alone."""
        return self.trust is not None and self.trust.found is not None

    @property
    def status(self) -> Status:
        """How the fit ended; that uploads ended too early comes first."""
        curve = self.fit.curve
        if curve is not None and curve.cut:
            return Status.CUT
        if self.discovers and self.fit.status is Status.OPTIMAL:
            return Status.CHOSEN
        return self.fit.status

    @property
    def view(self) -> Standardise:
        """What defines the view of the sites' rows that the fit was made on."""
        assert self.fit.view is not None
        return self.fit.view

    @property
    def scaling(self) -> Scaling:
        """Means and scales that the sites agreed on."""
        assert self.fit.scaling is not None
        return self.fit.scaling

    @property
    def penalty(self) -> float:
        """The penalty of the Lasso: the chosen one of the path, or the one that was given.

        An adaptive or refitted model has weights, or next to no penalty; it is known by the best
        penalty of the Lasso path that it comes from.
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
    federation: Federation, settings: Settings, notify: Notify = lambda text: None
) -> Model:
    """Fit across the sites of a federation, whose records may be on any scale.

    `notify` is called with the plan before much is sent.
    """
    ledger = metered(federation)
    before = ledger.costs
    fit = _fit(ledger, settings, notify)
    assert fit.scaling is not None
    assert fit.view is not None
    coefficients, intercept = fit.scaling.original(fit.coefficients)
    bounds = Context(ledger, settings).form.bounds
    if bounds is not None:
        # Scaling a bound there and back may round it.
        coefficients = bounds.part(slice(len(coefficients))).clip(coefficients)
    if settings.site_effects:
        # New rows belong to no site: they have the mean of the sites' intercepts.
        sent = Viewed(ledger, fit.view).total(EffectAt(fit.coefficients))
        intercept += sent.effects / sent.weight if sent.weight else 0.0
    columns = tuple(name for name in ledger.columns if name != INTERCEPT)
    return Model(settings, columns, coefficients, intercept, fit, ledger.costs - before)


def _fit(ledger: Ledger, settings: Settings, notify: Notify) -> Fit:
    """Fit for the goal, weight sites where that is asked or clearly needed, and infer."""
    goal = settings.goal_in_force
    context = Context(ledger, _leave_for_inference(settings, len(ledger.columns)), notify)
    fit = goal.run(context)
    weights = None
    notes: tuple[str, ...] = ()
    compared = settings.weighs_sites
    if settings.weighs_sites:
        try:
            weights = _find_weights(ledger, fit, settings)
            if weights is not None:
                notify("sites differ in noise: rows are weighed, and the Lasso is fitted again")
                weighted = context.again(weight_sites(ledger, weights))
                fit = goal.run(weighted)
                context = weighted
        except (Refused, CannotFit) as error:
            if settings.site_weights is not None:
                raise
            weights = None
            compared = False
            notes = (f"rows were not weighed by their site's noise: {error}",)
    trust = None if weights is None else Trust(site_weights=weights)
    assert fit.view is not None
    assert fit.scaling is not None
    if not settings.infers:
        return replace(fit, trust=trust)
    context = context.again(context.ledger, uploads=settings.uploads)
    inflation = 1.0
    if settings.response_family.quadratic and not compared:
        view = Viewed(context.ledger, fit.view)
        inflation = find_noise_inflation(view, fit.scaling, fit.coefficients)
    if inflation > 1:
        notes = (
            *notes,
            f"the noise of some site has up to {inflation:.2g} times the variance that all have on "
            "average, so all rows are taken to be as noisy: fewer columns are found, and intervals "
            "are wider, than with weights",
        )
    trust = infer(context, fit, inflation)
    trust = replace(trust, site_weights=weights, notes=(*notes, *trust.notes))
    return goal.conclude(context, replace(fit, trust=trust))


def _leave_for_inference(settings: Settings, p: int) -> Settings:
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


def _find_weights(ledger: Ledger, fit: Fit, settings: Settings) -> dict[str, float] | None:
    """What a row of each site counts by its noise, where sites differ or that is asked for."""
    assert fit.view is not None
    assert fit.scaling is not None
    always = settings.site_weights is not None
    view = Viewed(ledger, fit.view)
    return find_site_weights(view, fit.scaling, fit.coefficients, always=always)
