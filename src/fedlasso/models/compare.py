"""What a model card says beside the model: comparisons, stability, warnings.

All of it is asked through the federation and told apart from the fit's own cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import Costs, Federation, Ledger
from fedlasso.fitting import ChoosePenalty, Fit, Session, Status, certify, fit, validate
from fedlasso.models.document import (
    CoefficientPath,
    ColumnStability,
    ComparedModel,
    ModelDocument,
)
from fedlasso.models.fitted import Model, fit_pooled
from fedlasso.numerics import L1, Array, Certificate
from fedlasso.procedures import Averaging
from fedlasso.procedures.one_shot import LocalFit
from fedlasso.sites import ErrorAt, Scaling, Viewed, halves, standardise

# Sites' own fits and averaging work on columns: beyond this many numbers they are left out.
LARGEST = 40_000_000
EPOCHS = 5
ROUNDS = 30
PATH_POINTS = 15
PATH_UPLOADS = 60
SUBSAMPLES = 10
SUBSAMPLE_TOL = 1e-3
SUBSAMPLE_UPLOADS = 40
STABLE = 0.6
# A site disagrees when the common model's error there is this many times the error over all sites.
DISAGREES = 1.5


@dataclass(frozen=True, eq=False)
class Rival:
    """A model to compare with."""

    name: str
    coefficients: Array
    sent: int


def examine(ledger: Ledger, model: Model, document: ModelDocument) -> ModelDocument:
    """Return the document with comparison, stability and warnings."""
    warnings = _rows_warnings(model)
    lam = model.penalty
    view = Viewed(ledger, model.view)
    if model.curve is None and lam > 0:
        document = replace(document, path=_path_to(view, model.columns, lam))
    warnings += _disagreements(view, model)
    if lam == 0:
        document = replace(document, not_compared="the penalty is zero")
    elif model.scaling.rows * len(model.columns) > LARGEST:
        why = "sites' own fits on so many numbers take too long"
        document = replace(document, not_compared=why)
    else:
        comparison, alone = compare(ledger, model)
        warnings += _conflicts(model, alone)
        stability = measure_stability(ledger, model)
        warnings += _unstable(stability)
        document = replace(document, comparison=comparison, stability=stability)
    return replace(document, warnings=tuple(warnings))


def _path_to(view: Viewed, columns: Sequence[str], lam: float) -> CoefficientPath | None:
    """The Lasso path down to a penalty that was given."""
    session = Session(view, PATH_UPLOADS)
    if session.largest_penalty <= lam:
        return None
    grid = np.geomspace(session.largest_penalty, lam, PATH_POINTS)
    points = session.path([L1(float(at)) for at in grid])
    B = np.column_stack([point.coefficients for point in points])
    return CoefficientPath.largest(grid[: len(points)], B, columns)


def compare(ledger: Ledger, model: Model) -> tuple[tuple[ComparedModel, ...], Mapping[str, Array]]:
    """Averaging and every site alone, on rows that none of them has seen."""
    settings = model.settings
    view, scaling = standardise(ledger, settings.held_out, **settings.scaling)
    lam = model.penalty
    best = fit_pooled(view, lam)
    rivals = [Rival("pooled Lasso on the training rows", best.coefficients, _most(best.costs))]
    # A model that has seen every row cannot be judged on some of them; the pooled Lasso can.
    if view.name == model.view:
        rivals.insert(0, Rival("this model", model.fit.coefficients, _most(model.costs)))
    averaged = fit(view, Averaging(epochs=EPOCHS), penalty=lam, rounds=ROUNDS, certified=False)
    name = f"averaging, {EPOCHS} local epochs, {ROUNDS} rounds"
    rivals.append(Rival(name, averaged.coefficients, _most(averaged.costs)))
    alone = fit_each_alone(view, scaling, lam) if len(view.sites) > 1 else {}
    rivals += [Rival(f"{site} alone", b, 0) for site, b in alone.items()]
    models = np.column_stack([rival.coefficients for rival in rivals])
    errors = validate(view, models) if scaling.held_out[1] else None
    rows = []
    for i, rival in enumerate(rivals):
        above = share_above(certify(view, best.problem, rival.coefficients), best)
        rows.append(
            ComparedModel(
                name=rival.name,
                active=int((rival.coefficients != 0).sum()),
                mse=None if errors is None else float(errors.error[i]),
                se=None if errors is None else float(errors.se[i]),
                above=above if np.isfinite(above) else None,
                sent=rival.sent,
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


def fit_each_alone(view: Federation, scaling: Scaling, lam: float) -> dict[str, Array]:
    """Every site's own Lasso; a site that cannot fit one is left out."""
    alone = {}
    for site, rows in zip(view.sites, scaling.sizes, strict=True):
        try:
            (reply,) = view.ask(LocalFit(_own_penalty(view, site, lam), to=(site,)))
        except Interrupted:
            raise
        except FedLassoError:
            continue
        alone[site] = reply.values[:, 0] / max(rows, 1)
    return alone


