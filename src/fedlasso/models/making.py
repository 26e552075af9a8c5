"""The one place where a model is made, whether its sites are files or far away.

What its card says beside the model (comparisons, stability, warnings) is asked through the
federation as well, and told apart from the fit's own cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import Around, Costs, Federation, Ledger, Reply, Request, metered
from fedlasso.fitting import ChoosePenalty, Fit, GoalFit, Session, Status, certify, fit, validate
from fedlasso.fitting.by_moments import nested_error
from fedlasso.models.document import (
    NESTED,
    CoefficientPath,
    ColumnStability,
    ComparedModel,
    Missing,
    ModelDocument,
    Revealed,
    tell_error,
    tell_model,
)
from fedlasso.models.fitted import Model, fit_model, fit_pooled
from fedlasso.models.settings import Settings
from fedlasso.numerics import L1, Array, Certificate
from fedlasso.procedures import Averaging
from fedlasso.procedures.one_shot import LocalFit
from fedlasso.sites import ErrorAt, Scaling, Viewed, halves, standardise
from fedlasso.tables import Schema

# Sites' own fits and averaging work on columns: beyond this many numbers they are left out.
LARGEST = 40_000_000
EPOCHS = 5
ROUNDS = 30
SUBSAMPLES = 10
STABLE = 0.6
# A site disagrees when the common model's error there is this many times the error over all sites.
DISAGREES = 1.5
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
    model = fit_model(noted, settings, say)
    document = tell_model(model, schema, missing)
    revealed = Revealed(tuple(noted.revealed))
    say("fitted")
    if compare:
        noted = _Noted(federation)
        ledger = metered(noted)
        before = ledger.costs
        try:
            document = _examine(ledger, model, document)
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


def _examine(ledger: Ledger, model: Model, document: ModelDocument) -> ModelDocument:
    """The document with path, comparison, stability and warnings."""
    warnings = _rows_warnings(model)
    lam = model.penalty
    view = Viewed(ledger, model.view)
    if model.curve is None and lam > 0:
        # The Lasso path down to the penalty that was given.
        session = Session(view, uploads=60)
        if session.largest_penalty > lam:
            grid = np.geomspace(session.largest_penalty, lam, 15)
            points = session.path([L1(float(at)) for at in grid])
            B = np.column_stack([point.coefficients for point in points])
            path = CoefficientPath.largest(grid[: len(points)], B, model.columns)
            document = replace(document, path=path)
    if model.folded is not None and isinstance(model.fit, GoalFit):
        settings = model.settings
        nested = nested_error(model.folded, settings.aim, settings.rule_in_force)
        error = tell_error(model, float(nested.error[0]), float(nested.se[0]), NESTED)
        document = replace(document, error=error)
    warnings += _disagreements(view, model)
    if lam == 0:
        document = replace(document, not_compared="the penalty is zero")
    elif model.scaling.rows * len(model.columns) > LARGEST:
        why = "sites' own fits on so many numbers take too long"
        document = replace(document, not_compared=why)
    else:
        comparison, alone = _compare(ledger, model)
        stability = _stability(ledger, model)
        document = replace(document, comparison=comparison, stability=stability)
        warnings += _selection_warnings(model, alone, stability)
    return replace(document, warnings=tuple(warnings))


def _compare(ledger: Ledger, model: Model) -> tuple[tuple[ComparedModel, ...], dict[str, Array]]:
    """Averaging and every site alone, on rows that none of them has seen."""
    settings = model.settings
    view, scaling = standardise(ledger, settings.held_out, **settings.scaling)
    lam = model.penalty
    best = fit_pooled(view, lam)
    rivals = [("pooled Lasso on the training rows", best.coefficients, _most(best.costs))]
    # A model that has seen every row cannot be judged on some of them; the pooled Lasso can.
    if view.name == model.view:
        rivals.insert(0, ("this model", model.fit.coefficients, _most(model.costs)))
    averaged = fit(view, Averaging(epochs=EPOCHS), penalty=lam, rounds=ROUNDS, certified=False)
    name = f"averaging, {EPOCHS} local epochs, {ROUNDS} rounds"
    rivals.append((name, averaged.coefficients, _most(averaged.costs)))
    alone = _fit_each_alone(view, scaling, lam) if len(view.sites) > 1 else {}
    rivals += [(f"{site} alone", b, 0) for site, b in alone.items()]
    models = np.column_stack([b for _, b, _ in rivals])
    errors = validate(view, models) if scaling.held_out[1] else None
    rows = []
    for i, (name, b, sent) in enumerate(rivals):
        above = share_above(certify(view, best.problem, b), best)
        rows.append(
            ComparedModel(
                name=name,
                active=int((b != 0).sum()),
                mse=None if errors is None else float(errors.error[i]),
                se=None if errors is None else float(errors.se[i]),
                above=above if np.isfinite(above) else None,
                sent=sent,
            )
        )
    return tuple(rows), alone


def _most(costs: Costs) -> int:
    """Bytes sent by the site that sent most."""
    return max(costs.total(None, site).upload for site in costs.sites)


def share_above(certificate: Certificate, best: Fit) -> float:
    """How much of the pooled Lasso's objective lies between it and a model's."""
    assert best.certificate is not None
    lowest = best.certificate.objective
    above = max(certificate.objective - lowest, 0.0)
    return above / lowest if lowest > 0 else (0.0 if above == 0 else float("inf"))


def _fit_each_alone(view: Federation, scaling: Scaling, lam: float) -> dict[str, Array]:
    """Every site's own Lasso, at its own penalty if its held-out rows choose one."""
    alone = {}
    for site, rows in zip(view.sites, scaling.sizes, strict=True):
        choice = _answer(view, ChoosePenalty(to=(site,)))
        reply = _answer(view, LocalFit(choice.lam if choice else lam, to=(site,)))
        if reply:
            alone[site] = reply.values[:, 0] / max(rows, 1)
    return alone


