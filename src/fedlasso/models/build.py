"""The one place where a model's document is built, whether its sites are files or far away."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from fedlasso.federation import Around, Federation, Reply, Request, metered
from fedlasso.federation.ledger import Notify
from fedlasso.fitting.examination.comparison import CoefficientPath
from fedlasso.fitting.examination.examine import examine, expect_error
from fedlasso.fitting.inference.infer import weight_sites
from fedlasso.fitting.model import Model, fit_model
from fedlasso.fitting.result import Status, Tuned
from fedlasso.fitting.settings import SELECTED, Settings
from fedlasso.models.document import (
    CHOSE,
    NESTED,
    Coefficient,
    ErrorCurve,
    ExpectedError,
    Missing,
    ModelDocument,
    Revealed,
    RowCounts,
    SiteBooks,
)
from fedlasso.models.inference_document import number_or_none, tell_trust
from fedlasso.models.text_warnings import warn_of_examination, warn_of_fit
from fedlasso.tables import Schema

R = TypeVar("R", bound=Reply)


class _Noted(Around):
    """A federation that notes what the questions which it passes on reveal."""

    def __init__(self, inner: Federation) -> None:
        super().__init__(inner)
        self.revealed: dict[str, None] = {}

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        self.revealed[request.discloses.reveals] = None
        return self.inner.replies(request)


def make_model(
    federation: Federation,
    settings: Settings,
    schema: Schema,
    *,
    missing: Missing = "refuse",
    compare: bool = False,
    tolerant: bool = False,
    notify: Notify = lambda text: None,
) -> ModelDocument:
    """Fit a model across the sites of a federation, and tell all that there is to know about it.

    To `compare` it with others afterwards costs messages of their own; where that is `tolerant`, a
    site's refusal is told, and the model stands. `notify` is called when a stage is over.
    """
    noted = _Noted(federation)
    encode = schema.encode_names
    selected = (name for name in settings.intervals if name == SELECTED)
    settings = replace(
        settings,
        bounds={own: ends for name, ends in settings.bounds.items() for own in encode([name])},
        keep=encode(settings.keep),
        intervals=(*encode(settings.named), *selected),
    )
    model = fit_model(noted, settings, notify)
    document = _tell_model(model, schema, missing)
    revealed = Revealed(tuple(noted.revealed))
    notify("fitted")
    error = document.error
    if (nested := expect_error(model)) is not None:
        error = _tell_error(model, nested.error[0], nested.se[0], NESTED)
    warnings = tuple(warn_of_fit(model, schema.target))
    document = replace(document, error=error, warnings=warnings)
    if compare:
        noted = _Noted(federation)
        ledger = metered(noted)
        before = ledger.costs
        if model.trust is not None and model.trust.site_weights is not None:
            ledger = weight_sites(ledger, model.trust.site_weights)
        found = examine(ledger, model, tolerant)
        told = {name: value for name, value in vars(found).items() if name != "alone"}
        told["path"] = found.path or document.path
        told["warnings"] = (*warnings, *warn_of_examination(model, found))
        costs = ledger.costs - before
        told["examination_sent"] = {site: costs.total(None, site).upload for site in costs.sites}
        document = replace(document, **told)
        revealed = replace(revealed, card=tuple(noted.revealed))
        notify("examined for its card")
    return replace(document, revealed=revealed)


def _tell_model(model: Model, schema: Schema, missing: Missing) -> ModelDocument:
    fit = model.fit
    scaling = model.scaling
    costs = model.costs
    p = len(model.columns)
    factors = scaling.factors[:p]
    scale = np.divide(1, factors, out=np.zeros(p), where=factors > 0)
    standardised = model.standardised
    numbers = np.column_stack([model.coefficients, standardised, scaling.means[:p], scale])
    on = np.flatnonzero(standardised)
    largest_first = on[np.argsort(-np.abs(standardised[on]), kind="stable")]
    assert fit.certificate is not None
    curve = path = error = None
    if isinstance(fit.reason, Tuned) and fit.validation is not None:
        judged = fit.validation.take(fit.chosen)
        error = _tell_error(model, judged.error[0], judged.se[0], CHOSE)
    if fit.curve is not None:
        found = fit.curve
        validation = found.validation
        if fit.status is Status.OPTIMAL and not model.discovers:
            # The Lasso at a penalty that held-out rows chose; what falls short of it is not judged.
            at = found.chosen
            error = _tell_error(model, validation.error[at], validation.se[at], CHOSE)
        path = CoefficientPath.largest(found.penalties, found.coefficients[:p], model.columns)
        curve = ErrorCurve(
            path.penalties,
            tuple(validation.error.tolist()),
            tuple(map(number_or_none, validation.se)),
            tuple(validation.active.tolist()),
            found.chosen,
        )
    return ModelDocument(
        schema=schema,
        missing=missing,
        settings=replace(model.settings, goal=model.settings.goal_in_force.name),
        procedure=model.method,
        penalty=model.penalty,
        intercept=model.intercept,
        coefficients=tuple(
            Coefficient(model.columns[k], *numbers[k].tolist()) for k in largest_first
        ),
        columns=p,
        rows=RowCounts(scaling.rows, scaling.held_out),
        constant=model.constant,
        certificate=fit.certificate,
        status=model.status.name,
        status_text=model.status.value,
        why=fit.why,
        plan=fit.plan,
        rounds=fit.rounds,
        sites=tuple(
            SiteBooks(
                site,
                rows,
                {kind: costs.total(kind, site).upload for kind in costs.kinds},
                {kind: costs.total(kind, site).download for kind in costs.kinds},
                costs.total(None, site).messages,
            )
            for site, rows in zip(costs.sites, fit.problem.sizes, strict=True)
        ),
        curve=curve,
        path=path,
        error=error,
        trust=tell_trust(model),
        means=tuple(scaling.means[:p].tolist()) if missing == "mean" else None,
    )


def _tell_error(model: Model, mse: float, se: float, rows: str) -> ExpectedError:
    """Return an error, and how much smaller it is than that of the empty model."""
    assert model.fit.curve is not None
    empty = float(model.fit.curve.validation.error[0])
    explained = 1 - float(mse) / empty if empty > 0 else None
    return ExpectedError(float(mse), number_or_none(se), explained, rows)