def _own_penalty(view: Federation, site: str, lam: float) -> float:
    """The penalty that a site's own held-out rows choose, else the common one."""
    try:
        (choice,) = view.ask(ChoosePenalty(to=(site,)))
    except Interrupted:
        raise
    except FedLassoError:
        return lam
    return choice.lam


def measure_stability(ledger: Ledger, model: Model) -> tuple[ColumnStability, ...]:
    """How often random halves of every site's rows select each column (Meinshausen, Buhlmann)."""
    counts = np.zeros(len(model.columns))
    for split in halves(SUBSAMPLES, model.settings.seed):
        view, _ = standardise(ledger, split, **model.settings.scaling)
        point = Session(view, SUBSAMPLE_UPLOADS).fit(L1(model.penalty), tol=SUBSAMPLE_TOL)
        counts += point.coefficients != 0
    chosen = model.fit.coefficients != 0
    shown = np.flatnonzero(chosen | (counts >= STABLE * SUBSAMPLES))
    return tuple(
        ColumnStability(model.columns[k], bool(chosen[k]), float(counts[k] / SUBSAMPLES))
        for k in sorted(shown, key=lambda k: (-counts[k], k))
    )


def _disagreements(view: Viewed, model: Model) -> list[str]:
    replies = view.ask(ErrorAt(model.fit.coefficients))
    pooled = sum(reply.error for reply in replies) / model.scaling.rows
    errors = {
        reply.site: reply.error / rows
        for reply, rows in zip(replies, model.scaling.sizes, strict=True)
        if rows
    }
    return [
        f"site {site} disagrees: the common model's error there is {error / pooled:.1f} times the "
        "error over all sites"
        for site, error in errors.items()
        if len(errors) > 1 and error > DISAGREES * pooled
    ]


def _conflicts(model: Model, alone: Mapping[str, Array]) -> list[str]:
    if len(alone) < 2:
        return []
    signs = np.sign(np.array(list(alone.values())))
    both = (signs > 0).any(axis=0) & (signs < 0).any(axis=0) & (model.fit.coefficients != 0)
    names = [model.columns[k] for k in np.flatnonzero(both)]
    if not names:
        return []
    return [f"sites disagree on the sign of {_some(names)} when each fits alone"]


def _unstable(stability: Sequence[ColumnStability]) -> list[str]:
    names = [row.name for row in stability if row.selected and row.share < STABLE]
    if not names:
        return []
    return [
        f"unstable: {_some(names)} {'is' if len(names) == 1 else 'are'} selected in fewer than "
        f"{STABLE:.0%} of {SUBSAMPLES} random halves of the rows"
    ]


def _rows_warnings(model: Model) -> list[str]:
    warnings = []
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
        warnings.append(f"small sites: {_some(small)} with fewer than 20 training rows")
    if model.constant:
        warnings.append(f"constant, so left out with coefficient 0: {_some(model.constant)}")
    return warnings


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
