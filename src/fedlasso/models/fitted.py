"""One fit as an analyst wants it: planned, weighed, inferred and told on the original scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import Federation, Ledger, metered
from fedlasso.fitting import Fit
from fedlasso.models.at_penalty import fit_curved, form_of
from fedlasso.models.inferring import (
    Inferring,
    Trust,
    count_refitting,
    count_vectors,
    find_caution,
    find_worth,
    weigh,
)
from fedlasso.models.model import Model
from fedlasso.models.planned import Planned
from fedlasso.models.settings import Settings
from fedlasso.numerics import L1
from fedlasso.sites import (
    EffectAt,
    Viewed,
)


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
    model = Planned(ledger, own, say).model()
    seen = ledger
    worth = None
    notes: tuple[str, ...] = ()
    compared = settings.weighs_sites
    if settings.weighs_sites:
        always = settings.site_weights == "variance"
        view = Viewed(ledger, model.view)
        try:
            worth = find_worth(view, model.scaling, model.fit.coefficients, always=always)
            if worth is not None:
                say("sites differ in noise: rows are weighed, and the Lasso is fitted again")
                seen = weigh(ledger, worth)
                model = Planned(seen, own, say).model()
        except Stopped:
            raise
        except FedLassoError as error:
            if always:
                raise
            seen = ledger
            worth = None
            compared = False
            notes = (f"rows were not weighed by their site's noise: {error}",)
    if not settings.infers:
        return replace(
            model, settings=settings, trust=None if worth is None else Trust(worth=worth)
        )
    view = Viewed(seen, model.view)
    caution = 1.0
    if settings.family == "linear" and not compared:
        caution = find_caution(view, model.scaling, model.fit.coefficients)
    if caution > 1:
        notes = (
            *notes,
            f"the noise of some site has up to {caution:.2g} times the variance that all have on "
            "average, so all rows are taken to be as noisy: fewer columns are found, and intervals "
            "are wider, than with weights",
        )
    inferring = Inferring(seen, view, model.scaling, settings, model.fit, seen.columns, caution)

    def fit_rest(view: Viewed, penalty: L1) -> Fit:
        return fit_curved(view, penalty, count_refitting(settings), settings.tol)

    trust = inferring.trust(worth, notes)
    model = replace(model, settings=settings, trust=trust)
    if trust.found is None:
        return model
    count = trust.found.columns.size
    why = (
        f"goal 'discoveries': {count} of {trust.found.tests} columns, found at a false discovery "
        f"rate of {settings.fdr:g} by how likely they are, and fitted to all rows"
    )
    return replace(model, fit=inferring.refit(trust.found, fit_rest), why=why)
