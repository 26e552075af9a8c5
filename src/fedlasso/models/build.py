"""Fit a model across sites, in files or on a network, and build its document."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from fedlasso.families import Family
from fedlasso.federation import Around, Federation, Reply, Request, metered
from fedlasso.federation.ledger import Notify
from fedlasso.fitting.exact_path import ExactPath, path_by_moments
from fedlasso.fitting.examination.assess import has_own_penalty
from fedlasso.fitting.examination.assessment import Assessment
from fedlasso.fitting.examination.comparison import CoefficientPath
from fedlasso.fitting.examination.examine import Nested, examine, expect_error
from fedlasso.fitting.examination.intervals import Z, half_width
from fedlasso.fitting.inference.infer import separate_sites
from fedlasso.fitting.model import Model, fit_model
from fedlasso.fitting.result import AtPenalty, Tuned
from fedlasso.fitting.settings import Settings
from fedlasso.models import document as doc
from fedlasso.models.document import Missing, ModelDocument, Revealed
from fedlasso.models.inference_document import number_or_none, to_trust_document
from fedlasso.models.inputs import encode_settings
from fedlasso.models.table_one_cells import describe_schema
from fedlasso.models.text import warn_of_examination, warn_of_fit, warn_of_leak
from fedlasso.numerics import one_thread
from fedlasso.tables import Schema

R = TypeVar("R", bound=Reply)


class _Recorded(Around):
    """A federation that records what the requests it forwards disclose."""

    def __init__(self, inner: Federation, family: Family) -> None:
        super().__init__(inner)
        self.revealed: dict[str, None] = {}
        self.errors = "squared errors" if family.quadratic else f"{family.error}s"

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        self._record(request)
        return self.inner.replies(request)

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        for request in requests:
            self._record(request)
        return self.inner.replies_together(requests)

    def _record(self, request: Request[Any]) -> None:
        self.revealed[request.discloses.with_errors(self.errors)] = None


@one_thread()
def make_model(
    federation: Federation,
    settings: Settings,
    schema: Schema,
    *,
    missing: Missing = "refuse",
    compare: bool = False,
    tolerant: bool = False,
    leaks: Mapping[str, str] | None = None,
    notify: Notify = lambda text: None,
) -> ModelDocument:
    """Fit a model across the sites of a federation and return its document.

    With `compare` it is also compared with others, which costs further messages; `tolerant` records
    a site's refusal of that instead of raising it. `leaks` are warnings of columns by name.
    `notify` is called after each stage.
    """
    recorded = _Recorded(federation, settings.response_family)
    settings = encode_settings(settings, schema)
    model = fit_model(recorded, settings, notify)
    document = make_document(model, schema, missing)
    revealed = Revealed(tuple(recorded.revealed))
    notify("fitted")
    nested = expect_error(model)
    document = with_nested_error(document, model, nested)
    examined: list[str] = []
    if compare:
        recorded = _Recorded(federation, settings.response_family)
        ledger = metered(recorded)
        before = ledger.costs
        ledger = separate_sites(ledger, bool(model.settings.site_effects), None)
        found = examine(ledger, model, tolerant, nested)
        own = ("alone", "shift", "table")
        values = {name: value for name, value in vars(found).items() if name not in own}
        if found.table is not None:
            values["table_one"] = describe_schema(found.table, schema)
        values["path"] = found.path or document.path
        if found.assessment is not None and (_is_near(model) or has_own_penalty(model)):
            chosen = nested is not None and nested.models is not None
            values["error"] = _assessed_error(document, found.assessment, chosen)
        examined = warn_of_examination(model, found)
        costs = ledger.costs - before
        values["examination_sent"] = {site: costs.total(None, site).upload for site in costs.sites}
        values["examination_trips"] = costs.trips
        document = replace(document, **values)
        revealed = replace(revealed, card=tuple(recorded.revealed))
        notify("examined for its card")
    warnings = (*warn_of_leak(document, leaks), *warn_of_fit(model, schema.target), *examined)
    return replace(document, revealed=revealed, warnings=warnings)


def make_document(
    model: Model,
    schema: Schema,
    missing: Missing = "refuse",
    exact: ExactPath | None = None,
) -> ModelDocument:
    """Return the document of a fitted model, without what further requests would add.

    `exact` is the exact path of all rows; by default that of second moments, if there are any.
    """
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
        chosen = fit.validation.take(fit.chosen)
        error = _expected_error(model, chosen.error[0], chosen.se[0], doc.CHOSE)
    if fit.curve is not None:
        found = fit.curve
        validation = found.validation
        if error is None and _is_near(model):
            at = found.chosen
            error = _expected_error(model, validation.error[at], validation.se[at], doc.CHOSE)
        path = CoefficientPath.largest(found.penalties, found.coefficients[:p], model.columns)
        nzero: list[int | None] = [None] * len(found.penalties)
        if _is_near(model) and isinstance(fit.reason, AtPenalty) and model.penalty == found.lam:
            nzero[found.chosen] = on.size
        exact = exact or path_by_moments(model)
        if exact is not None and np.array_equal(exact.penalties, found.penalties):
            B = (exact.coefficients.T * scale).T
            path = CoefficientPath.largest(found.penalties, B, model.columns)
            ratio = tuple(exact.dev_ratio.tolist())
            nzero = exact.nzero.tolist()
            path = replace(path, nzero=tuple(exact.nzero.tolist()), dev_ratio=ratio)
        curve = doc.ErrorCurve(
            path.penalties,
            tuple(validation.error.tolist()),
            tuple(map(number_or_none, validation.se)),
            tuple(validation.active.tolist()),
            found.chosen,
            tuple(nzero),
        )
    return ModelDocument(
        schema=schema,
        missing=missing,
        settings=replace(model.requested, goal=model.requested.goal_by_name),
        procedure=model.method,
        penalty=model.penalty,
        intercept=model.intercept,
        coefficients=tuple(
            doc.Coefficient(model.columns[k], *numbers[k].tolist()) for k in largest_first
        ),
        columns=p,
        rows=doc.RowCounts(scaling.rows, scaling.held_out),
        constant=model.constant,
        certificate=fit.certificate,
        status=model.status.name,
        status_text=model.status.value,
        why=fit.why,
        plan=fit.plan,
        rounds=fit.rounds,
        round_trips=costs.trips,
        sites=tuple(
            doc.SiteTraffic(
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
        trust=to_trust_document(model),
        means=tuple(scaling.means[:p].tolist()) if missing == "mean" else None,
        l1_ratio=None if fit.penalty.ridgeless else getattr(fit.penalty, "l1_ratio", None),
        penalty_factors=model.penalty_factors,
        positive=schema.classes[1] if schema.classes else None,
    )


def with_nested_error(
    document: ModelDocument, model: Model, nested: Nested | None
) -> ModelDocument:
    """Return a document with the error of nested cross-validation, if there is one."""
    if nested is None:
        return document
    validation = nested.validation
    error = _expected_error(model, validation.error[0], validation.se[0], doc.NESTED)
    return replace(document, error=error)


def _is_near(model: Model) -> bool:
    """Return whether models of folds are like this one: that of discoveries has other columns.

    A fit far from the path's Lasso does not have its held-out error.
    """
    return model.is_near and not model.discovers


def _assessed_error(
    document: ModelDocument, found: Assessment, chosen: bool
) -> doc.ExpectedError | None:
    """Return the error of an assessment, so that card, terminal and files have one definition.

    `chosen` if its models were chosen without their fold, and not only fitted.
    """
    if found.error is None:
        return document.error
    half = half_width(found.error)
    se = None if half is None else half / Z
    explained = None if found.explained is None else found.explained.value
    fitted = doc.CHOSE if document.settings.penalty is None else doc.GIVEN
    rows = doc.NESTED if chosen else fitted
    return doc.ExpectedError(found.error.value, se, explained, rows)


def _expected_error(model: Model, mse: float, se: float, rows: str) -> doc.ExpectedError:
    assert model.fit.curve is not None
    empty = float(model.fit.curve.validation.error[0])
    explained = 1 - float(mse) / empty if empty > 0 else None
    if model.view.site_weights:
        rows += ", weighted by the noise of their site as requested"
    return doc.ExpectedError(float(mse), number_or_none(se), explained, rows)
