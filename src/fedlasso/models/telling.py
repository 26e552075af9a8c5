"""A fitted model as its document tells it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedlasso.fitting import GoalFit, Status
from fedlasso.models.document import (
    CHOSE,
    Coefficient,
    CoefficientPath,
    ErrorCurve,
    ExpectedError,
    Missing,
    ModelDocument,
    RowCounts,
    SiteBooks,
)
from fedlasso.models.estimates import tell_trust
from fedlasso.models.model import Model
from fedlasso.tables import Schema


def tell_model(model: Model, schema: Schema, missing: Missing = "refuse") -> ModelDocument:
    """Return a fitted model as a document."""
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
    curve = None
    path = None
    error = None
    if isinstance(fit, GoalFit):
        chosen = fit.chosen
        error = tell_error(model, fit.validation.error[chosen], fit.validation.se[chosen], CHOSE)
    if model.curve is not None:
        found = model.curve
        validation = found.validation
        if fit.status is Status.OPTIMAL and not model.discovers:
            # The Lasso at a penalty that held-out rows chose; what falls short of it is not judged.
            at = found.chosen
            error = tell_error(model, validation.error[at], validation.se[at], CHOSE)
        path = CoefficientPath.largest(found.penalties, found.coefficients[:p], model.columns)
        curve = ErrorCurve(
            path.penalties,
            tuple(validation.error.tolist()),
            tuple(None if np.isnan(se) else float(se) for se in validation.se),
            tuple(validation.active.tolist()),
            found.chosen,
        )
    return ModelDocument(
        schema=schema,
        missing=missing,
        settings=replace(model.settings, goal=model.settings.goal_in_force),
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
        why=model.why,
        plan=model.plan,
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


def tell_error(model: Model, mse: float, se: float, rows: str) -> ExpectedError:
    """Return an error, and how much smaller it is than that of the empty model."""
    assert model.curve is not None
    empty = float(model.curve.validation.error[0])
    return ExpectedError(
        float(mse),
        None if np.isnan(se) else float(se),
        1 - float(mse) / empty if empty > 0 else None,
        rows,
    )