def _answer(view: Federation, request: Request[R]) -> R | None:
    """What the one site that is asked answers, or None where it refuses."""
    try:
        (reply,) = view.ask(request)
    except Interrupted:
        raise
    except FedLassoError:
        return None
    return reply


def _stability(ledger: Ledger, model: Model) -> tuple[ColumnStability, ...]:
    """How often random halves of every site's rows select each column (Meinshausen, Buhlmann)."""
    counts = np.zeros(len(model.columns))
    for split in halves(SUBSAMPLES, model.settings.seed):
        view, _ = standardise(ledger, split, **model.settings.scaling)
        counts += Session(view, uploads=40).fit(L1(model.penalty), tol=1e-3).coefficients != 0
    chosen = model.fit.coefficients != 0
    shown = np.flatnonzero(chosen | (counts >= STABLE * SUBSAMPLES))
    return tuple(
        ColumnStability(model.columns[k], bool(chosen[k]), float(counts[k] / SUBSAMPLES))
        for k in sorted(shown, key=lambda k: (-counts[k], k))
    )


def _disagreements(view: Viewed, model: Model) -> list[str]:
    replies = view.ask(ErrorAt(model.fit.coefficients))
    pooled = sum(reply.value for reply in replies) / model.scaling.rows
    return [
        f"site {reply.site} disagrees: the common model's error there is "
        f"{reply.value / rows / pooled:.1f} times the error over all sites"
        for reply, rows in zip(replies, model.scaling.sizes, strict=True)
        if rows and reply.value / rows > DISAGREES * pooled
    ]


def _selection_warnings(
    model: Model, alone: Mapping[str, Array], stability: Sequence[ColumnStability]
) -> list[str]:
    warnings = []
    if len(alone) > 1:
        signs = np.sign(list(alone.values()))
        both = (signs > 0).any(axis=0) & (signs < 0).any(axis=0) & (model.fit.coefficients != 0)
        if both.any():
            names = some_of([model.columns[k] for k in np.flatnonzero(both)])
            warnings.append(f"sites disagree on the sign of {names} when each fits alone")
    unstable = [row.name for row in stability if row.selected and row.share < STABLE]
    if unstable:
        warnings.append(
            f"unstable: {some_of(unstable)} {'is' if len(unstable) == 1 else 'are'} selected in "
            f"fewer than {STABLE:.0%} of {SUBSAMPLES} random halves of the rows"
        )
    return warnings


def _rows_warnings(model: Model) -> list[str]:
    warnings = []
    if model.status is Status.CUT:
        warnings.append("the uploads ended too early: " + Status.CUT.value)
    certificate = model.fit.certificate
    if model.fit.status is Status.SHORT and certificate and certificate.relative_gap > 1e-6:
        warnings.append(f"not yet the pooled Lasso ({certificate}): give more uploads")
    active = int((model.fit.coefficients != 0).sum())
    if active and model.scaling.rows < 10 * active:
        warnings.append(
            f"few rows: {model.scaling.rows} training rows for {active} coefficients; "
            "expect other samples to select other columns"
        )
    small = [s for s, m in zip(model.costs.sites, model.fit.problem.sizes, strict=True) if m < 20]
    if small:
        warnings.append(f"small sites: {some_of(small)} with fewer than 20 training rows")
    if model.constant:
        warnings.append(f"constant, so left out with coefficient 0: {some_of(model.constant)}")
    return warnings


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many there are beside."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
