"""The one place where a model is made and told, whether its sites are files or far away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import Around, Federation, Reply, Request, metered
from fedlasso.models.compare import examine
from fedlasso.models.document import (
    CertificateNote,
    Coefficient,
    CoefficientPath,
    ErrorCurve,
    ModelDocument,
    Revealed,
    RowCounts,
    SiteBooks,
)
from fedlasso.models.fitted import Model, fit_model
from fedlasso.models.plan import Missing
from fedlasso.models.settings import Settings
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
    say: Callable[[str], None] = lambda text: None,
) -> ModelDocument:
    """Fit a model across the sites of a federation, and tell all that there is to know about it.

    Parameters
    ----------
    federation : the sites
    settings : what to fit
    schema : what the columns are
    missing : how missing values were dealt with
    compare : compare the model with others afterwards, which costs messages of their own
    tolerant : a site's refusal of a question for the comparison is told, and the model stands
    say : called when a stage is over
    """
    noted = _Noted(federation)
    model = fit_model(noted, settings)
    document = tell_model(model, schema, missing)
    revealed = Revealed(tuple(noted.revealed))
    say("fitted")
    if compare:
        noted = _Noted(federation)
        ledger = metered(noted)
        before = ledger.costs
        try:
            document = examine(ledger, model, document)
        except Interrupted:
            raise
        except FedLassoError as error:
            if not tolerant:
                raise
            document = replace(document, not_compared=str(error))
        costs = ledger.costs - before
        sent = {site: costs.total(None, site).upload for site in costs.sites}
        document = replace(document, examination_sent=sent)
        revealed = replace(revealed, card=tuple(noted.revealed))
        say("examined for its card")
    return replace(document, revealed=revealed)


def tell_model(model: Model, schema: Schema, missing: Missing = "refuse") -> ModelDocument:
    """Return a fitted model as a document."""
    fit = model.fit
    scaling = model.scaling
    costs = model.costs
    scale = np.divide(
        1, scaling.factors, out=np.zeros(len(model.columns)), where=scaling.factors > 0
    )
    on = np.flatnonzero(fit.coefficients)
    largest_first = on[np.argsort(-np.abs(fit.coefficients[on]), kind="stable")]
    certificate = fit.certificate
    assert certificate is not None
    curve = model.curve
    return ModelDocument(
        schema=schema,
        missing=missing,
        settings=replace(model.settings, goal=model.settings.aim),
        procedure=fit.method,
        penalty=model.penalty,
        intercept=model.intercept,
        coefficients=tuple(
            Coefficient(
                model.columns[k],
                float(model.coefficients[k]),
                float(fit.coefficients[k]),
                float(scaling.means[k]),
                float(scale[k]),
            )
            for k in largest_first
        ),
        columns=len(model.columns),
        rows=RowCounts(scaling.rows, scaling.held_out),
        constant=model.constant,
        certificate=CertificateNote(
            certificate.objective, certificate.gap, certificate.relative_gap, str(certificate)
        ),
        status=fit.status.name,
        status_text=fit.status.value,
        why=model.why,
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
        curve=_tell_curve(model),
        path=None
        if curve is None
        else CoefficientPath.largest(curve.penalties, curve.coefficients, model.columns),
        means=tuple(scaling.means.tolist()) if missing == "mean" else None,
    )


def _tell_curve(model: Model) -> ErrorCurve | None:
    if model.curve is None:
        return None
    validation = model.curve.validation
    return ErrorCurve(
        tuple(model.curve.penalties.tolist()),
        tuple(validation.error.tolist()),
        tuple(None if np.isnan(se) else float(se) for se in validation.se),
        tuple(validation.active.tolist()),
        model.curve.chosen,
    )
